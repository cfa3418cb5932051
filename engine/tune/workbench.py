"""What every step of a run works with: device, recorder, prior, settings, and the way to tell people."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any

from engine.events import (
    Acted,
    CeilingsMeasured,
    Event,
    FloorFound,
    GpuSampled,
    Health,
    KernelFound,
    Logged,
    Measured,
    NodeOpened,
    NodeVisited,
)
from engine.ir.kernel import Kernel
from engine.ir.roofline import Ceilings
from engine.measure import UNKNOWN_FLOOR, Assembler, CounterReader, Device, DeviceHealth
from engine.prior import Prior
from engine.store import ForbiddenCorner, StoreFull
from engine.tune.control import Control, Stopped
from engine.tune.floors import Floor, Floors
from engine.tune.full_disk import FullDisk
from engine.tune.learn import Learner
from engine.tune.recorder import Recorder
from engine.tune.settings import Settings
from engine.tune.walkers import Walked, Walkers
from engine.tune.watch import Watch
from engine.vocabulary import Measurement, Status

HEALTH_EVERY_S = 1.0
RECORD_EVERY_S = 0.25
"""How long what a run repeats of known answers may wait until it is recorded: thousands come in a second."""


def answered(measurement: Measurement) -> Future[Measurement]:
    """The future of what is known already, so that known and fresh candidates are waited for alike."""
    future: Future[Measurement] = Future()
    future.set_result(measurement)
    return future


@dataclass(slots=True)
class Tally:
    """Counts and clocks of one run, for all of its threads; seconds are wall time. Paused time belongs to nobody."""

    measured: int = 0
    cached: int = 0
    failed: int = 0
    search_s: float = 0.0
    paused_s: float = 0.0
    paused_before_s: float | None = None
    started: float = field(default_factory=time.monotonic)
    busy_s_at_start: float = 0.0
    health_at: float = 0.0
    best_us: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def wall_s(self) -> float:
        return max(time.monotonic() - self.started - self.paused_s, 1e-9)

    def count(self, measurement: Measurement) -> None:
        with self._lock:
            self.failed += measurement.status is Status.FAILED
            if measurement.cached:
                self.cached += 1
            else:
                self.measured += 1
            if measurement.us is not None:
                known = self.best_us.get(measurement.kernel_key, math.inf)
                self.best_us[measurement.kernel_key] = min(known, measurement.us)

    def count_walked(self, walked: Walked) -> None:
        """Count a kernel that was searched elsewhere."""
        with self._lock:
            self.failed += walked.failed
            self.cached += walked.cached
            for kernel, us in walked.best_us.items():
                self.best_us[kernel] = min(self.best_us.get(kernel, math.inf), us)

    @contextmanager
    def searching(self) -> Iterator[None]:
        """Time inside counts as search, not as compiling or timing."""
        entered = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self.search_s += time.perf_counter() - entered

    def health_due(self) -> bool:
        """True once in HEALTH_EVERY_S seconds, for one of the threads that ask."""
        with self._lock:
            now = time.monotonic()
            due = now - self.health_at >= HEALTH_EVERY_S
            if due:
                self.health_at = now
            return due


@dataclass(slots=True)
class _Untold:
    """Events that are emitted and not recorded yet; the lock keeps the order of both the same for all threads."""

    events: list[Event] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    news: bool = False
    recorded_at: float = field(default_factory=time.monotonic)

    def take(self, event: Event) -> None:
        """Keep an event. News is all that the database doesn't imply already."""
        self.events.append(event)
        repeated = isinstance(event, NodeOpened | NodeVisited) or (isinstance(event, Measured) and event.cached)
        self.news = self.news or not repeated

    def due(self) -> bool:
        return self.news or time.monotonic() - self.recorded_at >= RECORD_EVERY_S


