"""Results that came in a file from another machine and were taken in a context of this database.

Times of kernels stand as if they had been measured here, but belong to no run: a run's journal tells what that run did.
A whole graph is the one grouping of a finished run, as everything looks for graphs in the runs of a program. It stands
before the program's own runs, so that the newest run is one of this machine wherever there is one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlite_utils import Database

from engine.events import (
    Assembled,
    Event,
    GroupingEntered,
    GroupingScored,
    KernelFinished,
    KernelFound,
    KernelState,
    RunFinished,
    RunState,
)
from engine.ir.json_form import grouping_to_json
from engine.ir.plan import Grouping, Program
from engine.store.assemblies import assembly_values, put_assembly
from engine.store.records import IMPORTED, RunInfo
from engine.store.rows import ASSEMBLED_COLUMNS, PDL_COLUMNS, real, schedules_text
from engine.store.writes import (
    PUT_NODE,
    leaf_of,
    node_row,
    plan_key,
    put_deploy,
    put_end,
    put_grouping,
    put_journal,
    put_ranking,
    put_run,
)
from engine.vocabulary import Measurement, Regime, Schedule, Timing


@dataclass(frozen=True, slots=True)
class CarriedGraph:
    """A program's fastest graph in a context: its plan, the schedules that it was built with, by structural key, and
    its time. `sum_us` is that of its kernels; `known_until` is when the last run ended that such graphs were timed in,
    in seconds since 1970."""

    program: Program
    context_key: str
    grouping: Grouping
    schedules: Mapping[str, Schedule]
    timing: Timing
    pdl: bool
    known_until: float
    sum_us: float | None = None
    error: float | None = None


def put_evidence(db: Database, taken: Sequence[tuple[Measurement, float | None]], now: float) -> int:
    """Add what isn't there yet, inside a transaction of the caller's; returns how many rows are new or better.

    With each result comes when it was taken, None where nothing says. Like any measurement, a time replaces a failure
    and nothing replaces a time. Kernels and contexts are recorded before.
    """
    return sum(_put(db, result, now if at is None else min(at, now)) for result, at in taken)


def _put(db: Database, measurement: Measurement, at: float) -> bool:
    if measurement.regime is Regime.RANKING:
        before = db.conn.total_changes
        put_ranking(db, measurement, None, 0, at)
        return db.conn.total_changes > before
    leaf = leaf_of(measurement)
    if not db.conn.execute("SELECT 1 FROM node WHERE key = ?", (leaf.node,)).fetchone():
        db.conn.execute(PUT_NODE, node_row(leaf, None, measurement.context_key, 0, at))
    before = db.conn.total_changes
    put_deploy(db, measurement, leaf.node, at)
    return db.conn.total_changes > before


def put_graph(db: Database, graph: CarriedGraph, gpu: str, version: str, now: float) -> None:
    """Add a graph that isn't there, inside a transaction of the caller's. The run is named by what was timed."""
    built = (plan_key(grouping_to_json(graph.grouping)), graph.context_key, schedules_text(graph.schedules), graph.pdl)
    run = hashlib.sha256(json.dumps(["graph", *built]).encode()).hexdigest()[:12]
    target, known_until = graph.program.target, min(graph.known_until, now)
    own = db.conn.execute(
        "SELECT min(started_at) FROM run WHERE target = ? AND context_key = ?", (target, graph.context_key)
    ).fetchone()[0]
    info = RunInfo(
        *(target, graph.program, IMPORTED, gpu, graph.context_key),
        seed=0,
        patience=0,
        prior="none: imported from a file of schedules",
        version=version,
    )
    put_run(db, run, info, known_until if own is None else min(known_until, own - 1.0), RunState.FINISHED)
    name = put_grouping(db, run, graph.grouping)
    columns = PDL_COLUMNS if graph.pdl else ASSEMBLED_COLUMNS
    timed = assembly_values(columns, graph.timing, graph.error, None)
    db.table("grouping").update(name, {**timed, "sum_us": real(graph.sum_us), "schedules": built[2]})
    put_assembly(db, name, graph.timing, graph.error, None, graph.schedules, graph.pdl, known_until)
    put_journal(db, run, _journal(graph, name, known_until))
    put_end(db, run, _end(graph, known_until))


def _journal(graph: CarriedGraph, name: str, at: float) -> list[Event]:
    counts = graph.grouping.kernel_counts()
    found: list[Event] = [
        KernelFound(
            at=at,
            kernel=key,
            label=kernel.label,
            family=kernel.family,
            shape=kernel.shape_text,
            count=count,
            flops=kernel.flops,
            bytes_moved=kernel.bytes_moved,
        )
        for key, (kernel, count) in counts.items()
    ]
    decisions = tuple(str(option) for option in graph.grouping.decisions)
    times = tuple(count for _, count in counts.values())
    reason = "imported from a file of schedules"
    ended = [KernelFinished(at=at, kernel=key, state=KernelState.DONE, reason=reason, best_us=None) for key in counts]
    return [
        *found,
        GroupingEntered(at=at, grouping=name, decisions=decisions, kernels=tuple(counts), counts=times),
        *ended,
        GroupingScored(at=at, grouping=name, sum_us=graph.sum_us),
        Assembled(
            at=at,
            grouping=name,
            sum_us=graph.sum_us or 0.0,
            assembled_us=graph.timing.median_us,
            error=graph.error,
            pdl=graph.pdl,
        ),
    ]


def _end(graph: CarriedGraph, at: float) -> RunFinished:
    return RunFinished(
        at=at,
        measured=0,
        cached=0,
        failed=0,
        best_us=None,
        sum_us=graph.sum_us,
        assembled_us=graph.timing.median_us,
        search_share=0.0,
        gpu_idle_share=0.0,
        wall_s=0.0,
    )
