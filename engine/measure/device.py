"""The one narrow door to whatever answers with times: a GPU, or a recorded database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure.controls import Controls
from engine.measure.health import DeviceHealth as DeviceHealth
from engine.vocabulary import Context, Failure, Measurement, Regime, Schedule, Target, Timing

Schedules = Mapping[str, Schedule]
"""One schedule for each kernel of a plan, by structural key."""


class DeviceError(Exception):
    """The device itself can't be used (no GPU, worker can't start); the text says what to do."""


@dataclass(frozen=True, slots=True)
class AssembledResult:
    """The whole plan as one CUDA graph: its time, its relative error against the reference, or why it failed."""

    timing: Timing | None
    error: float | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class PairedTimes:
    """Windows (us a launch) of candidates timed in turns: `windows[c][r]` is that of candidate c in round r.

    No windows where nothing was timed; `failure` then says why, and is None on a device that only replays.
    """

    windows: tuple[tuple[float, ...], ...] = ()
    failure: Failure | None = None


class Device(Protocol):
    """Implemented by `cuda` and `replay`; a context manager. One that measures is safe to call from any thread."""

    name: str

    @property
    def context(self) -> Context: ...

    @property
    def target(self) -> Target: ...

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        """Start measuring a candidate. The future never raises for a fault of the candidate: that is a Failure.

        Cancelling it lets go of what is under way for it: a compile or a launch that hangs holds up nobody then.
        It raises DeviceError when the device itself is gone. Candidates compile in parallel and are timed one at
        a time; a ranking candidate and a deploy candidate of the same source compile once.
        """
        ...

    def assemble(
        self, grouping: Grouping, schedules: Schedules, program: Graph | None = None, *, pdl: bool = False
    ) -> AssembledResult:
        """Run the plan with one schedule per structural key as one CUDA graph, checked and timed (deploy regime).

        It is checked against `program`, whose inputs are the plan's; without one, against its own kernels. With `pdl`
        its kernels are launched with programmatic dependent launch.
        """
        ...

    def compare(self, kernel: Kernel, schedules: Sequence[Schedule], *, fresh: bool = False) -> PairedTimes:
        """Time candidates in turns in one benchmark process (deploy regime), a new one if `fresh`. Waits for the end.

        Raises DeviceError when the device is gone, CancelledError when it is closed meanwhile.
        """
        ...

    def health(self) -> DeviceHealth: ...

    def kill_compile(self, number: int) -> bool:
        """End a compile that `health().compiles` numbers; its candidate then fails. False if it has ended by itself.

        May be called from any thread.
        """
        ...

    def close(self) -> None:
        """Stop workers and compilers, and leave no process behind. Pending futures are cancelled."""
        ...


@runtime_checkable
class Starts(Protocol):
    """A device that starts what measures only when something is to be measured, or when it is told to."""

    def start(self) -> None:
        """Something will be measured: start now, so that it is ready by then. Returns at once; may be called again."""
        ...


@runtime_checkable
class ComparesGraphs(Protocol):
    """A device that times whole graphs of one plan in turns."""

    def compare_graphs(
        self, grouping: Grouping, schedules: Sequence[Schedules], program: Graph | None = None, *, pdl: bool = False
    ) -> PairedTimes:
        """Build the plan once with each of `schedules`, check each, and time them in turns in one benchmark process.

        One that may not pass ends the comparison with its failure. Raises as `Device.compare`.
        """
        ...


@runtime_checkable
class TakesControls(Protocol):
    """A device that was opened with a ptxas that takes controls, and may be given more files while it runs."""

    def offer(self, controls: Controls) -> bool:
        """From now on schedules may name these files, which are of the ptxas that the device assembles with.

        False where they can't be brought to where it compiles.
        """
        ...