@dataclass(slots=True)
class Workbench:
    """The parts of a run, handed from step to step. `database` is its path, for people.

    `forbidden` are the corners that no kernel's search may enter. `learner` is None where nothing is to be learned.
    `counters` reads the metric of a run that goes by one; `assembler` is the ptxas of a run with controls.
    Kernels of the kinds in `misranked` are ranked by the deploy regime's settings (`engine.tune.sweeping`).
    A device tunes `kernels_per_device` kernels at a time (`engine.tune.crew`).
    `measuring` is set once the device was asked for something. `walkers` search kernels whose answers are all known.
    `at` gives a thread of its own the same parts with another device.
    """

    run: str
    database: str
    device: Device
    recorder: Recorder
    prior: Prior
    settings: Settings
    control: Control
    emit: Callable[[Event], None]
    tally: Tally = field(default_factory=Tally)
    devices: int = 1
    kernels_per_device: int = 1
    watch: Watch = field(default_factory=Watch)
    floors: Floors = field(default_factory=Floors)
    misranked: frozenset[str] = frozenset()
    disk: FullDisk | None = None
    forbidden: tuple[ForbiddenCorner, ...] = ()
    learner: Learner | None = None
    counters: CounterReader | None = None
    measuring: threading.Event = field(default_factory=threading.Event)
    assembler: Assembler | None = None
    walkers: Walkers | None = None
    _untold: _Untold = field(default_factory=_Untold)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        if self.tally.paused_before_s is None:
            self.tally.paused_before_s = self.control.paused_s

    def at(self, device: Device, ended: threading.Event) -> Workbench:
        """The same run at another device, for one thread; its checkpoints raise Stopped once `ended` is set."""
        return replace(self, device=device, _ended=ended)

    def tell(self, kind: type[Event], **values: Any) -> None:
        """Emit one event stamped with the time of day, and keep it for those who follow the database."""
        with self._untold.lock:
            self.tell_event(kind(at=time.time(), **values))

    def tell_event(self, event: Event) -> None:
        """Emit an event that is stamped already, and keep it likewise."""
        with self._untold.lock:
            self.emit(event)
            self._untold.take(event)

    def tell_measured(self, measurement: Measurement, *, node: str, trial: int, best: bool) -> None:
        """Emit how one candidate ended, in either regime."""
        timing, failure = measurement.timing, measurement.failure
        self.tell(
            Measured,
            kernel=measurement.kernel_key,
            node=node,
            schedule=str(measurement.schedule),
            regime=measurement.regime,
            status=measurement.status,
            trial=trial,
            us=measurement.us,
            low_us=timing.low_us if timing else None,
            high_us=timing.high_us if timing else None,
            failure=failure.kind if failure else "",
            cause=failure.cause if failure else "",
            cached=measurement.cached,
            best=best,
        )

    def tell_acts(self) -> None:
        """Tell what people asked of the run since the last call."""
        for act in self.control.take_acts():
            self.tell_event(
                Acted(
                    at=act.at,
                    verb=act.verb,
                    kernel=act.kernel,
                    value=act.value,
                    detail=act.detail,
                    author=act.author,
                )
            )

    def record_events(self) -> None:
        """Write what was told since the last call, in one transaction."""
        with self._untold.lock:
            if self._untold.events:
                self.recorder.events(self.run, self._untold.events)
                self._untold.events.clear()
            self._untold.news, self._untold.recorded_at = False, time.monotonic()

    def log(self, text: str, level: str = "info") -> None:
        self.tell(Logged, level=level, text=text)

    def checkpoint(self) -> None:
        """Wait out a pause; raises Stopped when the run was asked to stop. Also reports health once a second."""
        self.tell_acts()
        if self._untold.due():
            self.record_events()
        self.control.checkpoint()
        if self._ended.is_set():
            raise Stopped
        if self.tally.health_due():
            self.report_health()

    def patience(self, kernel: Kernel) -> int:
        """The kernel's own if somebody changed it, else that of the run."""
        return self.control.patience(kernel.key, self.settings.patience)

    def learn(self, kernel: Kernel) -> None:
        """What the kernel's search found is for the prior of the next run."""
        if self.learner is not None:
            self.learner.learn(kernel)

    def noise_share(self) -> float:
        """Of the device's noise floor, which it takes before it times anything: ask after that."""
        floor = self.device.health().noise
        return floor.share if floor is not None else UNKNOWN_FLOOR

    def report_health(self) -> None:
        """Tell how the devices are, what the GPUs' clocks and heat are, and what of it may spoil times."""
        search_share, idle_share = self.shares()
        health = self.device.health()
        if health.disk_full and self.disk is not None:
            health = self._wait_for_room(self.disk)
        self.tell(
            Health,
            search_share=search_share,
            gpu_idle_share=idle_share,
            compiling=health.compiling,
            respawns=health.respawns,
            noise_us=health.noise.us if health.noise else None,
            noise_share=health.noise.share if health.noise else None,
            missing=health.missing,
        )
        for kind, values in self.watch.processes(health):
            self.tell(kind, **values)
        self.tell_ceilings(health.ceilings)
        states = self.watch.fresh_states(health)
        for name, state in states:
            seen = {f.name: getattr(state, f.name) for f in fields(state) if f.name != "at"}
            self.tell(GpuSampled, device=name, **seen)
        for sentence in self.watch.warnings(states):
            self.log(sentence, "warning")
        for sentence in self.watch.missing(health):
            self.log(sentence)

    def _wait_for_room(self, disk: FullDisk) -> DeviceHealth:
        """Hold the run until compiles find space again; on a stop, what waits for them is let go. Raises Stopped."""
        try:
            return disk.outlast(self._with_room)
        except StoreFull:
            self.control.abort()
            raise Stopped from None

    def _with_room(self) -> DeviceHealth:
        health = self.device.health()
        if health.disk_full:
            raise StoreFull(health.disk_full)
        return health

    def tell_kernel(self, kernel: Kernel, count: int) -> None:
        """Tell of a kernel of the grouping that is entered, and of its floor where that is known."""
        self.tell(
            KernelFound,
            kernel=kernel.key,
            label=kernel.label,
            family=kernel.family,
            shape=kernel.shape_text,
            count=count,
            flops=kernel.flops,
            bytes_moved=kernel.bytes_moved,
        )
        self._tell_floors(self.floors.found(kernel))

    def tell_ceilings(self, measured: Ceilings | None) -> None:
        """Keep and tell what the GPU reaches, once, with the floors of the kernels that are known by now."""
        known = measured or self.floors.ceilings
        if known is None:
            return
        floors = self.floors.measured(known)
        if (fresh := self.floors.to_record()) is not None:
            self.recorder.ceilings(fresh)
        if (ceilings := self.floors.to_tell()) is not None:
            kinds, rates = tuple(kind for kind, _ in ceilings.tflops), tuple(rate for _, rate in ceilings.tflops)
            self.tell(CeilingsMeasured, device=self.device.name, copy_gbs=ceilings.copy_gbs, kinds=kinds, tflops=rates)
        self._tell_floors(floors)

    def _tell_floors(self, floors: list[Floor]) -> None:
        for floor in floors:
            self.tell(FloorFound, kernel=floor.kernel, floor_us=floor.us, bound=floor.bound)

    def shares(self) -> tuple[float, float]:
        """Shares of the wall time so far that went into searching, and in which the GPU had nothing to do.

        Of a run on several devices both are means over the devices.
        """
        self.tally.paused_s = self.control.paused_s - (self.tally.paused_before_s or 0.0)
        wall = self.tally.wall_s
        busy = self.device.health().busy_s - self.tally.busy_s_at_start
        return min(self.tally.search_s / wall / self.devices, 1.0), min(max(1.0 - busy / wall, 0.0), 1.0)
