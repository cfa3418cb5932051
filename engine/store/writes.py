"""Every write, one transaction each, committed before the function returns: a killed run loses what is in flight only.

The first measurement of a candidate in a context stays: what later runs are served, and the path they walk, must
not change under them, and keeping the lower of two noisy times would bias every result low. A success replaces a
failure, which may have been the moment's (a timeout, a crash, a full GPU); nothing replaces a success.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlite_utils import Database

from engine.events import (
    Acted,
    CandidateStarted,
    CompilersSeen,
    Event,
    Health,
    NodeOpened,
    NodeState,
    NodeVisited,
    RunFinished,
    RunState,
    StateChanged,
    WorkersSeen,
)
from engine.ir.json_form import grouping_to_json, kernel_to_json, program_to_json
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.ir.roofline import Ceilings
from engine.store.assemblies import assembly_values, put_assembly
from engine.store.connection import Connection
from engine.store.records import NodeRecord, RunInfo, node_key
from engine.store.rows import (
    ASSEMBLED_COLUMNS,
    DEPLOY_COLUMNS,
    PDL_COLUMNS,
    RANKING_COLUMNS,
    outcome_columns,
    real,
    schedules_text,
    text,
)
from engine.vocabulary import Context, Failure, Measurement, Regime, Schedule, Status, Target, Timing, knobs_text


def plan_key(plan: str) -> str:
    """Equal plans have equal keys: 24 hex digits of the JSON text's sha256."""
    return hashlib.sha256(plan.encode()).hexdigest()[:24]


_PUT_EVENT = "INSERT INTO event (run, seq, at, kind, body) VALUES (?, ?, ?, ?, ?)"


def _event_row(run: str, seq: int, event: Event) -> tuple[object, ...]:
    """Its body is the event's fields as JSON without those at their default, which reading fills in again."""
    body = {f.name: value for f in fields(event) if (value := getattr(event, f.name)) != f.default and f.name != "at"}
    return run, seq, event.at, type(event).__name__, json.dumps(body, separators=(",", ":"))


