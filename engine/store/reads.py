"""Plain lookups: what is known of a candidate, a kernel, a run or a grouping. Each is one short read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from engine.ir.json_form import grouping_from_json, grouping_to_json, kernel_from_json, program_from_json
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping, Program
from engine.ir.roofline import Ceilings
from engine.knobs import canonical_position
from engine.store.assemblies import find_assembly, read_assembly
from engine.store.connection import Connection, Row
from engine.store.errors import StoreError
from engine.store.records import RecordedAssembly, RecordedGrouping, StoredRun
from engine.store.rows import (
    ASSEMBLED_COLUMNS,
    DEPLOY_COLUMNS,
    PDL_COLUMNS,
    AssemblyColumns,
    RowName,
    candidate_row,
    named_row,
    read_measurement,
    read_schedules,
    schedules_text,
    time_or_none,
    time_us,
)
from engine.store.typed import checked
from engine.store.writes import plan_key
from engine.vocabulary import Context, Measurement, Regime, Schedule, Target, Timing

_RANKING = "SELECT * FROM measurement WHERE kernel_key = ? AND context_key = ?"
_DEPLOY = (
    f"SELECT key, kernel_key, schedule, context_key, {', '.join(DEPLOY_COLUMNS.values())} FROM node "
    "WHERE deploy_status IS NOT NULL AND kernel_key = ? AND context_key = ?"
)


def last_heard(connection: Connection, run: str) -> float | None:
    """When a run wrote its last event, in seconds since 1970; None if it wrote none."""
    sql = "SELECT at FROM event WHERE run = ? ORDER BY seq DESC LIMIT 1"  # the clock of who writes may be set back
    row = connection.first(sql, (run,))
    return float(row["at"]) if row is not None and isinstance(row["at"], float | int) else None


def measurement(
    connection: Connection, kernel_key: str, schedule: Schedule, context_key: str, regime: Regime
) -> Measurement | None:
    sql = f"{_RANKING} AND schedule = ?"
    if regime is Regime.DEPLOY:
        sql = f"{_DEPLOY} AND schedule = ? ORDER BY deploy_status = 'ok' DESC, deploy_at, key"
    return connection.first_readable(sql, (kernel_key, context_key, schedule.key), _of(regime))


def _of(regime: Regime) -> Callable[[Row], Measurement]:
    return partial(read_measurement, regime=regime)


def fastest_of(
    connection: Connection, kernel_key: str, schedule: Schedule, context_key: str, regime: Regime
) -> Timing | None:
    """The fastest time of one schedule in a regime, with its samples; None where it has no time."""
    found = _fastest_where(connection, "schedule = ?", (kernel_key, context_key, schedule.key), regime)
    return found.timing if found is not None else None


def _fastest_where(
    connection: Connection, condition: str, parameters: tuple[str, ...], regime: Regime
) -> Measurement | None:
    """The fastest ok row of a kernel and context, the first two of the parameters, that meets a condition."""
    sql = f"{_RANKING} AND status = 'ok' AND {condition} ORDER BY median_us, schedule"
    if regime is Regime.DEPLOY:
        sql = f"{_DEPLOY} AND deploy_status = 'ok' AND {condition} ORDER BY deploy_us, schedule, key"
    return connection.first_readable(sql, parameters, _of(regime))


WITHOUT_CONTROLS = """ AND schedule NOT GLOB '*"ACF":"[0-9a-f]*'"""
"""A condition on rows whose schedules name no controls file: as `Schedule.key` writes them."""


def best(
    connection: Connection, kernel_key: str, context_key: str, regime: Regime, only: str = ""
) -> Measurement | None:
    """The fastest ok measurement among those that `only`, a condition, leaves; ties break by canonical knob order."""
    where = (kernel_key, context_key)
    if regime is Regime.RANKING:
        sql = f"{_RANKING} AND status = 'ok'{only} AND median_us = (SELECT min(median_us) FROM measurement "
        sql += f"WHERE kernel_key = ? AND context_key = ? AND status = 'ok'{only})"
        rows = connection.rows(sql, where * 2)
        tied = list(connection.readable(rows, _of(regime)))
        if rows and not tied:
            all_of_them = f"{_RANKING} AND status = 'ok'{only} ORDER BY median_us"
            tied = _fastest(connection, connection.rows(all_of_them, where), regime)
    else:
        rows = connection.rows(f"{_DEPLOY} AND deploy_status = 'ok'{only} ORDER BY deploy_us", where)
        tied = _fastest(connection, rows, regime)
    return min(tied, key=lambda m: [canonical_position(*knob) for knob in m.schedule.knobs], default=None)


def _fastest(connection: Connection, rows: Sequence[Row], regime: Regime) -> list[Measurement]:
    """The fastest that can be read, several where they tie; the rows are in the order of their times."""
    tied: list[Measurement] = []
    for found in connection.readable(rows, _of(regime)):
        if tied and found.us != tied[0].us:
            break
        tied.append(found)
    return tied


def second_best(
    connection: Connection, kernel_key: str, context_key: str, regime: Regime, schedule: Schedule
) -> Measurement | None:
    """The fastest ok measurement of another schedule."""
    return _fastest_where(connection, "schedule <> ?", (kernel_key, context_key, schedule.key), regime)


def schedules(connection: Connection, kernel_key: str, context_key: str) -> tuple[Schedule, ...]:
    """Every schedule with a ranking row, in the order in which the rows were written."""
    sql = "SELECT id, schedule FROM measurement WHERE kernel_key = ? AND context_key = ? ORDER BY id"
    rows = connection.tuples(sql, (kernel_key, context_key))
    return tuple(connection.readable(rows, partial(_read_schedule, kernel_key, Regime.RANKING)))


def _read_schedule(kernel_key: str, regime: Regime, row: tuple[Any, ...]) -> Schedule:
    """Of a row that begins with its number and its schedule."""
    with named_row(candidate_row(regime, row[0], kernel_key)):
        return Schedule.from_key(row[1])


def _read_time(kernel_key: str, regime: Regime, row: tuple[Any, ...]) -> tuple[Schedule, float]:
    """Of a row of its number, its schedule and its time."""
    with named_row(candidate_row(regime, row[0], kernel_key)):
        return Schedule.from_key(row[1]), time_us(row[2])


def timed(connection: Connection, kernel_key: str, context_key: str) -> dict[Schedule, float]:
    """Every candidate that was timed, with its deploy time where there is one, else its ranking time (us)."""
    place = (kernel_key, context_key)
    sql = "SELECT id, schedule, median_us FROM measurement WHERE kernel_key = ? AND context_key = ? AND status = 'ok'"
    ranking = connection.tuples(f"{sql} ORDER BY id", place)
    sql = "SELECT key, schedule, deploy_us FROM node WHERE deploy_status = 'ok' AND kernel_key = ? AND context_key = ?"
    deploy = connection.tuples(f"{sql} ORDER BY deploy_at DESC, key DESC", place)
    found = dict(connection.readable(ranking, partial(_read_time, kernel_key, Regime.RANKING)))
    return found | dict(connection.readable(deploy, partial(_read_time, kernel_key, Regime.DEPLOY)))


def measured_at(
    connection: Connection, kernel_key: str, schedule: Schedule, context_key: str, regime: Regime
) -> float | None:
    """When the candidate's time in the regime was taken, in seconds since 1970; None where there is none."""
    ranking = "SELECT measured_at AS at FROM measurement WHERE status = 'ok'"
    deploy = "SELECT min(deploy_at) AS at FROM node WHERE deploy_status = 'ok'"
    sql = f"{ranking if regime is Regime.RANKING else deploy} AND kernel_key = ? AND context_key = ? AND schedule = ?"
    found = connection.first(sql, (kernel_key, context_key, schedule.key))
    return float(found["at"]) if found is not None and isinstance(found["at"], int | float) else None


