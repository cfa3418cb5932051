"""What runs beside each GPU of a Ray cluster: an ordinary device of that machine, asked from far away.

Compiling, timing and everything that a candidate may take down stay on that machine. Values travel as they are, which
holds between equal versions of this package only; the first answer tells the version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from engine import __version__
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure.device import AssembledResult, ComparesGraphs, Device, DeviceError, PairedTimes, Schedules
from engine.measure.health import DeviceHealth
from engine.vocabulary import Context, Measurement, Regime, Schedule, Target

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Hello:
    """What a device says of itself before anything else."""

    version: str
    context: Context
    target: Target


class RayGpu:
    """The actor. Its methods are coroutines, so that a search's whole window can be under way at once."""

    def __init__(self, open_one: Callable[..., Device], jobs: int | None) -> None:
        """Ray shows an actor its own GPU alone, as the first one. What is against it, the first answer tells."""
        self._refusal = DeviceError("")
        try:
            self._device = open_one("cuda:0", jobs=jobs)
        except DeviceError as error:
            self._refusal = error

    async def hello(self) -> Hello:
        """Raises DeviceError where the device can't be used."""
        if str(self._refusal):
            raise self._refusal
        return Hello(__version__, self._device.context, self._device.target)

    async def measure(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Measurement:
        return await asyncio.wrap_future(self._device.submit(kernel, schedule, regime))

    async def assemble(
        self, grouping: Grouping, schedules: Mapping[str, Schedule], program: Graph | None, pdl: bool
    ) -> AssembledResult:
        return await _aside(partial(self._device.assemble, grouping, schedules, program, pdl=pdl))

    async def compare(self, kernel: Kernel, schedules: Sequence[Schedule], fresh: bool) -> PairedTimes:
        return await _aside(partial(self._device.compare, kernel, schedules, fresh=fresh))

    async def compare_graphs(
        self, grouping: Grouping, schedules: Sequence[Schedules], program: Graph | None, pdl: bool
    ) -> PairedTimes:
        if not isinstance(self._device, ComparesGraphs):
            return PairedTimes()
        return await _aside(partial(self._device.compare_graphs, grouping, schedules, program, pdl=pdl))

    async def health(self) -> DeviceHealth:
        return self._device.health()

    async def kill_compile(self, number: int) -> bool:
        return self._device.kill_compile(number)

    async def close(self) -> None:
        await _aside(self._device.close)


async def _aside(work: Callable[[], Answer]) -> Answer:
    """What waits, in a thread of its own: the actor goes on answering."""
    return await asyncio.get_running_loop().run_in_executor(None, work)
