"""The store: one SQLite file that keeps what was measured, and answers what is known."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from engine import __version__
from engine.events import Event, RunState
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.ir.roofline import Ceilings
from engine.store import acf, forbidden, pins
from engine.store.acf import AcceptanceRow
from engine.store.answers import Answers
from engine.store.carried import CarriedGraph, put_evidence, put_graph
from engine.store.connection import Connection, open_connection
from engine.store.forbidden import ForbiddenCorner
from engine.store.importing.recording import Imported, write_all
from engine.store.importing.results import ForeignResults
from engine.store.pins import PinChange
from engine.store.records import NodeRecord, RunInfo
from engine.store.suggestions import Suggestion, put_suggestions
from engine.store.writes import Writer
from engine.vocabulary import Context, Failure, KnobValue, Measurement, Pin, Schedule, Target, Timing


class Store(Answers):
    """One open database: what is kept in it; `Answers` has what is asked of it.

    What it guarantees:
    - A write is committed when its method returns. Whatever kills the process later, the row is there.
    - The first ok measurement of a candidate in a context stays; an ok replaces a failure; nothing else is replaced.
    - Readers never block the writer and see whole transactions only; a reader writes nothing.
    - Every error is a StoreError with one sentence for a person; a failed write leaves the database as it was.

    What it asks for:
    - One thread at a time uses a store; a second thread or process opens its own (`read_only` for looking on).
    - Contexts, kernels and runs are recorded before the rows that name them.
    """

    def __init__(self, connection: Connection, clock: Callable[[], float]) -> None:
        super().__init__(connection)
        self._clock = clock
        self._writer = Writer(connection, clock)

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        read_only: bool = False,
        create: bool = True,
        clock: Callable[[], float] = time.time,
        waiting: Callable[[], None] | None = None,
        holding: Callable[[], None] | None = None,
    ) -> Store:
        """Open `path`, creating it (and its folder) unless told otherwise; an old schema is upgraded, nothing is lost.

        A writer that another process's lock keeps calls `waiting`, and `holding` whenever it has got the lock and
        before it writes; what that raises ends the transaction with nothing written. Raises StoreError: see
        engine.store.errors.
        """
        connection = open_connection(Path(path), read_only=read_only, create=create, waiting=waiting)
        connection.holding = holding
        return cls(connection, clock)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def record_context(self, context: Context, target: Target | None = None) -> None:
        """`target` lets a replay generate code for the recorded chip."""
        self._writer.context(context, target)

    def record_ceilings(self, context_key: str, ceilings: Ceilings) -> None:
        """What the GPU of a recorded context reaches; the first ones stay."""
        self._writer.ceilings(context_key, ceilings)

    def record_kernel(self, kernel: Kernel) -> None:
        self._writer.kernel(kernel)

    def start_run(self, info: RunInfo) -> str:
        """Returns the new run's id."""
        return self._writer.start_run(info)

    def end_run(self, run: str, state: RunState, summary: str = "{}") -> None:
        """`summary` is JSON text; the fields of a RunFinished let a follower see the end as it was."""
        self._writer.end_run(run, state, summary)

    def record_grouping(self, run: str, grouping: Grouping) -> str:
        """Returns the grouping's id. Its kernels are recorded before."""
        return self._writer.grouping(run, grouping)

    def score_grouping(self, grouping: str, sum_us: float | None, reason: str = "") -> None:
        self._writer.score(grouping, sum_us, reason)

    def record_assembled(
        self,
        grouping: str,
        timing: Timing | None,
        error: float | None = None,
        failure: Failure | None = None,
        schedules: Mapping[str, Schedule] | None = None,
        *,
        pdl: bool = False,
    ) -> None:
        """The grouping as one graph, built with `schedules` (by structural key), with or without `pdl`."""
        self._writer.assembled(grouping, timing, error, failure, schedules or {}, pdl)

    def record_measurement(
        self, measurement: Measurement, *, run: str, trial: int = 0, nodes: Sequence[NodeRecord] = ()
    ) -> None:
        """Keep one ended candidate with the tree nodes it touched (root first, its leaf last), in one transaction.

        A cached or "not recorded" measurement writes only its nodes.
        """
        self._writer.measurement(measurement, run, trial, nodes)

    def record_nodes(self, run: str, nodes: Sequence[NodeRecord]) -> None:
        self._writer.nodes(run, nodes)

    def record_events(self, run: str, events: Sequence[Event]) -> None:
        """Keep a run's events for those who follow it; pass every event that is emitted, in order, each once.

        NodeOpened and NodeVisited become node rows, of Health the last is kept, CandidateStarted is live only.
        """
        self._writer.events(run, events)

    def import_results(self, results: Sequence[ForeignResults], *, command: str = "") -> list[Imported]:
        """Add results of other tuners, all in one transaction; points that are there already stay as they are."""
        with self._connection.transaction() as db:
            return write_all(db, results, self._clock(), __version__, command)

    def record_evidence(self, taken: Sequence[tuple[Measurement, float | None]]) -> int:
        """Keep results that were taken elsewhere in a context of this database, of no run; returns how many are new.

        With each comes when it was taken, in seconds since 1970; None where nothing says.
        """
        with self._connection.transaction() as db:
            return put_evidence(db, taken, self._clock())

    def record_graph(self, graph: CarriedGraph) -> bool:
        """Keep a whole graph that was timed elsewhere in a context of this database; False where one of the same
        schedules was timed before. Its kernels are recorded before."""
        known = self.assembled(graph.grouping, graph.context_key, graph.schedules, pdl=graph.pdl)
        if known is not None and known.timing is not None:
            return False
        context = self.context(graph.context_key)
        with self._connection.transaction() as db:
            put_graph(db, graph, context.gpu if context else "", __version__, self._clock())
        return True

    def suggest(self, found: Sequence[Suggestion]) -> int:
        """Keep schedules from other contexts for the next search to try first; returns how many are new."""
        with self._connection.transaction() as db:
            return put_suggestions(db, found)

    def record_pin(
        self, kernel_key: str, schedule: Schedule, context_key: str, *, author: str, note: str = ""
    ) -> PinChange:
        """Pin a schedule in place of the one in force, now. Whether it is legal is asked before."""
        return pins.put_pin(self._connection, Pin(kernel_key, schedule, author, self._clock(), note), context_key)

    def unpin(self, kernel_key: str, context_key: str) -> PinChange:
        return pins.end_pin(self._connection, kernel_key, context_key, self._clock())

    def undo_pin(self, change: PinChange) -> None:
        """Put back what was in force before the change, unless another one came after it."""
        pins.undo_pin(self._connection, change, self._clock())

    def forbid(
        self, knobs: Mapping[str, KnobValue], *, kernel_key: str = "", family: str = "", author: str, note: str = ""
    ) -> ForbiddenCorner:
        """Rule knob values out together for a kernel, or for every kernel of a family, from the next run on."""
        return forbidden.forbid(
            self._connection, knobs, self._clock(), kernel_key=kernel_key, family=family, author=author, note=note
        )

    def allow(self, corner: int) -> None:
        forbidden.allow(self._connection, corner, self._clock())

    def forbid_again(self, corner: int) -> None:
        """Undo `allow`."""
        forbidden.forbid_again(self._connection, corner)

    def record_controls(self, files: Sequence[tuple[str, bytes]], said: Sequence[AcceptanceRow]) -> None:
        """Keep controls files (name and bytes), each once under its sha256, and what a ptxas said of them."""
        acf.record_controls(self._connection, files, said, self._clock())