def context(row: Row) -> Context:
    with named_row(RowName("context", row["key"])):
        values = {f.name: row[f.name] for f in fields(Context)}
        return checked(Context(**{**values, "cold_l2": bool(row["cold_l2"])}))


def contexts(connection: Connection) -> tuple[Context, ...]:
    return tuple(connection.readable(connection.rows("SELECT * FROM context ORDER BY rowid"), context))


def target(connection: Connection, context_key: str) -> Target:
    """The chip of a context; an H200 where the recording doesn't say."""
    row = connection.first("SELECT target FROM context WHERE key = ?", (context_key,))
    if row is None or not row["target"]:
        return Target()
    with named_row(f"the chip of context {context_key}"):
        return checked(Target(**json.loads(row["target"])))


def ceilings(connection: Connection, context_key: str) -> Ceilings | None:
    """What the GPU of a context reaches; None where it was not measured."""
    sql = "SELECT key, ceilings FROM context WHERE key = ? AND ceilings <> ''"
    return connection.first_readable(sql, (context_key,), _ceilings)


def _ceilings(row: Row) -> Ceilings:
    with named_row(RowName("context", row["key"], "the ceilings of its GPU")):
        return Ceilings.from_text(row["ceilings"])


def kernels(connection: Connection) -> tuple[Kernel, ...]:
    return tuple(connection.readable(connection.rows("SELECT key, body FROM kernel ORDER BY rowid"), _kernel))


