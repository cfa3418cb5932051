"""A GPU that exists only inside tests: times are a fixed function of kernel and schedule, faults come by request."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

from engine.ir import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure import AssembledResult, DeviceHealth, PairedTimes
from engine.vocabulary import (
    Context,
    Failure,
    Measurement,
    Regime,
    Schedule,
    Status,
    Target,
    Timing,
)

CONTEXT = Context("Fake GPU", "9.0", "1", "2", "3", "4")


def landscape_us(kernel: Kernel, schedule: Schedule) -> float:
    """Between 10 and 110 us, the same in every process."""
    digest = hashlib.sha256(f"{kernel.key}{schedule.key}".encode()).digest()
    return 10.0 + int.from_bytes(digest[:4], "big") / 2**32 * 100.0


class FakeDevice:
    """Implements the Device protocol; `launches` lists what would have run on the GPU, in order."""

    name = "fake:0"

    def __init__(
        self,
        us: Callable[[Kernel, Schedule], float] = landscape_us,
        failing: Callable[[Kernel, Schedule], Failure | None] = lambda kernel, schedule: None,
    ) -> None:
        self._us = us
        self._failing = failing
        self.launches: list[tuple[str, str, Regime]] = []
        self.assemblies: list[Mapping[str, Schedule]] = []
        self.comparisons: list[tuple[str, tuple[Schedule, ...], bool]] = []
        self.paired: Callable[[Kernel, Sequence[Schedule], bool], PairedTimes] = lambda *asked: PairedTimes()
        self.seen = DeviceHealth()
        self.closed = False
        self.dependent_launch_saves_us = 0.5

    @property
    def context(self) -> Context:
        return CONTEXT

    @property
    def target(self) -> Target:
        return Target()

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        self.launches.append((kernel.key, schedule.key, regime))
        answer: Future[Measurement] = Future()
        failure = self._failing(kernel, schedule)
        us = self._us(kernel, schedule)
        answer.set_result(
            Measurement(
                kernel.key,
                schedule,
                regime,
                CONTEXT.key,
                Status.FAILED if failure else Status.OK,
                timing=None if failure else Timing(us, us * 0.99, us * 1.01, (us, us)),
                failure=failure,
            )
        )
        return answer

    def assemble(
        self,
        grouping: Grouping,
        schedules: Mapping[str, Schedule],
        program: Graph | None = None,
        *,
        pdl: bool = False,
    ) -> AssembledResult:
        self.assemblies.append(schedules)
        counts = grouping.kernel_counts()
        us = sum(self._us(kernel, schedules[key]) * count for key, (kernel, count) in counts.items()) * 1.02
        us -= self.dependent_launch_saves_us * (len(grouping.calls) - 1) if pdl else 0.0
        return AssembledResult(Timing(us, us, us, (us,)), 1e-3)

    def compare(self, kernel: Kernel, schedules: Sequence[Schedule], *, fresh: bool = False) -> PairedTimes:
        """Nothing, unless the test gave windows for it."""
        self.comparisons.append((kernel.key, tuple(schedules), fresh))
        return self.paired(kernel, schedules, fresh)

    def health(self) -> DeviceHealth:
        return self.seen

    def kill_compile(self, number: int) -> bool:
        return False

    def close(self) -> None:
        self.closed = True
