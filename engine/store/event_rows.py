"""Rows as the events that they keep: the journal, the tree, and a run's own row."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields

from engine.events import EVENT_TYPES, Event, NodeOpened, NodeVisited, RunFinished, RunStarted
from engine.store.connection import Row
from engine.store.records import StoredRun
from engine.store.rows import RowName, named_row, time_or_none, unreal
from engine.store.typed import checked

TIMES = frozenset({"us", "low_us", "high_us", "best_us", "sum_us", "assembled_us", "alone_us"})
MAY_BE_ZERO = frozenset({"sum_us", "assembled_us", "alone_us"})
"""Of a program that launches nothing."""


def read_event(row: Row) -> Event:
    """A journal row as the event it was. Raises BadRow."""
    with named_row(RowName("event", row["seq"])):
        body = {name: tuple(v) if isinstance(v, list) else v for name, v in json.loads(row["body"]).items()}
        for name in TIMES & body.keys():
            time_or_none(body[name], may_be_zero=name in MAY_BE_ZERO)
        return checked(EVENT_TYPES[row["kind"]](at=row["at"], **body))


def node_opened(row: Row) -> NodeOpened:
    """Raises BadRow."""
    with named_row(RowName("node", row["key"])):
        return checked(
            NodeOpened(
                at=row["updated_at"],
                node=row["key"],
                parent=row["parent"],
                kernel=row["kernel_key"],
                label=row["label"],
                prior=unreal(row["prior"]) or 0.0,
                depth=row["depth"],
            )
        )


def node_visited(row: Row, visits: int, best_us: float | None, state: str) -> NodeVisited:
    """Raises BadRow."""
    with named_row(RowName("node", row["key"])):
        return checked(NodeVisited(at=row["updated_at"], node=row["key"], visits=visits, best_us=best_us, state=state))


def run_started(stored: StoredRun, database: str) -> RunStarted:
    return RunStarted(
        at=stored.started_at,
        run=stored.id,
        target=stored.target,
        device=stored.device,
        gpu=stored.gpu,
        seed=stored.seed,
        patience=stored.patience,
        prior=stored.prior,
        database=database,
    )


def run_finished(stored: StoredRun, at: float) -> list[Event]:
    """The summary as the event it came from; nothing if the run ended without one."""
    with named_row(RowName("run", stored.id, f"the summary of run {stored.id}")):
        summary = json.loads(stored.summary or "{}")
        known = {f.name for f in fields(RunFinished)}
        needed = {f.name for f in fields(RunFinished) if f.default is MISSING} - {"at"}
        if not isinstance(summary, dict) or not needed <= set(summary):
            return []
        return [checked(RunFinished(**{"at": at, **{name: summary[name] for name in known & set(summary)}}))]
