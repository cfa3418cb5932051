"""Pins: which schedule a person chose for a kernel in a context, who, when and why, and how it stands today.

A row is never deleted. Unpinning, or pinning something else, marks it as removed, so the history says who chose what
and when; undoing marks back. At most one pin of a kernel and context is in force.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.store.connection import Connection, Row
from engine.store.errors import StoreError
from engine.store.rows import named_row, text, unreal
from engine.store.typed import checked
from engine.vocabulary import Pin, Schedule

FASTER_BY = 1.02
"""A pin is overtaken when something measured is faster by more than 2 %: below, the two are one within the noise."""


@dataclass(frozen=True, slots=True)
class StoredPin:
    """One pin as recorded; `removed_at` is None while it is in force."""

    id: int
    pin: Pin
    context_key: str
    removed_at: float | None


@dataclass(frozen=True, slots=True)
class PinChange:
    """What one act did: the pin that came into force (0 for none) and those that it ended. `undo_pin` reverses it."""

    kernel_key: str
    context_key: str
    pinned: int = 0
    removed: tuple[int, ...] = ()


class Standing(StrEnum):
    """How a pin compares with what the database knows now."""

    OK = "ok"
    FASTER = "something faster now"
    UNMEASURED = "unmeasured"
    FAILED = "failed"
    OTHER_CONTEXT = "other context"


@dataclass(frozen=True, slots=True)
class PinStanding:
    """A pin in force beside its kernel's best. `us` and `best_us` are deploy times where both have one, else ranking.

    `gap` is us / best_us - 1, None unless both are known. OTHER_CONTEXT: the newest run used other versions or chips.
    """

    stored: StoredPin
    label: str
    shape: str
    gpu: str
    us: float | None
    best_us: float | None
    best_schedule: Schedule | None
    gap: float | None
    standing: Standing


def put_pin(connection: Connection, pin: Pin, context_key: str) -> PinChange:
    """Pin a schedule; a pin of the same kernel and context that is in force ends. Raises StoreError."""
    with connection.transaction() as db:
        for table, key, what in (("kernel", pin.kernel_key, "kernel"), ("context", context_key, "context")):
            if not db.conn.execute(f"SELECT 1 FROM {table} WHERE key = ?", (key,)).fetchone():
                raise StoreError(f"{connection.path} holds no {what} {key!r}, so nothing can be pinned for it")
        ended = _end(db.conn, pin.kernel_key, context_key, pin.at)
        cursor = db.conn.execute(
            "INSERT INTO pin (kernel_key, schedule, author, at, note, context_key) VALUES (?, ?, ?, ?, ?, ?)",
            (pin.kernel_key, text(pin.schedule.key), text(pin.author), pin.at, text(pin.note), context_key),
        )
        return PinChange(pin.kernel_key, context_key, int(cursor.lastrowid or 0), ended)


def end_pin(connection: Connection, kernel_key: str, context_key: str, at: float) -> PinChange:
    """Unpin a kernel in a context. Raises StoreError if nothing is pinned there."""
    with connection.transaction() as db:
        ended = _end(db.conn, kernel_key, context_key, at)
        if not ended:
            raise StoreError(f"kernel {kernel_key} has no pin in this context, so there is nothing to unpin")
        return PinChange(kernel_key, context_key, 0, ended)


def undo_pin(connection: Connection, change: PinChange, at: float) -> None:
    """Put back what was in force before the change. Raises StoreError if another change came after it."""
    with connection.transaction() as db:
        where = (change.kernel_key, change.context_key)
        now = [row[0] for row in db.conn.execute(f"SELECT id FROM pin WHERE {_IN_FORCE}", where)]
        if now != ([change.pinned] if change.pinned else []):
            raise StoreError(f"the pin of kernel {change.kernel_key} was changed again since, so this can't be undone")
        if change.pinned:
            db.conn.execute("UPDATE pin SET removed_at = ? WHERE id = ?", (at, change.pinned))
        for removed in change.removed[-1:]:
            db.conn.execute("UPDATE pin SET removed_at = NULL WHERE id = ?", (removed,))


_IN_FORCE = "kernel_key = ? AND context_key = ? AND removed_at IS NULL"


def _end(conn: Any, kernel_key: str, context_key: str, at: float) -> tuple[int, ...]:
    where = (kernel_key, context_key)
    ended = tuple(int(row[0]) for row in conn.execute(f"SELECT id FROM pin WHERE {_IN_FORCE} ORDER BY id", where))
    conn.execute(f"UPDATE pin SET removed_at = ? WHERE {_IN_FORCE}", (at, *where))
    return ended


def pins(connection: Connection, *, history: bool = False) -> tuple[StoredPin, ...]:
    """The pins in force, oldest first; with `history` the ended ones too."""
    where = "" if history else "WHERE removed_at IS NULL"
    return tuple(_stored(row) for row in connection.rows(f"SELECT * FROM pin {where} ORDER BY id"))


def _stored(row: Row) -> StoredPin:
    with named_row(f"pin {row['id']}"):
        schedule = Schedule.from_key(row["schedule"])
        pin = Pin(row["kernel_key"], schedule, row["author"] or "", float(row["at"] or 0.0), row["note"] or "")
        checked(pin)
        return StoredPin(int(row["id"]), pin, row["context_key"] or "", unreal(row["removed_at"]))


_TIMES = """
SELECT m.schedule, m.status, m.median_us, d.us AS deploy_us FROM measurement AS m LEFT JOIN (
    SELECT schedule, min(deploy_us) AS us FROM node
    WHERE deploy_status IS NOT NULL AND deploy_status = 'ok' AND kernel_key = :kernel AND context_key = :context
    GROUP BY schedule
) AS d ON d.schedule = m.schedule
WHERE m.kernel_key = :kernel AND m.context_key = :context
"""


def pin_standings(connection: Connection) -> tuple[PinStanding, ...]:
    """Every pin in force with how it stands, oldest first."""
    newest = connection.first("SELECT context_key FROM run ORDER BY started_at DESC, rowid DESC LIMIT 1")
    current = newest["context_key"] if newest else ""
    return tuple(_standing(connection, stored, current) for stored in pins(connection))


def _standing(connection: Connection, stored: StoredPin, current: str) -> PinStanding:
    pin = stored.pin
    kernel = connection.first("SELECT label, family, shape FROM kernel WHERE key = ?", (pin.kernel_key,)) or {}
    context = connection.first("SELECT gpu FROM context WHERE key = ?", (stored.context_key,)) or {}
    where = {"kernel": pin.kernel_key, "context": stored.context_key, "schedule": pin.schedule.key}
    own = connection.first(f"{_TIMES} AND m.schedule = :schedule", where)
    column = "deploy_us" if own and own["deploy_us"] is not None else "median_us"
    best = connection.first(
        f"{_TIMES} AND m.status = 'ok' AND {'d.us' if column == 'deploy_us' else 'm.median_us'} IS NOT NULL "
        f"ORDER BY {'d.us' if column == 'deploy_us' else 'm.median_us'}, m.id LIMIT 1",
        where,
    )
    with named_row(f"a time of kernel {pin.kernel_key}"):
        us, best_us = unreal(own[column]) if own else None, unreal(best[column]) if best else None
    gap = us / best_us - 1 if us is not None and best_us else None
    with named_row(f"the best schedule of kernel {pin.kernel_key}"):
        best_schedule = Schedule.from_key(best["schedule"]) if best else None
    return PinStanding(
        stored=stored,
        label=str(kernel.get("label") or kernel.get("family") or pin.kernel_key),
        shape=str(kernel.get("shape") or ""),
        gpu=str(context.get("gpu") or ""),
        us=us,
        best_us=best_us,
        best_schedule=best_schedule,
        gap=gap,
        standing=_verdict(own, us, best_us, other=stored.context_key != current),
    )


def _verdict(own: Row | None, us: float | None, best_us: float | None, *, other: bool) -> Standing:
    if other:
        return Standing.OTHER_CONTEXT
    if own is None:
        return Standing.UNMEASURED
    if us is None:
        return Standing.FAILED
    return Standing.FASTER if best_us is not None and us > best_us * FASTER_BY else Standing.OK
