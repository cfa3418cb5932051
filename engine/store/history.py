"""The tree of an older run: its nodes belong to the run that touched them last, its trials are still its own.

Every node on the way to one of the run's measured leaves is rebuilt, with a visit for each trial below it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from engine.events import Event, Measured, NodeState
from engine.store.connection import Connection, Row
from engine.store.event_rows import node_opened, node_visited

_NODE = "SELECT key, parent, kernel_key, label, depth, prior, updated_at FROM node WHERE key = ?"


@dataclass(slots=True)
class _Below:
    """What the trials at a node and below it come to; `inner`: some are below it."""

    trials: int = 0
    best_us: float | None = None
    inner: bool = False

    def add(self, trial: Measured, *, inner: bool) -> None:
        self.trials += 1
        self.inner |= inner
        if trial.us is not None:
            self.best_us = trial.us if self.best_us is None else min(self.best_us, trial.us)

    @property
    def state(self) -> str:
        if self.inner:
            return NodeState.OPEN
        return NodeState.MEASURED if self.best_us is not None else NodeState.FAILED


def nodes_taken_over(connection: Connection, trials: Iterable[Measured], opened: set[str]) -> Iterator[Event]:
    """Openings, parents first, and visits of the nodes at the leaves of these `trials` and above them that aren't
    `opened`."""
    rows: dict[str, Row | None] = {}
    below: dict[str, _Below] = defaultdict(_Below)
    for trial in trials:
        for key in _lineage(connection, trial.node, rows):
            below[key].add(trial, inner=key != trial.node)
    taken = [row for key, row in rows.items() if row is not None and key in below and key not in opened]
    for row in sorted(taken, key=_depth):
        opened.add(row["key"])
        found = below[row["key"]]
        visit = partial(node_visited, visits=found.trials, best_us=found.best_us, state=found.state)
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
