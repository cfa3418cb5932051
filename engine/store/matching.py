"""Which kernels a text means: part of a label, family, shape or key, or a pattern for the whole of one."""

from __future__ import annotations

from fnmatch import fnmatchcase

from engine.store.connection import Connection, Row


def matching_kernels(connection: Connection, kernel_text: str) -> dict[str, Row]:
    """Kernels by key, in the order of recording, whose label, family, shape text or key holds the text.

    Case doesn't matter. A text with `*` is a pattern for the whole of one of these.
    """
    wanted = kernel_text.casefold().strip()
    pattern = wanted.replace("[", "[[]").replace("?", "[?]") if "*" in wanted else f"*{_literal(wanted)}*"
    rows = connection.rows("SELECT key, label, family, shape FROM kernel ORDER BY rowid")
    return {
        row["key"]: row
        for row in rows
        if any(fnmatchcase(str(row[name]).casefold(), pattern) for name in ("label", "family", "shape", "key"))
    }


def _literal(text: str) -> str:
    return text.replace("[", "[[]").replace("?", "[?]")
