"""Finishing at the deployable setting: near-best candidates are measured a second time as a deployment runs them.

Whenever a ranking measurement lands within the band above the best so far, it is measured once more in the deploy
regime. Those rows are kept apart from the measurements table and are what a deployment chooses from.
"""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from dataclasses import dataclass

from engine.ir.kernel import Kernel
from engine.store import NodeRecord
from engine.tune.control import Stopped
from engine.tune.workbench import Workbench, answered
from engine.vocabulary import Measurement, Regime, Schedule, Status


@dataclass(frozen=True, slots=True)
class DeployBest:
    """The fastest deployable candidate so far; both fields are None when none has been measured."""

    schedule: Schedule | None = None
    us: float | None = None


class Finish:
    """Re-measures one kernel's near-best candidates, each at most once, beside the search."""

    def __init__(self, bench: Workbench, kernel: Kernel) -> None:
        self._bench = bench
        self._kernel = kernel
        self._pending: list[tuple[Future[Measurement], NodeRecord]] = []
        self._asked: set[Schedule] = set()
        self._best = DeployBest()

    def consider(self, measurement: Measurement, best_us: float, leaf: NodeRecord) -> None:
        """Start the second measurement if the first lies within the band above `best_us`."""
        us = measurement.us
        if us is not None and us <= best_us * (1 + self._bench.settings.deploy_band):
            self._measure(measurement.schedule, leaf)
        self._collect(block=False)

    def wait(self) -> None:
        """Wait for what is under way; raises Stopped on an abort."""
        while self._pending:
            self._bench.checkpoint()
            self._collect(block=True)

    def result(self) -> DeployBest:
        return self._best

    def _measure(self, schedule: Schedule, leaf: NodeRecord) -> None:
        if schedule in self._asked:
            return
        self._asked.add(schedule)
        known = self._bench.recorder.deploy(self._kernel, schedule)
        answer = answered(known) if known else self._bench.device.submit(self._kernel, schedule, Regime.DEPLOY)
        self._pending.append((answer, leaf))

    def _collect(self, *, block: bool) -> None:
        while self._pending and (block or self._pending[0][0].done()):
            answer, leaf = self._pending[0]
            try:
                measurement = answer.result(timeout=0.1)
            except TimeoutError:
                if self._bench.control.aborted:
                    raise Stopped from None
                return
            except CancelledError:
                raise Stopped from None
            self._pending.pop(0)
            self._take(measurement, leaf)

    def _take(self, measurement: Measurement, leaf: NodeRecord) -> None:
        if measurement.status is Status.NOT_RECORDED:
            return
        self._bench.recorder.record(measurement, run=self._bench.run, trial=0, nodes=(leaf,))
        self._bench.tally.count(measurement)
        us = measurement.us
        better = us is not None and (self._best.us is None or us < self._best.us)
        if better:
            self._best = DeployBest(measurement.schedule, us)
        self._bench.tell_measured(measurement, node=leaf.node, trial=0, best=better)
