"""What people did to a run, as rows: who asked for what, when, and of which kernel."""

from __future__ import annotations

from dataclasses import dataclass

from engine.store.connection import Connection, Row
from engine.store.rows import RowName, named_row
from engine.store.typed import checked

LATEST = 200


@dataclass(frozen=True, slots=True)
class StoredAct:
    """One act. `run` is "" for an act outside a run; `kernel_key` "" for one that meant the whole run."""

    run: str
    at: float
    verb: str
    kernel_key: str
    label: str
    detail: str
    author: str


def acts(connection: Connection, run: str | None = None, limit: int = LATEST) -> tuple[StoredAct, ...]:
    """The latest acts of a run, or of all, newest first."""
    where, values = ("", (limit,)) if run is None else ("WHERE act.run = ?", (run, limit))
    rows = connection.rows(
        "SELECT act.*, kernel.label AS label, kernel.family AS family FROM act LEFT JOIN kernel "
        f"ON kernel.key = act.kernel_key {where} ORDER BY act.at DESC, act.id DESC LIMIT ?",
        values,
    )
    return tuple(connection.readable(rows, _act))


def _act(row: Row) -> StoredAct:
    with named_row(RowName("act", row["id"])):
        return checked(
            StoredAct(
                run=row["run"] or "",
                at=float(row["at"] or 0.0),
                verb=row["verb"] or "",
                kernel_key=row["kernel_key"] or "",
                label=row["label"] or row["family"] or "",
                detail=row["detail"] or "",
                author=row["author"] or "",
            )
        )
