"""Forbidden corners: knob values that a person ruled out together for a kernel or a family, who, when and why.

A row is never deleted: allowing a corner again marks it as removed, so the history says who forbade what. The next run
of the kernel proposes nothing that has all of a corner's values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from engine.store.connection import Connection, Row
from engine.store.errors import StoreError
from engine.store.rows import RowName, named_row, read_knobs, text, unreal
from engine.vocabulary import KnobValue


@dataclass(frozen=True, slots=True)
class ForbiddenCorner:
    """One corner as recorded. `kernel_key` "" means every kernel of `family`; `removed_at` is None while in force."""

    id: int
    kernel_key: str
    family: str
    knobs: tuple[tuple[str, KnobValue], ...]
    author: str
    at: float
    note: str
    removed_at: float | None = None

    def concerns(self, kernel_key: str, family: str) -> bool:
        return self.kernel_key == kernel_key if self.kernel_key else self.family == family

    def holds(self, knobs: Mapping[str, KnobValue]) -> bool:
        """Whether all of the corner's values are among these."""
        return all(name in knobs and knobs[name] == value for name, value in self.knobs)

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.knobs)


def forbid(
    connection: Connection,
    knobs: Mapping[str, KnobValue],
    at: float,
    *,
    kernel_key: str,
    family: str,
    author: str,
    note: str,
) -> ForbiddenCorner:
    """Keep a corner, or find it where it is in force. Raises StoreError for one that would forbid everything."""
    if not knobs:
        raise StoreError("these failures share no knob value of their own, so there is no corner to forbid")
    if not (kernel_key or family):
        raise StoreError("a corner is forbidden for a kernel or for a family, and neither is named")
    key = _key(knobs)
    with connection.transaction() as db:
        known = connection.first(f"SELECT id FROM forbidden WHERE {_SAME}", (kernel_key, family, key))
        if known is None:
            cursor = db.conn.execute(
                "INSERT INTO forbidden (kernel_key, family, knobs, author, at, note) VALUES (?, ?, ?, ?, ?, ?)",
                (kernel_key, family, key, text(author), at, text(note)),
            )
            number = int(cursor.lastrowid or 0)
        else:
            number = int(known["id"])
    return next(corner for corner in forbidden(connection) if corner.id == number)


_SAME = "kernel_key = ? AND family = ? AND knobs = ? AND removed_at IS NULL"


def allow(connection: Connection, corner: int, at: float) -> None:
    """End a corner. Raises StoreError if it isn't in force."""
    with connection.transaction() as db:
        cursor = db.conn.execute(
            "UPDATE forbidden SET removed_at = ? WHERE id = ? AND removed_at IS NULL", (at, corner)
        )
        if cursor.rowcount != 1:
            raise StoreError(f"no forbidden corner number {corner} is in force, so there is nothing to allow again")


def forbid_again(connection: Connection, corner: int) -> None:
    """Undo of `allow`. Raises StoreError if the corner was never there."""
    with connection.transaction() as db:
        cursor = db.conn.execute("UPDATE forbidden SET removed_at = NULL WHERE id = ?", (corner,))
        if cursor.rowcount != 1:
            raise StoreError(f"there never was a forbidden corner number {corner}")


def forbidden(connection: Connection, *, history: bool = False) -> tuple[ForbiddenCorner, ...]:
    """The corners in force, oldest first; with `history` the ended ones too."""
    where = "" if history else "WHERE removed_at IS NULL"
    return tuple(connection.readable(connection.rows(f"SELECT * FROM forbidden {where} ORDER BY id"), _corner))


def _corner(row: Row) -> ForbiddenCorner:
    with named_row(RowName("forbidden", row["id"])):
        knobs = tuple(sorted(read_knobs(row["knobs"]).items()))
        return ForbiddenCorner(
            id=int(row["id"]),
            kernel_key=row["kernel_key"] or "",
            family=row["family"] or "",
            knobs=knobs,
            author=row["author"] or "",
            at=float(row["at"] or 0.0),
            note=row["note"] or "",
            removed_at=unreal(row["removed_at"]),
        )


def _key(knobs: Mapping[str, KnobValue]) -> str:
    return json.dumps(dict(sorted(knobs.items())), separators=(",", ":"))
