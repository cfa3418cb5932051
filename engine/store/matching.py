"""Which kernels a text means: part of a label, family, shape or key, or of label and shape as they are shown together,
or a pattern for the whole of one."""

from __future__ import annotations

from fnmatch import fnmatchcase

from engine.store.connection import Connection, Row


def matching_kernels(connection: Connection, kernel_text: str) -> dict[str, Row]:
    """Kernels by key, in the order of recording, whose label, family, shape text or key holds the text, or whose
    name, which is label and shape.

    Case doesn't matter. A text with `*` is a pattern for the whole of one of these.
    """
    wanted = " ".join(kernel_text.casefold().split())
    pattern = wanted.replace("[", "[[]").replace("?", "[?]") if "*" in wanted else f"*{_literal(wanted)}*"
    rows = connection.rows("SELECT key, label, family, shape FROM kernel ORDER BY rowid")
    return {row["key"]: row for row in rows if any(fnmatchcase(text.casefold(), pattern) for text in _texts(row))}


def _texts(row: Row) -> tuple[str, ...]:
    label, family, shape, key = (str(row[name]) for name in ("label", "family", "shape", "key"))
    return label, family, shape, key, f"{label or family} {shape}"


def _literal(text: str) -> str:
    return text.replace("[", "[[]").replace("?", "[?]")
