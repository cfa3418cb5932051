"""Pins: which schedule a person chose for a kernel in a context, who, when and why, and how it stands today.

A row is never deleted. Unpinning, or pinning something else, marks it as removed, so the history says who chose what
and when; undoing marks back. At most one pin of a kernel and context is in force.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.store.connection import Connection, Row
from engine.store.errors import StoreError
from engine.store.reads import best, fastest_of, measured_at, measurement
from engine.store.rows import RowName, named_row, text, unreal
from engine.store.run_results import context_noise_share
from engine.store.typed import checked
from engine.vocabulary import Measurement, Pin, Regime, Schedule, Timing, Verdict

Judge = Callable[[Timing, Timing, float | None], Verdict]
"""How the second time compares with the first, given the noise floor of the machine (a share, None: not measured)."""


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
    """How a pin compares with what the database knows now.

    SLOWER: a faster one was known when the pin was made, so it was chosen all the same; FASTER: one came after it.
    """

    OK = "ok"
    SLOWER = "a faster one is known"
    FASTER = "something faster now"
    UNMEASURED = "unmeasured"
    FAILED = "failed"
    OTHER_CONTEXT = "other context"
    ILLEGAL = "illegal"


@dataclass(frozen=True, slots=True)
class PinStanding:
    """A pin in force beside its kernel's best. `us` and `best_us` are deploy times where both have one, else ranking;
    `best_us` of a pin without a time is the deploy time where there is one.

    `gap` is us / best_us - 1, None unless both are known; `noise_share` is the noise floor that the context's newest
    run measured. OTHER_CONTEXT: the newest run used other versions or chips. ILLEGAL is for whoever knows the kernels'
    families to say, with `illegal`, the sentence why it can't be built.
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
    noise_share: float | None = None
    illegal: str = ""

    @property
    def stale(self) -> bool:
        """Whether it was overtaken since, beyond noise, or is of other versions or chips than the newest run.

        One without a time, failed or illegal was never true of this machine; one that was known to be slower is meant.
        """
        return self.standing in (Standing.FASTER, Standing.OTHER_CONTEXT)


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
    return tuple(connection.readable(connection.rows(f"SELECT * FROM pin {where} ORDER BY id"), _stored))


def _stored(row: Row) -> StoredPin:
    with named_row(RowName("pin", row["id"])):
        schedule = Schedule.from_key(row["schedule"])
        pin = Pin(row["kernel_key"], schedule, row["author"] or "", float(row["at"] or 0.0), row["note"] or "")
        checked(pin)
        return StoredPin(int(row["id"]), pin, row["context_key"] or "", unreal(row["removed_at"]))


def pin_standings(connection: Connection, judge: Judge) -> tuple[PinStanding, ...]:
    """Every pin in force with how it stands, oldest first; `judge` says whether the best is faster than the pin."""
    newest = connection.first("SELECT context_key FROM run ORDER BY started_at DESC, rowid DESC LIMIT 1")
    current = newest["context_key"] if newest else ""
    in_force = pins(connection)
    noise = {key: context_noise_share(connection, key) for key in {stored.context_key for stored in in_force}}
    return tuple(_standing(connection, one, current, noise[one.context_key], judge) for one in in_force)


def _standing(
    connection: Connection, stored: StoredPin, current: str, noise: float | None, judge: Judge
) -> PinStanding:
    pin = stored.pin
    kernel = connection.first("SELECT label, family, shape FROM kernel WHERE key = ?", (pin.kernel_key,)) or {}
    context = connection.first("SELECT gpu FROM context WHERE key = ?", (stored.context_key,)) or {}
    of_pin = (connection, pin.kernel_key, pin.schedule, stored.context_key)
    own = measurement(*of_pin, Regime.RANKING) or measurement(*of_pin, Regime.DEPLOY)
    mine = fastest_of(*of_pin, Regime.DEPLOY)
    regime = Regime.DEPLOY if mine is not None else Regime.RANKING
    mine = mine or fastest_of(*of_pin, regime)
    of_kernel = (connection, pin.kernel_key, stored.context_key)
    fastest = best(*of_kernel, regime) if mine else best(*of_kernel, Regime.DEPLOY) or best(*of_kernel, regime)
    us, best_us = mine.median_us if mine else None, fastest.us if fastest else None
    standing = _state(own, us, other=stored.context_key != current)
    of_best = fastest.timing if fastest and us != best_us else None
    if standing is Standing.OK and mine and fastest and of_best and judge(mine, of_best, noise) is Verdict.FASTER:
        known = measured_at(*of_kernel[:2], fastest.schedule, stored.context_key, fastest.regime)
        standing = Standing.SLOWER if known is not None and known <= pin.at else Standing.FASTER
    return PinStanding(
        stored=stored,
        label=str(kernel.get("label") or kernel.get("family") or pin.kernel_key),
        shape=str(kernel.get("shape") or ""),
        gpu=str(context.get("gpu") or ""),
        us=us,
        best_us=best_us,
        best_schedule=fastest.schedule if fastest else None,
        gap=us / best_us - 1 if us is not None and best_us else None,
        standing=standing,
        noise_share=noise,
    )


def _state(own: Measurement | None, us: float | None, *, other: bool) -> Standing:
    """How a pin stands by itself: OK for one that has a time."""
    if other:
        return Standing.OTHER_CONTEXT
    if own is None:
        return Standing.UNMEASURED
    return Standing.FAILED if us is None else Standing.OK
