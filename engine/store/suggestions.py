"""Suggestions: schedules that were measured or pinned on another GPU or toolchain, and never decide anything here.

The next search of the kernel tries them first, so that a suggestion becomes evidence of this machine or is found wrong.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlite_utils import Database

from engine.store.connection import Connection, Row
from engine.store.rows import RowName, named_row, real, text, time_or_none, unreal
from engine.vocabulary import Context, Schedule


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One schedule from elsewhere. `us` is its time there in the regime `regime` ("" and None where it has none).

    `origin` is where it comes from; `reason` says in words why it is a suggestion; `author` and `note` are those of the
    pin that it was there, "" where it was none; `at` is when it came here.
    """

    kernel_key: str
    schedule: Schedule
    origin: Context
    reason: str
    us: float | None = None
    regime: str = ""
    author: str = ""
    note: str = ""
    at: float = 0.0


def put_suggestions(db: Database, suggestions: Sequence[Suggestion]) -> int:
    """Add those that aren't there yet, inside a transaction of the caller's; returns how many."""
    before = db.conn.total_changes
    db.table("suggestion").insert_all((_columns(one) for one in suggestions), ignore=True)
    return db.conn.total_changes - before


def suggestions(connection: Connection, kernel_key: str | None = None) -> tuple[Suggestion, ...]:
    """Those of a kernel, or all: the fastest there first, then those that were timed nowhere."""
    where, values = ("", ()) if kernel_key is None else (" WHERE kernel_key = ?", (kernel_key,))
    rows = connection.rows(
        f"SELECT rowid, * FROM suggestion{where} ORDER BY kernel_key, us IS NULL, us, schedule, origin", values
    )
    return tuple(connection.readable(rows, _suggestion))


def _columns(one: Suggestion) -> dict[str, object]:
    return {
        "kernel_key": one.kernel_key,
        "schedule": text(one.schedule.key),
        "origin": one.origin.key,
        "gpu": text(one.origin.gpu),
        "versions": json.dumps(asdict(one.origin), sort_keys=True),
        "reason": text(one.reason),
        "us": real(one.us),
        "regime": one.regime,
        "author": text(one.author),
        "note": text(one.note),
        "at": one.at,
    }


def _suggestion(row: Row) -> Suggestion:
    with named_row(RowName("suggestion", row["rowid"], f"for kernel {row['kernel_key']}")):
        return Suggestion(
            kernel_key=row["kernel_key"],
            schedule=Schedule.from_key(row["schedule"]),
            origin=Context(**json.loads(row["versions"])),
            reason=row["reason"] or "",
            us=time_or_none(row["us"]),
            regime=row["regime"] or "",
            author=row["author"] or "",
            note=row["note"] or "",
            at=unreal(row["at"]) or 0.0,
        )
