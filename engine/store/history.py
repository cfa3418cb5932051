"""The tree of an older run: its nodes belong to the run that touched them last, its trials are still its own.

Every node on the way to one of the run's measured leaves is rebuilt, with a visit for each trial below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from engine.events import Event, Measured, NodeState
from engine.store.connection import Connection, Row
from engine.store.event_rows import node_opened, node_visited

_NODE = "SELECT key, parent, kernel_key, label, depth, prior, updated_at FROM node WHERE key = ?"


def nodes_taken_over(connection: Connection, events: Sequence[Event], opened: set[str]) -> Iterator[Event]:
    """Openings, parents first, and visits of the nodes above the measured leaves in `events` that aren't `opened`."""
    trials = [event for event in events if isinstance(event, Measured) and event.trial]
    if all(trial.node in opened for trial in trials):
        return
    rows: dict[str, Row | None] = {}
    below: dict[str, list[Measured]] = {}
    for trial in trials:
        for key in _lineage(connection, trial.node, rows):
            below.setdefault(key, []).append(trial)
    taken = [row for key, row in rows.items() if row is not None and key in below and key not in opened]
    for row in sorted(taken, key=_depth):
        opened.add(row["key"])
        trials_below = below[row["key"]]
        best_us = min((trial.us for trial in trials_below if trial.us is not None), default=None)
        visit = partial(node_visited, visits=len(trials_below), best_us=best_us, state=_state(row["key"], trials_below))
        for event in connection.readable([row], node_opened):
            yield event
            yield from connection.readable([row], visit)


def _depth(row: Row) -> int:
    return row["depth"] if isinstance(row["depth"], int) else 0


def _lineage(connection: Connection, key: str, rows: dict[str, Row | None]) -> list[str]:
    lineage: list[str] = []
    while key and key not in lineage:
        if key not in rows:
            rows[key] = connection.first(_NODE, (key,))
        row = rows[key]
        if row is None:
            break
        lineage.append(key)
        key = row["parent"]
    return lineage


def _state(key: str, trials: Sequence[Measured]) -> str:
    if any(trial.node != key for trial in trials):
        return NodeState.OPEN
    return NodeState.MEASURED if any(trial.us is not None for trial in trials) else NodeState.FAILED
