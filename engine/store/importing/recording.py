"""Writes imported results as a finished run that everything reads as if it had been tuned here.

The run is named by its kernel and context, so importing again finds it: points that are there stay as they are, new
ones join, and nothing doubles. All files of one call are one transaction.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlite_utils import Database

from engine.events import (
    Event,
    GroupingEntered,
    GroupingScored,
    KernelFinished,
    KernelFound,
    KernelStarted,
    KernelState,
    Measured,
    RunFinished,
    RunState,
)
from engine.ir.foreign import NOTHING
from engine.ir.json_form import kernel_to_json
from engine.ir.kernel import Kernel
from engine.ir.plan import BufferView, Grouping, KernelCall, Program
from engine.store.importing.results import ForeignResults, ForeignRow
from engine.store.records import IMPORTED, RunInfo
from engine.store.rows import RANKING_COLUMNS, outcome_columns, text
from engine.store.writes import put_end, put_grouping, put_journal, put_run
from engine.vocabulary import Measurement, Regime, Status


@dataclass(frozen=True, slots=True)
class Imported:
    """What one file came to: its points, how many of them failed, and how many the database did not have yet."""

    run: str
    kernel: Kernel
    gpu: str
    origin: str
    points: int
    failed: int
    new: int


def write_all(
    db: Database, results: Sequence[ForeignResults], now: float, version: str, command: str
) -> list[Imported]:
    """Inside a transaction of the caller's."""
    return [_write(db, one, now, version, command) for one in results]


def foreign_grouping(kernel: Kernel) -> Grouping:
    """The plan that launches a foreign kernel once: nothing in, nothing out."""
    first, second = BufferView(0, NOTHING), BufferView(1, NOTHING)
    return Grouping((NOTHING, NOTHING), (KernelCall(kernel, (first,), (1,)),), (second,))


def _write(db: Database, results: ForeignResults, now: float, version: str, command: str) -> Imported:
    kernel, context = results.kernel, results.context
    place = (kernel.key, context.key)
    run = hashlib.sha256(json.dumps(["import", *place]).encode()).hexdigest()[:12]
    began = min((row.at for row in results.rows if row.at is not None), default=now)
    _put_things(db, results)
    known = _known(db, place)
    fresh = [row for row in results.rows if _adds(row, known.get(row.schedule.key))]
    new_run = next(iter(db.query("SELECT 1 FROM run WHERE id = ?", (run,))), None) is None
    if new_run:
        _put_run(db, results, run, began, version, command)
    trial = len(known)
    measured = []
    for row in fresh:
        trial += row.schedule.key not in known
        measured.append((row, trial))
        _put_row(db, results, run, row, trial, now)
    if fresh or new_run:
        _put_journal(db, results, run, measured, now, new_run)
    failed = sum(row.failure is not None for row in results.rows)
    return Imported(run, kernel, context.gpu, results.origin, len(results.rows), failed, len(fresh))


def _put_things(db: Database, results: ForeignResults) -> None:
    kernel, context = results.kernel, results.context
    db.table("context").insert(
        {"key": context.key, **asdict(context), "gpu": text(context.gpu), "cold_l2": 0}, pk="key", ignore=True
    )
    row: dict[str, Any] = {
        "key": kernel.key,
        "family": kernel.family,
        "label": kernel.label,
        "body": kernel_to_json(kernel),
    }
    row |= {"shape": kernel.shape_text, "flops": kernel.flops, "bytes": kernel.bytes_moved}
    db.table("kernel").insert(row, pk="key", ignore=True)


def _known(db: Database, place: tuple[str, str]) -> dict[str, str]:
    """Status by schedule key of what is recorded there."""
    sql = "SELECT schedule, status FROM measurement WHERE kernel_key = ? AND context_key = ?"
    return {str(schedule): str(status) for schedule, status in db.conn.execute(sql, place)}


def _adds(row: ForeignRow, known: str | None) -> bool:
    """Whether the point is new; like any measurement, a time replaces a failure and nothing replaces a time."""
    return known is None or (known == Status.FAILED and row.timing is not None)


def _put_run(db: Database, results: ForeignResults, run: str, began: float, version: str, command: str) -> None:
    kernel = results.kernel
    target = f"{kernel.label} {kernel.shape_text}".strip()
    info = RunInfo(
        target,
        Program(kernel.body, target, IMPORTED),
        IMPORTED,
        results.context.gpu,
        results.context.key,
        seed=0,
        patience=len(results.rows),
        prior=f"none: imported from a {results.origin} file",
        command=command,
        version=version,
    )
    put_run(db, run, info, began, RunState.FINISHED)
    put_grouping(db, run, foreign_grouping(kernel))


