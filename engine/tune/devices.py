"""Many GPUs in one run: each kernel is tuned on one device, and each device tunes a few kernels at a time.

A kernel's search depends on its own measurements alone, so which device answers changes no result. A device that dies
hands its kernel on in the middle of the search: what it had not answered yet is asked of the next device that is free,
and the search never learns of it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure import (
    AssembledResult,
    ComparesGraphs,
    Controls,
    Device,
    DeviceError,
    DeviceHealth,
    PairedTimes,
    Schedules,
    Starts,
    TakesControls,
)
from engine.vocabulary import Context, Measurement, Regime, Schedule, Target

Answer = TypeVar("Answer")

KERNELS_AT_ONCE = 2
"""On each device: while one kernel's first candidates compile, or its last ones are timed, the other one keeps GPU and
compilers at work. Of a Qwen3 layer's run on an H200 with 16 cores that is a fifth; three add little, and the benchmark
process holds the inputs of two."""


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """A candidate that was asked for, until it is answered."""

    kernel: Kernel
    schedule: Schedule
    regime: Regime
    answer: Future[Measurement] = field(default_factory=Future)


class Lease:
    """A device for one kernel's search. Implements `Device`; when its device dies it goes on at another one."""

    def __init__(self, fleet: Fleet, device: Device) -> None:
        self.name = device.name
        self._fleet = fleet
        self._device: Device | None = device
        self._lock = threading.Condition()
        self._open: dict[int, _Order] = {}
        self._gone: DeviceError | None = None
        self._returned = False

    @property
    def context(self) -> Context:
        return self._fleet.context

    @property
    def target(self) -> Target:
        return self._fleet.target

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        """See `Device.submit`. The future raises DeviceError only when no device of the run is left."""
        order = _Order(kernel, schedule, regime)
        with self._lock:
            gone, device = self._gone, self._device
            if gone is None:
                self._open[id(order)] = order
        if gone is not None:
            order.answer.set_exception(gone)
        elif device is not None:
            self._send(order, device)
        return order.answer

    def assemble(
        self, grouping: Grouping, schedules: Schedules, program: Graph | None = None, *, pdl: bool = False
    ) -> AssembledResult:
        return self._fleet.assemble(grouping, schedules, program, pdl=pdl)

    def compare(self, kernel: Kernel, schedules: Sequence[Schedule], *, fresh: bool = False) -> PairedTimes:
        """See `Device.compare`: all at one device, and all over again when that is lost."""
        while True:
            device = self._settled()
            try:
                return device.compare(kernel, schedules, fresh=fresh)
            except (DeviceError, CancelledError) as error:
                if self._fleet.closed:
                    raise
                self._fleet.lose(device, _loss(error))
                self._leave(device)

    def offer(self, controls: Controls) -> bool:
        """See `TakesControls`. The GPUs of one host compile in one folder, so the files are there after a move too."""
        device = self._settled()
        return isinstance(device, TakesControls) and device.offer(controls)

    def health(self) -> DeviceHealth:
        """That of the fleet, with the noise of the device that this is at."""
        health, device = self._fleet.health(), self._device
        return health if device is None else replace(health, noise=device.health().noise)

    def kill_compile(self, number: int) -> bool:
        return self._fleet.kill_compile(number)

    def close(self) -> None:
        """A device belongs to the fleet, which closes it."""

    def move(self, device: Device) -> bool:
        """Go on at `device`, which is asked for everything that is open, in order; False if the search has ended."""
        with self._lock:
            if self._returned:
                return False
            self.name = device.name
            self._device = device
            self._lock.notify_all()
            orders = list(self._open.values())
        for order in orders:
            self._send(order, device)
        return True

    def fail(self, error: DeviceError) -> None:
        """There is no device to go on at: what is open and what comes raises `error`."""
        with self._lock:
            self._gone = error
            self._lock.notify_all()
            orders = list(self._open.values())
            self._open.clear()
        for order in orders:
            with suppress(InvalidStateError):
                order.answer.set_exception(error)

    def give_up(self) -> Device | None:
        """End the lease; returns the device it was at."""
        with self._lock:
            self._returned = True
            device, self._device = self._device, None
            self._open.clear()
        return device

    def _settled(self) -> Device:
        """The device; waits while there is none. Raises DeviceError when there is none to wait for."""
        with self._lock:
            self._lock.wait_for(lambda: self._device is not None or self._gone is not None)
            if self._device is None:
                raise self._gone or DeviceError(f"{self._fleet.name}: no device")
            return self._device

    def _send(self, order: _Order, device: Device) -> None:
        inner = device.submit(order.kernel, order.schedule, order.regime)
        inner.add_done_callback(lambda answer: self._answered(order, device, answer))
        order.answer.add_done_callback(lambda answer: answer.cancelled() and inner.cancel())

    def _answered(self, order: _Order, device: Device, answer: Future[Measurement]) -> None:
        """Called in a thread of the device, or in the asking one where the answer is there at once."""
        error = _loss(CancelledError()) if answer.cancelled() else answer.exception()
        if isinstance(error, DeviceError) and not self._fleet.closed and not order.answer.cancelled():
            self._fleet.lose(device, error)
            self._leave(device)
            return
        with self._lock:
            self._open.pop(id(order), None)
        with suppress(InvalidStateError):
            if isinstance(error, DeviceError):
                order.answer.cancel()
            elif error is not None:
                order.answer.set_exception(error)
            else:
                order.answer.set_result(answer.result())

    def _leave(self, device: Device) -> None:
        """The device is lost. Of all the answers that say so, the first looks for another device."""
        with self._lock:
            first = self._device is device and not self._returned
            if first:
                self._device = None
        if first:
            self._fleet.rehouse(self)


