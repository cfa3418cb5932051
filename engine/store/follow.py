"""A run as events again: what its rows say happened, and then what another process goes on writing.

The journal (`event`) and the tree (`node`) number their changes together, so one number says how far a reader has
come. Reads are short and happen only after another connection committed, so the writer's log can't grow behind them.
What was written is read a slice at a time: a run of a million changes takes no more room than one of some thousands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from functools import partial

from engine.events import Event, GroupingsExplored, Measured, NodeState, RunFinished, RunStarted, StateChanged
from engine.store import reads
from engine.store.connection import Connection, Row
from engine.store.event_rows import node_opened, node_visited, read_event, run_finished, run_started
from engine.store.history import nodes_taken_over
from engine.store.records import StoredRun
from engine.store.rows import RowName, named_row, time_or_none

Numbered = tuple[int, Event]

SLICE = 20_000
"""Changes of the journal that are read at once."""
_END_OF_SLICE = "SELECT seq FROM event WHERE run = ? AND seq > ? ORDER BY seq LIMIT 1 OFFSET ?"
_NODES = (
    "SELECT key, parent, kernel_key, label, depth, prior, visits, best_us, state, opened, seq, updated_at FROM node "
    "WHERE run = :run AND seq > :after AND (:upto IS NULL OR seq <= :upto OR (opened > :after AND opened <= :upto)) "
    "ORDER BY seq"
)
_EVENTS = (
    "SELECT seq, at, kind, body FROM event WHERE run = :run AND seq > :after AND (:upto IS NULL OR seq <= :upto) "
    "ORDER BY seq"
)
_TRIALS = "SELECT seq, at, kind, body FROM event WHERE run = ? AND kind = 'Measured' AND seq > ? ORDER BY seq LIMIT ?"
_ANY_TAKEN_OVER = (
    "SELECT 1 FROM event WHERE run = :run AND kind = 'Measured' "
    "AND CASE WHEN json_valid(body) THEN json_extract(body, '$.node') END "
    "NOT IN (SELECT key FROM node WHERE run = :run) LIMIT 1"
)


@dataclass(slots=True)
class RunReader:
    """How far one reader has come in one run; `behind` says that more was there already than it took."""

    connection: Connection
    run: str
    seq: int = 0
    state: str = ""
    started: bool = False
    finished: bool = False
    behind: bool = False
    opened: set[str] = field(default_factory=set)

    def news(self) -> tuple[list[Event], bool]:
        """What happened since the last call, in order, and whether that was all and the run has ended."""
        with self.connection.one_moment():
            stored = reads.run(self.connection, self.run)
            upto = self._end_of_slice()
            span = {"run": self.run, "after": self.seq, "upto": upto}
            journal = self.connection.rows(_EVENTS, span)
            nodes = self.connection.rows(_NODES, span)
        self.behind = upto is not None
        numbered = list(self.connection.readable(journal, _numbered_event))
        numbered += [item for row in nodes for item in self._node_events(row, upto)]
        numbered.sort(key=lambda item: item[0])
        numbers = (row["seq"] for row in (*journal, *nodes) if isinstance(row["seq"], int))
        self.seq = max([self.seq, *numbers]) if upto is None else upto
        ended = stored.ended_at is not None and not self.behind
        events = [event for _, event in numbered]
        if not self.started:
            events = [*self._taken_over(events), *events]
        return self._framed(stored, events, ended=ended), ended

    def _end_of_slice(self) -> int | None:
        """The last change to be read now; None for all that is there."""
        last = self.connection.first(_END_OF_SLICE, (self.run, self.seq, SLICE - 1))
        return last["seq"] if last is not None and type(last["seq"]) is int else None

    def _taken_over(self, events: list[Event]) -> Iterator[Event]:
        """What is to be told before the `events` that were read first, for the whole run."""
        if not self.behind:
            trials = [event for event in events if isinstance(event, Measured) and event.trial]
            if any(trial.node not in self.opened for trial in trials):
                yield from nodes_taken_over(self.connection, trials, self.opened)
        elif self.connection.first(_ANY_TAKEN_OVER, {"run": self.run}) is not None:
            own = {key for (key,) in self.connection.tuples("SELECT key FROM node WHERE run = ?", (self.run,))}
            known = own | self.opened
            yield from nodes_taken_over(self.connection, self._trials(), known)
            self.opened |= known - own

    def _trials(self) -> Iterator[Measured]:
        after: object = -1
        while rows := self.connection.rows(_TRIALS, (self.run, after, SLICE)):
            after = rows[-1]["seq"]
            for _, event in self.connection.readable(rows, _numbered_event):
                if isinstance(event, Measured) and event.trial:
                    yield event

    def _node_events(self, row: Row, upto: int | None) -> Iterator[Numbered]:
        if row["key"] not in self.opened:
            self.opened.add(row["key"])
            yield from self.connection.readable([row], _numbered_opening)
        if upto is not None and type(row["seq"]) is int and row["seq"] > upto:
            return  # it was visited later
        yield from (visit for visit in self.connection.readable([row], _numbered_visit) if visit is not None)

    def _framed(self, stored: StoredRun, events: list[Event], *, ended: bool) -> list[Event]:
        """Add what the run's own row says: a start, a state and an end that the journal doesn't hold."""
        if not self.started:
            self.started = True
            told = next((event for event in events if isinstance(event, RunStarted)), None)
            if told is not None:
                events.remove(told)
            events.insert(0, told or run_started(stored, str(self.connection.path)))
        for event in events:
            if isinstance(event, StateChanged):
                self.state = event.state
            self.finished |= isinstance(event, RunFinished)
        if self.behind:
            return events
        at = stored.ended_at if ended and stored.ended_at is not None else stored.started_at
        if stored.state != self.state:
            self.state = stored.state
            changed = StateChanged(at=at, state=stored.state, reason=stored.reason or "")
            events.append(changed) if ended else events.insert(_after_start(events), changed)
        if ended and not self.finished:
            for finished in self.connection.readable([stored], partial(run_finished, at=at)):
                events += finished
        return events


def _numbered_event(row: Row) -> Numbered:
    event = read_event(row)
    with named_row(RowName("event", row["seq"])):
        return _place(row["seq"]), event


def _place(value: object) -> int:
    """Where a change stands among all. Raises ValueError for what is no number."""
    if type(value) is not int:
        raise ValueError(f"{str(value)[:40]!r} is no place among the changes")
    return value


def _numbered_opening(row: Row) -> Numbered:
    event = node_opened(row)
    with named_row(RowName("node", row["key"])):
        return _place(row["opened"]), event


def _numbered_visit(row: Row) -> Numbered | None:
    """None for a node that nothing happened to yet."""
    with named_row(RowName("node", row["key"])):
        best_us, seq = time_or_none(row["best_us"]), _place(row["seq"])
    if not row["visits"] and best_us is None and row["state"] == NodeState.OPEN:
        return None
    return seq, node_visited(row, row["visits"], best_us, row["state"])


def groupings_explored(connection: Connection, run: str) -> GroupingsExplored | None:
    """How far the run's outer search got, if it came to its end and said so."""
    sql = "SELECT seq, at, kind, body FROM event WHERE run = ? AND kind = ? ORDER BY seq DESC"
    event = connection.first_readable(sql, (run, GroupingsExplored.__name__), read_event)
    return event if isinstance(event, GroupingsExplored) else None


