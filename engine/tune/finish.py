"""Finishing at the deployable setting: near-best candidates are measured a second time as a deployment runs them.

Whenever a ranking measurement lands within the band above the best so far, it is measured once more in the deploy
regime, unless several faster ones were: where nearly all candidates are level, the band alone would measure all of them
twice. Those rows are kept apart from the measurements table and are what a deployment chooses from.
"""

from __future__ import annotations

from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass

from engine.codegen import acf_of
from engine.ir.kernel import Kernel
from engine.store import NodeRecord
from engine.tune.control import Stopped
from engine.tune.finalists import pick_finalist
from engine.tune.settings import Objective
from engine.tune.workbench import Workbench, answered
from engine.vocabulary import Measurement, Regime, Schedule, Status

MOST_FASTER = 8
"""With so many faster by ranking time, a candidate's deploy time is not taken. In three runs of a Qwen3 layer on an
H200 that spares a third of the second measurements; 75 of 76 kernels keep their schedule, one's is 0.3 % slower."""


@dataclass(frozen=True, slots=True)
class DeployBest:
    """The best deployable candidate so far; both fields are None when none has been measured.

    Until the finalists are compared it has no ptxas controls: those have to prove that they win.
    """

    schedule: Schedule | None = None
    us: float | None = None


class Finish:
    """Re-measures one kernel's near-best candidates, each at most once, beside the search."""

    def __init__(self, bench: Workbench, kernel: Kernel) -> None:
        self._bench = bench
        self._kernel = kernel
        self._pending: list[tuple[Future[Measurement], NodeRecord]] = []
        self._kept: set[Future[Measurement]] = set()
        self._asked: set[Schedule] = set()
        self._ranked_us: list[float] = []
        self._measured: list[Measurement] = []
        self._leader: Measurement | None = None
        self._best = DeployBest()

    def consider(self, measurement: Measurement, best_us: float, leaf: NodeRecord) -> None:
        """Start the second measurement if the first lies within the band above `best_us`."""
        us = measurement.us
        if us is not None and us <= best_us * (1 + self._bench.settings.deploy_band):
            self._measure(measurement.schedule, us, leaf)
        self._collect()

    @property
    def waiting(self) -> list[Future[Measurement]]:
        """The second measurements that have not been kept yet."""
        return [answer for answer, _ in self._pending if answer not in self._kept]

    def collect(self) -> None:
        """Take what has ended, in order, and keep what ended out of turn, so that a killed run loses neither."""
        self._collect()
        for answer, leaf in self._pending:
            if answer.done() and answer not in self._kept:
                self._kept.add(answer)
                if not answer.cancelled() and answer.exception() is None:
                    self._bench.recorder.record(answer.result(), run=self._bench.run, trial=0, nodes=(leaf,))

    def wait(self, tried: int = 0) -> None:
        """Wait for what is under way, then decide among the fastest; raises Stopped, Skipped.

        `tried` is how many candidates with ptxas controls the search answered.
        """
        self.drain()
        picked = pick_finalist(self._bench, self._kernel, self._measured, tried)
        if picked is not None:
            self._best = DeployBest(picked.schedule, picked.us)

    def fastest(self) -> Schedule | None:
        """The best deployable schedule so far, once what is under way has ended; raises Stopped, Skipped."""
        self.drain()
        return self._best.schedule

    def drain(self) -> None:
        """Wait for what is under way. Raises Stopped on a stop, Skipped when the kernel was asked to end."""
        while self._pending:
            self._bench.checkpoint()
            self._bench.control.check_skip(self._kernel.key)
            futures.wait(self.waiting or [self._pending[0][0]], timeout=0.1, return_when=futures.FIRST_COMPLETED)
            self.collect()

    def let_go(self) -> None:
        """Nothing that is under way is waited for any more; what was measured counts."""
        for answer, _ in self._pending:
            answer.cancel()
        self._pending = [one for one in self._pending if not one[0].cancelled() and one[0].exception() is None]
        self._collect()

    def result(self) -> DeployBest:
        return self._best

    def _measure(self, schedule: Schedule, us: float, leaf: NodeRecord) -> None:
        if schedule in self._asked:
            return
        self._asked.add(schedule)
        known = self._bench.recorder.deploy(self._kernel, schedule)
        if known is None and self._far_behind(schedule, us):
            return
        self._ranked_us.append(us)
        if known is None:
            self._bench.measuring.set()
        answer = answered(known) if known else self._bench.device.submit(self._kernel, schedule, Regime.DEPLOY)
        self._pending.append((answer, leaf))

    def _far_behind(self, schedule: Schedule, us: float) -> bool:
        """Whether too many are faster for it to win. Counts and ptxas controls are not judged by time alone."""
        if self._bench.settings.objective is not Objective.TIME or acf_of(schedule):
            return False
        return sum(faster <= us for faster in self._ranked_us) >= MOST_FASTER

    def _collect(self) -> None:
        while self._pending and self._pending[0][0].done():
            answer, leaf = self._pending[0]
            try:
                measurement = answer.result()
            except futures.CancelledError:
                raise Stopped from None
            self._pending.pop(0)
            self._take(measurement, leaf, kept=answer in self._kept)
            self._kept.discard(answer)

    def _take(self, measurement: Measurement, leaf: NodeRecord, *, kept: bool) -> None:
        if measurement.status is Status.NOT_RECORDED:
            return
        if not kept:
            self._bench.recorder.record(measurement, run=self._bench.run, trial=0, nodes=(leaf,))
        self._bench.tally.count(measurement)
        self._measured.append(measurement)
        better = self._bench.settings.objective.prefers(measurement, self._leader)
        if better and not acf_of(measurement.schedule):
            self._leader, self._best = measurement, DeployBest(measurement.schedule, measurement.us)
        self._bench.tell_measured(measurement, node=leaf.node, trial=0, best=better)
