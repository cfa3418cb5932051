"""The one narrow door to whatever answers with times: a GPU, or a recorded database."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.vocabulary import Context, Failure, Measurement, Regime, Schedule, Target, Timing


class DeviceError(Exception):
    """The device itself can't be used (no GPU, worker can't start); the text says what to do."""


@dataclass(frozen=True, slots=True)
class AssembledResult:
    """The whole plan as one CUDA graph: its time, its relative error against the reference, or why it failed."""

    timing: Timing | None
    error: float | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class DeviceHealth:
    """`busy_s` is how long the benchmark worker was checking and timing, in seconds since the device opened."""

    busy_s: float = 0.0
    compiling: int = 0
    respawns: int = 0


class Device(Protocol):
    """Implemented by `cuda` and `replay`; a context manager. Safe to call from one thread at a time."""

    name: str

    @property
    def context(self) -> Context: ...

    @property
    def target(self) -> Target: ...

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        """Start measuring a candidate. The future never raises for a fault of the candidate: that is a Failure.

        It raises DeviceError when the device itself is gone. Candidates compile in parallel and are timed one at
        a time; a ranking candidate and a deploy candidate of the same source compile once.
        """
        ...

    def assemble(
        self, grouping: Grouping, schedules: Mapping[str, Schedule], program: Graph | None = None
    ) -> AssembledResult:
        """Run the plan with one schedule per structural key as one CUDA graph, checked and timed (deploy regime).

        It is checked against `program`, whose inputs are the plan's; without one, against its own kernels.
        """
        ...

    def health(self) -> DeviceHealth: ...

    def close(self) -> None:
        """Stop workers and compilers, and leave no process behind. Pending futures are cancelled."""
        ...
