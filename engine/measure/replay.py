"""A device that answers from a recording: the same search, no GPU, and nothing invented."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure.device import AssembledResult, DeviceError, DeviceHealth, PairedTimes
from engine.vocabulary import Context, Failure, Measurement, Regime, Schedule, Status, Target, Timing


class Assembly(Protocol):
    """A recorded assembled run."""

    @property
    def timing(self) -> Timing | None: ...

    @property
    def error(self) -> float | None: ...

    @property
    def failure(self) -> Failure | None: ...


class Recording(Protocol):
    """What was measured in one context."""

    @property
    def context(self) -> Context: ...

    @property
    def target(self) -> Target: ...

    def measurement(self, kernel_key: str, schedule: Schedule, regime: Regime) -> Measurement | None: ...

    def assembled(
        self, grouping: Grouping, schedules: Mapping[str, Schedule], *, pdl: bool = False
    ) -> Assembly | None: ...


class ReplayDevice:
    """Implements `Device`. `pace` is the seconds that each answer takes, so that a person can watch; 0 is at once."""

    name = "replay"

    def __init__(self, recording: Recording, pace: float = 0.0) -> None:
        self._recording = recording
        self._pace = max(0.0, pace)
        self._busy_s = 0.0
        self._closing = threading.Event()
        self._answers = ThreadPoolExecutor(1, thread_name_prefix="replay")

    def __enter__(self) -> ReplayDevice:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def context(self) -> Context:
        return self._recording.context

    @property
    def target(self) -> Target:
        return self._recording.target

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        """The recorded measurement, marked as cached, or at once one whose status is NOT_RECORDED."""
        if self._closing.is_set():
            return _refused()
        recorded = self._recording.measurement(kernel.key, schedule, regime)
        if recorded is None:
            status = Status.NOT_RECORDED
            return _done(Measurement(kernel.key, schedule, regime, self.context.key, status, cached=True))
        answer = replace(recorded, cached=True)
        return self._answers.submit(self._at_pace, answer) if self._pace else _done(answer)

    def assemble(
        self,
        grouping: Grouping,
        schedules: Mapping[str, Schedule],
        program: Graph | None = None,
        *,
        pdl: bool = False,
    ) -> AssembledResult:
        """The recorded assembled time; without one, a result that holds neither a time nor a failure."""
        recorded = self._recording.assembled(grouping, schedules, pdl=pdl)
        if recorded is None:
            return AssembledResult(None)
        return AssembledResult(recorded.timing, recorded.error, recorded.failure)

    def compare(self, kernel: Kernel, schedules: Sequence[Schedule], *, fresh: bool = False) -> PairedTimes:
        """A recording times nothing in turns: no windows, and no failure."""
        return PairedTimes()

    def health(self) -> DeviceHealth:
        return DeviceHealth(busy_s=self._busy_s)

    def kill_compile(self, number: int) -> bool:
        """A recording compiles nothing."""
        return False

    def close(self) -> None:
        """Cancel what is pending. The recording belongs to whoever opened it."""
        self._closing.set()
        self._answers.shutdown(wait=True, cancel_futures=True)

    def _at_pace(self, answer: Measurement) -> Measurement:
        self._closing.wait(self._pace)
        self._busy_s += self._pace
        return answer


def _done(answer: Measurement) -> Future[Measurement]:
    future: Future[Measurement] = Future()
    future.set_result(answer)
    return future


def _refused() -> Future[Measurement]:
    future: Future[Measurement] = Future()
    future.set_exception(DeviceError("the replay is closed"))
    return future