class Writer:
    """The writing half of a store; it numbers the changes of each run. One thread only."""

    def __init__(self, connection: Connection, clock: Callable[[], float] = time.time) -> None:
        self._connection = connection
        self._clock = clock
        self._last: dict[str, int] = {}
        self._contexts: dict[str, str] = {}

    def context(self, context: Context, target: Target | None) -> None:
        row = {"key": context.key, **asdict(context), "cold_l2": int(context.cold_l2)}
        if target is not None:
            row["target"] = json.dumps(asdict(target))
        with self._connection.transaction() as db:
            db.table("context").upsert(_safe(row), pk="key")

    def ceilings(self, context_key: str, ceilings: Ceilings) -> None:
        """The first ones of a context stay, so that floors don't move."""
        with self._connection.transaction() as db:
            db.execute(
                "UPDATE context SET ceilings = ? WHERE key = ? AND ceilings IS NULL", (ceilings.text, context_key)
            )

    def kernel(self, kernel: Kernel) -> None:
        row = {
            "key": kernel.key,
            "family": kernel.family,
            "label": kernel.label,
            "body": kernel_to_json(kernel),
            "shape": kernel.shape_text,
            "flops": kernel.flops,
            "bytes": kernel.bytes_moved,
        }
        with self._connection.transaction() as db:
            db.table("kernel").insert(_safe(row), pk="key", ignore=True)

    def start_run(self, info: RunInfo) -> str:
        run = uuid.uuid4().hex[:12]
        with self._connection.transaction() as db:
            put_run(db, run, info, self._clock(), RunState.RUNNING)
        self._contexts[run] = info.context_key
        return run

    def end_run(self, run: str, state: RunState, summary: str) -> None:
        row = {"ended_at": self._clock(), "state": str(state), "summary": summary}
        with self._connection.transaction() as db:
            db.table("run").update(run, row)

    def grouping(self, run: str, grouping: Grouping) -> str:
        with self._connection.transaction() as db:
            return put_grouping(db, run, grouping)

    def score(self, grouping: str, sum_us: float | None, reason: str) -> None:
        with self._connection.transaction() as db:
            db.table("grouping").update(grouping, {"sum_us": real(sum_us), "reason": text(reason)})

    def assembled(
        self,
        grouping: str,
        timing: Timing | None,
        error: float | None,
        failure: Failure | None,
        schedules: Mapping[str, Schedule],
        pdl: bool,
    ) -> None:
        """The row of a grouping names one set of schedules: what it says of a graph of others is taken back."""
        columns, other = (PDL_COLUMNS, ASSEMBLED_COLUMNS) if pdl else (ASSEMBLED_COLUMNS, PDL_COLUMNS)
        built = schedules_text(schedules)
        row = assembly_values(columns, timing, error, failure) | {"schedules": built}
        with self._connection.transaction() as db:
            known = db.execute("SELECT schedules FROM grouping WHERE id = ?", (grouping,)).fetchone()
            if known is not None and known[0] not in (None, built):
                row = assembly_values(other, None, None, None) | row
            put_assembly(db, grouping, timing, error, failure, schedules, pdl, self._clock())
            db.table("grouping").update(grouping, row)

    def measurement(self, measurement: Measurement, run: str, trial: int, nodes: Sequence[NodeRecord]) -> None:
        now = self._clock()
        fresh = not measurement.cached and measurement.status is not Status.NOT_RECORDED
        with self._connection.transaction() as db:
            self._put_nodes(db, run, nodes, now)
            if fresh and measurement.regime is Regime.RANKING:
                put_ranking(db, measurement, run, trial, now)
            elif fresh:
                leaf = nodes[-1] if nodes else leaf_of(measurement)
                if not nodes:
                    self._put_nodes(db, run, (leaf,), now)
                put_deploy(db, measurement, leaf.node, now)

    def nodes(self, run: str, nodes: Sequence[NodeRecord]) -> None:
        with self._connection.transaction() as db:
            self._put_nodes(db, run, nodes, self._clock())

    def events(self, run: str, events: Sequence[Event]) -> None:
        last_visits = {event.node: event for event in events if isinstance(event, NodeVisited)}
        with self._connection.transaction() as db:
            opened: list[NodeOpened] = []
            for event in events:
                if isinstance(event, NodeOpened):
                    opened.append(event)
                elif not isinstance(event, NodeVisited) or last_visits[event.node] is event:
                    self._put_opened(db, run, opened)
                    self._put_event(db, run, event)
            self._put_opened(db, run, opened)

    def _put_opened(self, db: Database, run: str, opened: list[NodeOpened]) -> None:
        """Write them together, and leave the list empty."""
        if opened:
            context = self._context_of(db, run)
            rows = [node_row(_node_of(event), run, context, self._next(db, run), event.at) for event in opened]
            db.conn.executemany(_OPEN_NODE, rows)
            opened.clear()

    def _put_event(self, db: Database, run: str, event: Event) -> None:
        if isinstance(event, CandidateStarted):
            return
        if isinstance(event, NodeVisited):
            self._visit(db, run, event)
            return
        kind = type(event).__name__
        if isinstance(event, StateChanged):
            db.table("run").update(run, {"state": event.state, "reason": text(event.reason)})
        if isinstance(event, Acted):
            _put_act(db, event, run)
        if isinstance(event, Health | CompilersSeen | WorkersSeen):
            db.table("event").delete_where("run = ? AND kind = ?", (run, kind))
        db.execute(_PUT_EVENT, _event_row(run, self._next(db, run), event))

    def _visit(self, db: Database, run: str, event: NodeVisited) -> None:
        values = (event.visits, real(event.best_us), str(event.state))
        db.execute(
            "UPDATE node SET visits = ?, best_us = ?, state = ?, seq = ?, updated_at = ? "
            "WHERE key = ? AND run = ? AND (visits, best_us, state) IS NOT (?, ?, ?)",
            (*values, self._next(db, run), event.at, event.node, run, *values),
        )

    def _put_nodes(self, db: Database, run: str, nodes: Sequence[NodeRecord], now: float) -> None:
        """Insert or update; deploy columns stay. A node that another run touched last becomes this run's."""
        context = self._context_of(db, run)
        rows = [node_row(node, run, context, self._next(db, run), now) for node in nodes]
        db.conn.executemany(PUT_NODE, rows)

    def _context_of(self, db: Database, run: str) -> str:
        if run not in self._contexts:
            self._contexts[run] = str(db.table("run").get(run)["context_key"])
        return self._contexts[run]

    def _next(self, db: Database, run: str) -> int:
        if run not in self._last:
            newest = (f"SELECT max(seq) FROM {table} WHERE run = ?" for table in ("event", "node"))
            self._last[run] = max(_number(db, sql, (run,)) for sql in newest)
        self._last[run] += 1
        return self._last[run]


_NODE_COLUMNS = (
    *("key", "parent", "run", "context_key", "kernel_key", "knobs", "label", "depth", "prior", "visits", "best_us"),
    *("state", "is_leaf", "opened", "seq", "updated_at"),
)
_INSERT_NODE = (
    f"INSERT INTO node ({', '.join(_NODE_COLUMNS)}) VALUES ({', '.join('?' for _ in _NODE_COLUMNS)}) "
    "ON CONFLICT (key) DO UPDATE SET "
)


def _taken(*, besides: tuple[str, ...]) -> str:
    return ", ".join(f"{column} = excluded.{column}" for column in _NODE_COLUMNS if column not in besides)


def _kept_within_a_run(*columns: str) -> str:
    return ", ".join(
        f"{column} = CASE WHEN node.run = excluded.run THEN node.{column} ELSE excluded.{column} END"
        for column in columns
    )