def kernel(connection: Connection, key: str) -> Kernel:
    row = connection.first("SELECT key, body FROM kernel WHERE key = ?", (key,))
    if row is None:
        raise StoreError(f"{connection.path} holds no kernel {key}")
    return _kernel(row)


def _kernel(row: Row) -> Kernel:
    with named_row(RowName("kernel", row["key"])):
        found = kernel_from_json(row["body"])
        if found.key != row["key"]:
            raise ValueError("its body is another kernel's")
        return found


_RUN = f"SELECT {', '.join(f.name for f in fields(StoredRun))} FROM run"


def _stored_run(row: Row) -> StoredRun:
    with named_row(RowName("run", row["id"])):
        return checked(StoredRun(**row))


def runs(connection: Connection) -> tuple[StoredRun, ...]:
    """Oldest first."""
    return tuple(connection.readable(connection.rows(f"{_RUN} ORDER BY started_at, rowid"), _stored_run))


def latest_run(connection: Connection) -> StoredRun | None:
    return connection.first_readable(f"{_RUN} ORDER BY started_at DESC, rowid DESC", (), _stored_run)


def run(connection: Connection, run_id: str) -> StoredRun:
    row = connection.first(f"{_RUN} WHERE id = ?", (run_id,))
    if row is None:
        raise StoreError(
            f"{connection.path} holds no run {run_id!r}; `runs` are listed by the screens and by `emmy eval`"
        )
    return _stored_run(row)


def program(connection: Connection, run_id: str) -> Program:
    row = connection.first("SELECT program FROM run WHERE id = ?", (run_id,))
    if row is None:
        raise StoreError(f"{connection.path} holds no run {run_id!r}")
    with named_row(RowName("run", run_id, f"the program of run {run_id}")):
        return program_from_json(row["program"])


def recorded_groupings(connection: Connection, run_id: str) -> tuple[RecordedGrouping, ...]:
    rows = connection.rows("SELECT * FROM grouping WHERE run = ? ORDER BY position", (run_id,))
    return tuple(connection.readable(rows, _recorded_grouping))


def recorded_grouping(connection: Connection, grouping: str) -> RecordedGrouping | None:
    """That of an id; None where it isn't there or can't be read."""
    return connection.first_readable("SELECT * FROM grouping WHERE id = ?", (grouping,), _recorded_grouping)


def _recorded_grouping(row: Row) -> RecordedGrouping:
    with named_row(RowName("grouping", row["id"])):
        grouping = grouping_from_json(row["plan"])
        time_of = partial(time_or_none, may_be_zero=not grouping.calls)
        return RecordedGrouping(
            id=row["id"],
            decisions=grouping.decisions,
            grouping=grouping,
            sum_us=time_of(row["sum_us"]),
            assembled_us=time_of(row["assembled_us"]),
            reason=row["reason"] or row["cause"] or "",
            pdl_us=time_of(row["pdl_us"]),
            pdl_reason=row["pdl_cause"] or "",
            schedules=read_schedules(row["schedules"]),
        )


def assembled(
    connection: Connection,
    grouping: Grouping | str,
    context_key: str,
    schedules: Mapping[str, Schedule] | None,
    pdl: bool,
) -> RecordedAssembly | None:
    """The newest assembly of this plan in this context: one that worked before one that failed.

    The plan itself, or the id of a grouping that has it. With `schedules`, only an assembly of exactly those; `pdl`
    asks for one with programmatic dependent launch.
    """
    plan = _plan_of(connection, grouping) if isinstance(grouping, str) else plan_key(grouping_to_json(grouping))
    if schedules is not None and (found := find_assembly(connection, plan, context_key, schedules, pdl)):
        return found
    columns = PDL_COLUMNS if pdl else ASSEMBLED_COLUMNS
    sql = "SELECT g.* FROM grouping AS g JOIN run AS r ON r.id = g.run WHERE g.plan_key = ? AND r.context_key = ? "
    sql += f"AND (g.{columns.us} IS NOT NULL OR g.{columns.failure_kind} IS NOT NULL) "
    parameters: list[object] = [plan, context_key]
    if schedules is not None:
        sql += "AND g.schedules = ? "
        parameters.append(schedules_text(schedules))
    order = f"ORDER BY g.{columns.us} IS NULL, g.rowid DESC"
    return connection.first_readable(f"{sql} {order}", parameters, partial(_read_assembled, columns))


def _plan_of(connection: Connection, grouping: str) -> str:
    """The key of a recorded grouping's plan; "" where there is no such grouping."""
    found = connection.first("SELECT plan_key FROM grouping WHERE id = ?", (grouping,))
    return str(found["plan_key"]) if found is not None else ""


def _read_assembled(columns: AssemblyColumns, row: Row) -> RecordedAssembly:
    with named_row(RowName("grouping", row["id"])):
        return read_assembly(columns, row)