class Fleet:
    """The devices of one run. Implements `Device`: what is no kernel's search runs on the first device that lives.

    Every device must be in the same context, for times of unlike devices can't be compared. `tell` gets a sentence for
    each device that is lost; it may be called from any thread. Each device is leased `kernels` times at once.
    """

    def __init__(self, devices: Sequence[Device], kernels: int = 1) -> None:
        """Raises DeviceError for devices of different contexts."""
        self.name = ", ".join(device.name for device in devices)
        self.tell: Callable[[str], None] = lambda text: None
        self.closed = False
        self._devices = tuple(devices)
        self._living = list(devices)
        self._free = deque(tuple(devices) * kernels)
        self._waiting: deque[Lease] = deque()
        self._lost: dict[str, str] = {}
        self._change = threading.Condition()
        first = devices[0]
        for other in devices[1:]:
            if other.context != first.context or other.target != first.target:
                raise DeviceError(
                    f"{first.name} ({first.context.gpu}) and {other.name} ({other.context.gpu}) differ, and their "
                    "times can't be compared: name devices of one kind"
                )

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._devices)

    @property
    def lost(self) -> Mapping[str, str]:
        """The devices that died in this run, with the reason."""
        return dict(self._lost)

    @property
    def context(self) -> Context:
        return self._devices[0].context

    @property
    def target(self) -> Target:
        return self._devices[0].target

    def start(self) -> None:
        """See `Starts`."""
        for device in self._devices:
            if isinstance(device, Starts):
                device.start()

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        """See `Device.submit`; for a single candidate outside a kernel's search."""
        try:
            lease = Lease(self, self._first())
        except DeviceError as error:
            refused: Future[Measurement] = Future()
            refused.set_exception(error)
            return refused
        return lease.submit(kernel, schedule, regime)

    def assemble(
        self, grouping: Grouping, schedules: Schedules, program: Graph | None = None, *, pdl: bool = False
    ) -> AssembledResult:
        return self._somewhere(lambda device: device.assemble(grouping, schedules, program, pdl=pdl))

    def compare(self, kernel: Kernel, schedules: Sequence[Schedule], *, fresh: bool = False) -> PairedTimes:
        return self._somewhere(lambda device: device.compare(kernel, schedules, fresh=fresh))

    def compare_graphs(
        self, grouping: Grouping, schedules: Sequence[Schedules], program: Graph | None = None, *, pdl: bool = False
    ) -> PairedTimes:
        """See `ComparesGraphs`; nothing at a device that can't."""

        def work(device: Device) -> PairedTimes:
            if not isinstance(device, ComparesGraphs):
                return PairedTimes()
            return device.compare_graphs(grouping, schedules, program, pdl=pdl)

        return self._somewhere(work)

    def health(self) -> DeviceHealth:
        """`busy_s` is the mean over the devices, the noise floor the highest of them, respawns the sum."""
        each = [device.health() for device in self._devices]
        return DeviceHealth(
            busy_s=sum(item.busy_s for item in each) / len(each),
            compiling=max(item.compiling for item in each),
            respawns=sum(item.respawns for item in each),
            noise=max((item.noise for item in each if item.noise), key=lambda noise: noise.share, default=None),
            states=tuple(state for item in each for state in item.states),
            missing=tuple(dict.fromkeys(reason for item in each for reason in item.missing)),
            compiles=tuple({one.number: one for item in each for one in item.compiles}.values()),
            workers=tuple(state for item in each for state in item.workers),
            respawned=tuple(dict.fromkeys(one for item in each for one in item.respawned)),
            disk_full=next((item.disk_full for item in each if item.disk_full), ""),
            ceilings=next((item.ceilings for item in each if item.ceilings), None),
        )

    def kill_compile(self, number: int) -> bool:
        """See `Device.kill_compile`; the numbers of devices that share their compilers are one."""
        return any(device.kill_compile(number) for device in self._devices)

    def close(self) -> None:
        """See `Device.close`. Whoever waits for a device is answered with a DeviceError."""
        with self._change:
            self.closed = True
            waiting = list(self._waiting)
            self._waiting.clear()
            self._change.notify_all()
        for lease in waiting:
            lease.fail(DeviceError(f"{self.name}: the devices are closed"))
        for device in self._devices:
            device.close()

    @contextmanager
    def lease(self) -> Iterator[Lease]:
        """A place at a device for one kernel's search; waits until one is free. Raises DeviceError when none lives."""
        with self._change:
            self._change.wait_for(lambda: self._free or self.closed or not self._living)
            if self.closed or not self._living:
                raise self._nothing_left()
            lease = Lease(self, self._free.popleft())
        try:
            yield lease
        finally:
            self._take_back(lease)

    def lose(self, device: Device, error: DeviceError) -> None:
        """Count the device out, once, and say so."""
        with self._change:
            if device not in self._living:
                return
            self._living.remove(device)
            self._lost[device.name] = str(error)
            self._free = deque(free for free in self._free if free is not device)
            left = ", ".join(living.name for living in self._living)
            self._change.notify_all()
        goes_on = f"what it was tuning goes on at {left}" if left else "no device is left"
        self.tell(f"{device.name} is lost ({error}); {goes_on}")

    def rehouse(self, lease: Lease) -> None:
        """Give the lease another device: now if one is free, else the next that becomes free, before new kernels."""
        with self._change:
            nothing = self.closed or not self._living
            device = self._free.popleft() if self._free and not nothing else None
            if device is None and not nothing:
                self._waiting.append(lease)
            stranded = list(self._waiting) if nothing else []
            if nothing:
                self._waiting.clear()
        if device is not None and not lease.move(device):
            self._put_back(device)
        for one in [lease, *stranded] if nothing else []:
            one.fail(self._nothing_left())

    def _take_back(self, lease: Lease) -> None:
        device = lease.give_up()
        with self._change:
            if lease in self._waiting:
                self._waiting.remove(lease)
        if device is not None:
            self._put_back(device)

    def _put_back(self, device: Device) -> None:
        """To the lease that waits longest for a device, or to the free ones."""
        while True:
            with self._change:
                if device not in self._living:
                    return
                if not self._waiting:
                    self._free.append(device)
                    self._change.notify_all()
                    return
                successor = self._waiting.popleft()
            if successor.move(device):
                return

    def _first(self) -> Device:
        with self._change:
            if self.closed or not self._living:
                raise self._nothing_left()
            return self._living[0]

    def _somewhere(self, work: Callable[[Device], Answer]) -> Answer:
        while True:
            device = self._first()
            try:
                return work(device)
            except (DeviceError, CancelledError) as error:
                if self.closed:
                    raise
                self.lose(device, _loss(error))

    def _nothing_left(self) -> DeviceError:
        if self.closed:
            return DeviceError(f"{self.name}: the devices are closed")
        reasons = "; ".join(f"{name}: {reason}" for name, reason in self._lost.items())
        return DeviceError(
            f"no device is left ({reasons}); what was measured is kept, the same command goes on from it"
        )


def _loss(error: DeviceError | CancelledError) -> DeviceError:
    """Why a device is lost; one that cancels what it was asked for, though its fleet is open, was closed alone."""
    return error if isinstance(error, DeviceError) else DeviceError("it was closed")