def _put_row(db: Database, results: ForeignResults, run: str, row: ForeignRow, trial: int, now: float) -> None:
    measurement = Measurement(
        kernel_key=results.kernel.key,
        schedule=row.schedule,
        regime=Regime.RANKING,
        context_key=results.context.key,
        status=Status.FAILED if row.timing is None else Status.OK,
        timing=row.timing,
        failure=row.failure,
        build=row.build,
        run_s=row.run_s,
    )
    columns = {
        "kernel_key": measurement.kernel_key,
        "schedule": measurement.schedule.key,
        "context_key": measurement.context_key,
        **outcome_columns(measurement, RANKING_COLUMNS),
        "run": run,
        "trial": trial,
        "measured_at": now if row.at is None else row.at,
    }
    taken = ", ".join(f"{name} = excluded.{name}" for name in columns)
    db.conn.execute(
        f"INSERT INTO measurement ({', '.join(columns)}) VALUES ({', '.join(f':{name}' for name in columns)}) "
        f"ON CONFLICT (kernel_key, context_key, schedule) DO UPDATE SET {taken}",
        columns,
    )


def _put_journal(
    db: Database,
    results: ForeignResults,
    run: str,
    rows: Sequence[tuple[ForeignRow, int]],
    now: float,
    new_run: bool,
) -> None:
    """The run's events, and its end: written anew each time points join, so that a reader sees one whole run."""
    at = max((row.at for row in results.rows if row.at is not None), default=now)
    db.table("event").delete_where("run = ? AND kind IN (?, ?)", (run, "KernelFinished", "GroupingScored"))
    sql = "SELECT coalesce(max(seq), 0), (SELECT min(median_us) FROM measurement WHERE run = ?1 AND status = 'ok'), "
    sql += "(SELECT count(*) FROM measurement WHERE run = ?1), "
    sql += "(SELECT count(*) FROM measurement WHERE run = ?1 AND status = 'failed') FROM event WHERE run = ?1"
    seq, best_us, points, failed = db.conn.execute(sql, (run,)).fetchone()
    events = [*(_opening(results, run, at) if new_run else ()), *_measured(results.kernel.key, rows, at)]
    events += _closing(results, run, best_us, at)
    put_journal(db, run, events, after=seq)
    end = RunFinished(
        at=at,
        measured=points,
        cached=0,
        failed=failed,
        best_us=best_us,
        sum_us=best_us,
        assembled_us=None,
        search_share=0.0,
        gpu_idle_share=0.0,
        wall_s=max(at - min((row.at for row in results.rows if row.at is not None), default=at), 0.0),
    )
    put_end(db, run, end)
    db.table("grouping").update(f"{run}/1", {"sum_us": best_us})


def _opening(results: ForeignResults, run: str, at: float) -> list[Event]:
    kernel = results.kernel
    found = KernelFound(
        at=at,
        kernel=kernel.key,
        label=kernel.label,
        family=kernel.family,
        shape=kernel.shape_text,
        count=1,
        flops=kernel.flops,
        bytes_moved=kernel.bytes_moved,
    )
    entered = GroupingEntered(at=at, grouping=f"{run}/1", decisions=(), kernels=(kernel.key,), counts=(1,))
    return [found, entered, KernelStarted(at=at, kernel=kernel.key, patience=len(results.rows))]


def _measured(kernel: str, rows: Sequence[tuple[ForeignRow, int]], at: float) -> list[Event]:
    events: list[Event] = []
    best = float("inf")
    for row, trial in rows:
        us = row.timing.median_us if row.timing else None
        leads = us is not None and us < best
        best = us if us is not None and leads else best
        events.append(
            Measured(
                at=at if row.at is None else row.at,
                kernel=kernel,
                node="",
                schedule=str(row.schedule),
                regime=str(Regime.RANKING),
                status=str(Status.FAILED if us is None else Status.OK),
                trial=trial,
                us=us,
                low_us=row.timing.low_us if row.timing else None,
                high_us=row.timing.high_us if row.timing else None,
                failure=str(row.failure.kind) if row.failure else "",
                cause=text(row.failure.cause) if row.failure else "",
                best=leads,
            )
        )
    return events


def _closing(results: ForeignResults, run: str, best_us: float | None, at: float) -> list[Event]:
    state = str(KernelState.FAILED if best_us is None else KernelState.DONE)
    reason = f"imported from a {results.origin} file"
    return [
        KernelFinished(at=at, kernel=results.kernel.key, state=state, reason=reason, best_us=None),
        GroupingScored(at=at, grouping=f"{run}/1", sum_us=best_us, reason="" if best_us else "every point failed"),
    ]