def events_of_run(connection: Connection, run: str) -> Iterator[Event]:
    """What happened in a run so far."""
    yield from _all_news(RunReader(connection, run))


def _all_news(reader: RunReader) -> Generator[Event, None, bool]:
    """Everything that is there since the last call; whether the run has ended by then is returned."""
    while True:
        events, ended = reader.news()
        yield from events
        if not reader.behind:
            return ended


def follow_run(connection: Connection, run: str | None, *, poll_s: float, stop: Callable[[], bool]) -> Iterator[Event]:
    """Yields until the run ends or `stop()`; with run None, first waits until there is a run, and takes the latest.

    Between two calls of `stop` comes everything that is there.
    """
    version = -1
    reader: RunReader | None = None
    while not stop():
        latest = connection.data_version()
        if latest != version:
            version = latest
            if reader is None:
                reader = _reader_of(connection, run)
            if reader is not None and (yield from _all_news(reader)):
                return
        time.sleep(poll_s)


def _reader_of(connection: Connection, run: str | None) -> RunReader | None:
    stored = reads.run(connection, run) if run is not None else reads.latest_run(connection)
    return RunReader(connection, stored.id) if stored is not None else None


def _after_start(events: list[Event]) -> int:
    return 1 if events and isinstance(events[0], RunStarted) else 0
