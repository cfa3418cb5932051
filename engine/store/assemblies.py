"""Graphs that were assembled from a plan: each by the schedules that it was built with and the kind of its launches.

The grouping's own row says how the graph that counts did; here is every one that was tried, so that a run that comes
to the same schedules again launches nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlite_utils import Database

from engine.store.connection import Connection
from engine.store.records import RecordedAssembly
from engine.store.rows import (
    TRIED_COLUMNS,
    AssemblyColumns,
    RowName,
    named_row,
    read_failure,
    read_schedules,
    read_timing,
    real,
    samples_text,
    schedules_text,
    text,
    unreal,
)
from engine.vocabulary import Failure, Schedule, Timing


def assembly_values(
    columns: AssemblyColumns, timing: Timing | None, error: float | None, failure: Failure | None
) -> dict[str, Any]:
    """How a graph did, by column."""
    return {
        columns.us: real(timing.median_us) if timing else None,
        columns.low_us: real(timing.low_us) if timing else None,
        columns.high_us: real(timing.high_us) if timing else None,
        columns.samples: samples_text(timing),
        columns.error: real(error),
        columns.failure_kind: str(failure.kind) if failure else None,
        columns.cause: text(failure.cause) if failure else None,
    }


def read_assembly(columns: AssemblyColumns, row: Mapping[str, Any]) -> RecordedAssembly:
    """The same back from a row that also holds the graph's `schedules`."""
    return RecordedAssembly(
        timing=read_timing(*(row[name] for name in (columns.us, columns.low_us, columns.high_us, columns.samples))),
        error=unreal(row[columns.error]),
        failure=read_failure(row[columns.failure_kind], row[columns.cause]),
        schedules=read_schedules(row["schedules"]),
    )


def put_assembly(
    db: Database,
    grouping: str,
    timing: Timing | None,
    error: float | None,
    failure: Failure | None,
    schedules: Mapping[str, Schedule],
    pdl: bool,
    now: float,
) -> None:
    """Keep one graph of the plan of `grouping`, in the context of its run. The newest of equal ones stays."""
    of_grouping = "SELECT g.plan_key, r.context_key FROM grouping AS g JOIN run AS r ON r.id = g.run WHERE g.id = ?"
    for row in list(db.query(of_grouping, (grouping,))):
        db.table("assembly").upsert(
            {
                **row,
                "schedules": schedules_text(schedules),
                "pdl": int(pdl),
                "at": now,
                **assembly_values(TRIED_COLUMNS, timing, error, failure),
            },
            pk=("plan_key", "context_key", "schedules", "pdl"),
        )


def find_assembly(
    connection: Connection, plan: str, context_key: str, schedules: Mapping[str, Schedule], pdl: bool
) -> RecordedAssembly | None:
    """The graph of exactly these schedules, if it was tried."""
    where = "plan_key = ? AND context_key = ? AND schedules = ? AND pdl = ?"
    place = (plan, context_key, schedules_text(schedules), int(pdl))
    return connection.first_readable(f"SELECT rowid, * FROM assembly WHERE {where}", place, _read_tried)


def _read_tried(row: Mapping[str, Any]) -> RecordedAssembly:
    with named_row(RowName("assembly", row["rowid"])):
        return read_assembly(TRIED_COLUMNS, row)
