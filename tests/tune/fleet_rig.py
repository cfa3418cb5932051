"""Several GPUs that exist only inside tests: they share one landscape, may die, and may answer in steps."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from engine.events import Event, KernelFinished, RunFinished
from engine.ir import GraphBuilder, TensorSpec
from engine.ir.kernel import Kernel
from engine.ir.plan import Program
from engine.measure import DeviceError
from engine.tune.devices import Fleet
from engine.tune.settings import Settings
from engine.vocabulary import Measurement, Regime, Schedule

from .fake_device import FakeDevice
from .rig import tune_with

SETTINGS = Settings(patience=8, outer_patience=3)


class MortalDevice(FakeDevice):
    """Dies of its launch number `dies_at`, and of every later one."""

    def __init__(self, number: int, dies_at: int | None = None) -> None:
        super().__init__()
        self.name = f"fake:{number}"
        self._dies_at = dies_at

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        if self._dies_at is not None and len(self.launches) + 1 >= self._dies_at:
            dead: Future[Measurement] = Future()
            dead.set_exception(DeviceError("the GPU fell off the bus"))
            return dead
        return super().submit(kernel, schedule, regime)


class Clock:
    """Steps: in each, every device that a kernel is being tuned on answers one candidate."""

    def __init__(self) -> None:
        self.steps = 0
        self.devices: list[SteppedDevice] = []
        self.fleet: Fleet | None = None
        self.moved = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with self.moved:
            self._closing = True
            self.moved.notify_all()
        self._thread.join()

    def _ready(self) -> bool:
        """Whether every device at work has something to answer."""
        if self.fleet is None:
            return any(device.queue for device in self.devices)
        at_work = [device for device in self.devices if device.queue or device not in self.fleet._free]
        return bool(at_work) and all(device.queue for device in at_work)

    def _tick(self) -> None:
        while not self._closing:
            with self.moved:
                self.moved.wait_for(lambda: self._closing or self._ready(), timeout=0.5)
                due = [device.queue.popleft() for device in self.devices if device.queue]
            self.steps += bool(due)
            for answer, measurement in due:
                with suppress(InvalidStateError, CancelledError):
                    answer.set_result(measurement)


class SteppedDevice(FakeDevice):
    """Answers one candidate in each step of its clock."""

    def __init__(self, number: int, clock: Clock) -> None:
        super().__init__()
        self.name = f"fake:{number}"
        self.queue: deque[tuple[Future[Measurement], Measurement]] = deque()
        self._clock = clock
        clock.devices.append(self)

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        measurement = super().submit(kernel, schedule, regime).result()
        answer: Future[Measurement] = Future()
        with self._clock.moved:
            self.queue.append((answer, measurement))
            self._clock.moved.notify_all()
        return answer


def many_kernels_program() -> Program:
    """Six matmuls of six shapes in a row, each with something behind it that may be fused or not."""
    builder = GraphBuilder()
    widths = (32, 64, 96, 128, 160, 192, 224)
    value = builder.input(TensorSpec.contiguous((64, widths[0]), "bfloat16"))
    for inner, width in pairwise(widths):
        weight = builder.input(TensorSpec.contiguous((inner, width), "bfloat16"))
        value = builder.add("relu", builder.add("matmul", value, weight))
    return Program(builder.build(value), "chain")


def tune_on(database: Path, *devices: FakeDevice, events: list[Event] | None = None, kernels: int = 1) -> RunFinished:
    """One run on a fleet of the devices, each of which tunes so many kernels at a time."""
    with Fleet(devices, kernels) as fleet:
        return tune_with(database, fleet, many_kernels_program(), SETTINGS, events=events, kernels_per_device=kernels)


def kept(database: Path) -> dict[str, list[tuple[object, ...]]]:
    """What a run left, without what names the run and the moment."""
    questions = {
        "measurement": "SELECT kernel_key, schedule, status, median_us, trial FROM measurement ORDER BY 1, 2",
        "node": "SELECT key, visits, best_us, state, deploy_status, deploy_us FROM node ORDER BY 1",
        "grouping": "SELECT position, plan_key, sum_us, assembled_us, schedules FROM grouping ORDER BY 1",
    }
    with sqlite3.connect(database) as connection:
        return {table: connection.execute(sql).fetchall() for table, sql in questions.items()}


def bests(events: list[Event]) -> dict[str, tuple[float | None, str]]:
    """Time and schedule of each kernel."""
    return {item.kernel: (item.best_us, item.best_schedule) for item in events if isinstance(item, KernelFinished)}
