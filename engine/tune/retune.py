"""Kernels tuned again from the database alone: a kernel's recorded body is enough, its program isn't loaded.

Each is a run of its own over a plan of one launch, so that it is kept, shown, replayed and compared as every run is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.codegen import declined_because, offered_assignments, schedule_space, unbuildable_because
from engine.events import QueueChanged, RunFinished, RunState
from engine.ir.graph import Graph, TensorSpec
from engine.ir.kernel import Kernel
from engine.ir.plan import BufferView, Grouping, KernelCall, Program
from engine.measure import Device, open_device
from engine.prior import Prior, Surrogate
from engine.search import EnumeratedSpace, Space
from engine.search import Path as Steps
from engine.store import Store, StoreError
from engine.tune.control import Retune
from engine.tune.live import Host, LiveRequest, record_run, told_of_lock
from engine.tune.opening import opened, start
from engine.tune.run import rare_collections
from engine.tune.settings import Settings
from engine.vocabulary import KnobValue, Schedule, Target, kernel_target


@dataclass(frozen=True, slots=True)
class RetuneRequest:
    """The kernels of `database` to tune again, in order, and the device to do it on. `command` repeats it."""

    database: Path
    wanted: tuple[Retune, ...]
    device: str
    command: str = ""
    open_device: Callable[..., Device] = open_device


class KernelProblem:
    """One kernel as a problem: its only grouping launches it once. With `schedule`, that is its only candidate."""

    def __init__(self, kernel: Kernel, target: Target, schedule: Schedule | None = None) -> None:
        self._kernel = kernel
        self._target = target
        self._schedule = schedule

    @property
    def target(self) -> str:
        return target_text(self._kernel)

    @property
    def graph(self) -> Graph:
        return self._kernel.body

    def outer_space(self) -> Space:
        return EnumeratedSpace([{}])

    def grouping(self, path: Steps) -> Grouping:
        return alone(self._kernel)

    def kernel_counts(self, path: Steps) -> Mapping[str, tuple[Kernel, int]]:
        return {self._kernel.key: (self._kernel, 1)}

    def schedule_space(self, kernel: Kernel) -> Space:
        if self._schedule is None:
            return schedule_space(kernel, self._target)
        return EnumeratedSpace([self._schedule.as_dict()])

    def declined_because(self, kernel: Kernel) -> str | None:
        return unbuildable_because(kernel, self._target) if self._schedule is None else declined_because(kernel)

    def candidates(self, kernel: Kernel) -> Sequence[Mapping[str, KnobValue]]:
        if self._schedule is not None:
            return [self._schedule.as_dict()]
        return offered_assignments(kernel, self._target)

    def take_surrogate(self, kernel: Kernel, prior: Prior, seed: int) -> Surrogate | None:
        return None


def target_text(kernel: Kernel) -> str:
    """What stands for the user's text in a run of one kernel."""
    return kernel_target(kernel.label or kernel.family, kernel.key)


def alone(kernel: Kernel) -> Grouping:
    """The plan that launches the kernel once, on inputs of its own."""
    inputs = kernel.body.input_specs()
    outputs = tuple(TensorSpec.contiguous(spec.shape, spec.dtype) for spec in kernel.body.output_specs())
    results = tuple(range(len(inputs), len(inputs) + len(outputs)))
    call = KernelCall(kernel, tuple(BufferView(place, spec) for place, spec in enumerate(inputs)), results)
    views = tuple(BufferView(place, spec) for place, spec in zip(results, outputs, strict=True))
    return Grouping((*inputs, *outputs), (call,), views)


@rare_collections()
def tune_again(request: RetuneRequest, host: Host) -> list[RunFinished]:
    """Tune the kernels, then whatever was queued meanwhile. Raises StoreError or DeviceError, each one sentence.

    The database must hold the kernels; nothing is asked of their programs.
    """
    host.change_state(RunState.CAPTURING)
    told = told_of_lock(request.database, host)
    with Store.open(request.database, create=False, waiting=told) as store:
        for one in request.wanted:
            check_tunable(store, one.kernel)
        device = host.own_device(
            opened(request.open_device, request.device, host.settings.jobs, cold_l2=host.settings.cold_l2)
        )
        start(device)
        try:
            host.control.enqueue(request.wanted)
            return tune_queue(LiveRequest("", request.database, request.device, request.command), host, store, device)
        finally:
            device.close()


def check_tunable(store: Store, key: str) -> Kernel:
    """The kernel, if it can be tuned again. Raises StoreError with the reason."""
    kernel = store.kernel(key)
    name = kernel.label or kernel.family
    if kernel.foreign is not None:
        raise StoreError(f"{name} was imported from another tuner: only that can measure it again")
    if (declined := declined_because(kernel)) is not None:
        raise StoreError(f"{name} can't be tuned: {declined}")
    return kernel


def tune_queue(request: LiveRequest, host: Host, store: Store, device: Device) -> list[RunFinished]:
    """Tune what waits in the host's queue, one after the other, until it is empty or a stop is asked for."""
    finished: list[RunFinished] = []
    while (one := host.control.take()) is not None:
        host.emit(QueueChanged(at=time.time(), kernels=tuple(waiting.kernel for waiting in host.control.queue)))
        host.control.begin(one.kernel)
        kernel = check_tunable(store, one.kernel)
        program = Program(kernel.body, target_text(kernel))
        settings = _settings(host.settings, _earlier_runs(store, program.target), one)
        problem = KernelProblem(kernel, device.target, one.schedule)
        finished.append(record_run(request, host, store, device, program, problem, settings))
    return finished


def _settings(settings: Settings, earlier: int, one: Retune) -> Settings:
    """Each time another path, since the same one finds the same; a single candidate is measured and that is all."""
    if one.schedule is not None:
        return replace(settings, patience=1, outer_patience=1)
    return replace(settings, seed=settings.seed + earlier, outer_patience=1)


def _earlier_runs(store: Store, target: str) -> int:
    return 1 + sum(run.target == target for run in store.runs())
