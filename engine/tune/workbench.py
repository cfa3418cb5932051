"""What every step of a run works with: device, recorder, prior, settings, and the way to tell people."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from engine.events import Event, Health, Logged, Measured
from engine.measure import Device
from engine.prior import Prior
from engine.tune.control import Control
from engine.tune.recorder import Recorder
from engine.tune.settings import Settings
from engine.vocabulary import Measurement, Status

HEALTH_EVERY_S = 1.0


def answered(measurement: Measurement) -> Future[Measurement]:
    """The future of what is known already, so that known and fresh candidates are waited for alike."""
    future: Future[Measurement] = Future()
    future.set_result(measurement)
    return future


@dataclass(slots=True)
class Tally:
    """Counts and clocks of one run; seconds are wall time. Paused time belongs to nobody."""

    measured: int = 0
    cached: int = 0
    failed: int = 0
    search_s: float = 0.0
    paused_s: float = 0.0
    started: float = field(default_factory=time.monotonic)
    busy_s_at_start: float = 0.0
    health_at: float = 0.0
    best_us: dict[str, float] = field(default_factory=dict)

    @property
    def wall_s(self) -> float:
        return max(time.monotonic() - self.started - self.paused_s, 1e-9)

    def count(self, measurement: Measurement) -> None:
        self.failed += measurement.status is Status.FAILED
        if measurement.cached:
            self.cached += 1
        else:
            self.measured += 1
        if measurement.us is not None:
            known = self.best_us.get(measurement.kernel_key, math.inf)
            self.best_us[measurement.kernel_key] = min(known, measurement.us)

    @contextmanager
    def searching(self) -> Iterator[None]:
        """Time inside counts as search, not as compiling or timing."""
        entered = time.perf_counter()
        try:
            yield
        finally:
            self.search_s += time.perf_counter() - entered


@dataclass(slots=True)
class Workbench:
    """The parts of a run, handed from step to step. `database` is its path, for people."""

    run: str
    database: str
    device: Device
    recorder: Recorder
    prior: Prior
    settings: Settings
    control: Control
    emit: Callable[[Event], None]
    tally: Tally = field(default_factory=Tally)
    _unrecorded: list[Event] = field(default_factory=list)

    def tell(self, kind: type[Event], **values: Any) -> None:
        """Emit one event stamped with the time of day, and keep it for those who follow the database."""
        event = kind(at=time.time(), **values)
        self.emit(event)
        self._unrecorded.append(event)

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

    def record_events(self) -> None:
        """Write what was told since the last call, in one transaction."""
        if self._unrecorded:
            self.recorder.events(self.run, self._unrecorded)
            self._unrecorded = []

    def log(self, text: str, level: str = "info") -> None:
        self.tell(Logged, level=level, text=text)

    def checkpoint(self) -> None:
        """Wait out a pause; raises Stopped when the run was asked to stop. Also reports health once a second."""
        self.record_events()
        self.tally.paused_s += self.control.checkpoint()
        now = time.monotonic()
        if now - self.tally.health_at >= HEALTH_EVERY_S:
            self.tally.health_at = now
            search_share, idle_share = self.shares()
            health = self.device.health()
            self.tell(
                Health,
                search_share=search_share,
                gpu_idle_share=idle_share,
                compiling=health.compiling,
                respawns=health.respawns,
            )

    def shares(self) -> tuple[float, float]:
        """Shares of the wall time so far that went into searching, and in which the GPU had nothing to do."""
        wall = self.tally.wall_s
        busy = self.device.health().busy_s - self.tally.busy_s_at_start
        return min(self.tally.search_s / wall, 1.0), min(max(1.0 - busy / wall, 0.0), 1.0)