PUT_NODE = f"{_INSERT_NODE}{_taken(besides=('key', 'opened'))}, {_kept_within_a_run('opened')}"
_OUTCOME = ("visits", "best_us", "state")
_OPEN_NODE = f"{_INSERT_NODE}{_taken(besides=('key', 'knobs', 'is_leaf', *_OUTCOME))}, {_kept_within_a_run(*_OUTCOME)}"
"""An opening may come after the first visit; it says where the node stands among its siblings, and no more."""


def node_row(node: NodeRecord, run: str | None, context: str, seq: int, now: float) -> tuple[object, ...]:
    knobs = knobs_text(node.knobs)
    outcome = (node.visits, real(node.best_us), str(node.state), int(node.is_leaf))
    place = (node.node, node.parent, run, context, node.kernel_key, knobs, text(node.label), node.depth)
    return (*place, real(node.prior), *outcome, seq, seq, now)


def _node_of(event: NodeOpened) -> NodeRecord:
    return NodeRecord(event.node, event.parent, event.kernel, {}, event.label, event.depth, event.prior)


def leaf_of(measurement: Measurement) -> NodeRecord:
    """The leaf of a deploy row that no search led to: a re-measured pin, a merged database."""
    knobs = measurement.schedule.as_dict()
    key = node_key(measurement.context_key, measurement.kernel_key, knobs)
    state = NodeState.MEASURED if measurement.status is Status.OK else NodeState.FAILED
    return NodeRecord(key, "", measurement.kernel_key, knobs, "", 0, 1.0, 0, measurement.us, state, True)


def put_run(db: Database, run: str, info: RunInfo, started_at: float, state: RunState) -> None:
    """A run's row, inside a transaction of the caller's."""
    row = {f.name: getattr(info, f.name) for f in fields(info)} | {
        "id": run,
        "program": program_to_json(info.program),
        "started_at": started_at,
        "state": str(state),
        "reason": "",
        "summary": "{}",
    }
    db.table("run").insert(_safe(row), pk="id")


def put_grouping(db: Database, run: str, grouping: Grouping) -> str:
    """The next grouping of a run, inside a transaction of the caller's; returns its id."""
    plan = grouping_to_json(grouping)
    position = 1 + (_number(db, "SELECT max(position) FROM grouping WHERE run = ?", (run,)))
    name = f"{run}/{position}"
    db.table("grouping").insert(
        {
            "id": name,
            "run": run,
            "position": position,
            "decisions": json.dumps([option.knobs for option in grouping.decisions]),
            "plan": plan,
            "plan_key": plan_key(plan),
            "reason": "",
        },
        pk="id",
    )
    db.table("grouping_kernel").insert_all(
        {"grouping": name, "kernel_key": key, "count": count} for key, (_, count) in grouping.kernel_counts().items()
    )
    return name


def put_journal(db: Database, run: str, events: Iterable[Event], after: int = 0) -> None:
    """Events of a run that came in a file, numbered from `after` on, inside a transaction of the caller's."""
    rows = (_event_row(run, seq, event) for seq, event in enumerate(events, start=after + 1))
    db.conn.executemany(_PUT_EVENT, rows)


def put_end(db: Database, run: str, end: RunFinished) -> None:
    """When and how a run ended that came in a file, inside a transaction of the caller's."""
    summary = {name: value for name, value in asdict(end).items() if name != "at"}
    db.table("run").update(run, {"ended_at": end.at, "summary": json.dumps(summary)})


def put_ranking(db: Database, measurement: Measurement, run: str | None, trial: int, now: float) -> None:
    outcome = outcome_columns(measurement, RANKING_COLUMNS) | {"run": run, "trial": trial, "measured_at": now}
    row = {
        "kernel_key": measurement.kernel_key,
        "schedule": measurement.schedule.key,
        "context_key": measurement.context_key,
        **outcome,
    }
    db.execute(
        f"INSERT INTO measurement ({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)}) "
        "ON CONFLICT (kernel_key, context_key, schedule) "
        f"DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in outcome)} "
        "WHERE measurement.status = 'failed' AND excluded.status = 'ok'",
        row,
    )


def put_deploy(db: Database, measurement: Measurement, leaf: str, now: float) -> None:
    outcome = outcome_columns(measurement, DEPLOY_COLUMNS) | {"schedule": measurement.schedule.key, "deploy_at": now}
    db.execute(
        f"UPDATE node SET {', '.join(f'{name} = :{name}' for name in outcome)} WHERE key = :key "
        "AND (deploy_status IS NULL OR (deploy_status = 'failed' AND :deploy_status = 'ok'))",
        {**outcome, "key": leaf},
    )


def _number(db: Database, sql: str, parameters: tuple[object, ...]) -> int:
    return int(db.conn.execute(sql, parameters).fetchone()[0] or 0)


def _safe(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: text(value) if isinstance(value, str) else value for name, value in row.items()}


def _put_act(db: Database, event: Acted, run: str) -> None:
    db.table("act").insert(
        {
            "run": run,
            "at": event.at,
            "verb": text(event.verb),
            "kernel_key": event.kernel,
            "detail": text(event.detail),
            "author": text(event.author),
        },
        pk="id",
    )
