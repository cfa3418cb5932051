"""A process that searches kernels over a database alone, for a run that repeats an earlier one; see `walkers`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import NoReturn

from engine.events import Event
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure import AssembledResult, ChannelClosed, DeviceHealth, Message, PairedTimes, Schedules, open_channel
from engine.prior import load_libraries
from engine.store import NodeRecord, Store
from engine.tune.control import Control
from engine.tune.kernel import tune_kernel
from engine.tune.learn import chosen_prior
from engine.tune.problem import CapturedProblem
from engine.tune.recorder import StoreRecorder
from engine.tune.run import rare_collections
from engine.tune.settings import Settings
from engine.tune.sweeping import misranked_kinds
from engine.tune.walkers import Order, Walked, packed, unpacked
from engine.tune.workbench import Tally, Workbench
from engine.vocabulary import Context, Measurement, Regime, Schedule, Target


class NotKnown(Exception):
    """The search asks for what only a device can answer."""


class NoDevice:
    """The context and chip of an earlier run's device, without the device: whatever is asked of it raises NotKnown."""

    name = "known answers"

    def __init__(self, context: Context, target: Target) -> None:
        self.context = context
        self.target = target

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        raise NotKnown

    def assemble(
        self, grouping: Grouping, schedules: Schedules, program: Graph | None = None, *, pdl: bool = False
    ) -> AssembledResult:
        raise NotKnown

    def compare(self, kernel: Kernel, schedules: Sequence[Schedule], *, fresh: bool = False) -> PairedTimes:
        raise NotKnown

    def health(self) -> DeviceHealth:
        raise NotKnown

    def kill_compile(self, number: int) -> bool:
        raise NotKnown

    def close(self) -> None:
        return None


class ReadingRecorder(StoreRecorder):
    """Knows what the database knows and writes nothing; `repeated` are the rows that a run would write."""

    def record(self, measurement: Measurement, *, run: str, trial: int, nodes: Sequence[NodeRecord]) -> None:
        self.repeat(nodes)

    def events(self, run: str, events: Sequence[Event]) -> None:
        return None


class Walker:
    """Searches kernels of one earlier run's program, each as the run that it repeats did."""

    def __init__(self, store: Store, order: Order) -> None:
        run = order.run
        context = next(one for one in store.contexts() if one.key == run.context_key)
        target = store.target(context.key)
        self._store = store
        self._settings: Settings = order.settings
        self._device = NoDevice(context, target)
        self._problem = CapturedProblem(store.program(run.id), target)
        self._prior = chosen_prior(store, order.settings.prior, run.target, context.key)
        self._forbidden = store.forbidden()
        self._misranked = misranked_kinds(store, context.key)
        self._kernels = {kernel.key: kernel for kernel in store.kernels()}

    def walk(self, key: str, patience: int, prior: str) -> Walked:
        """Search one kernel, steered by the prior of that version. Raises NotKnown, and KeyError for no kernel."""
        if self._prior.version != prior:
            raise NotKnown
        events: list[Event] = []
        recorder = ReadingRecorder(self._store, self._device.context.key)
        bench = Workbench(
            run="",
            database=str(self._store.path),
            device=self._device,
            recorder=recorder,
            prior=self._prior,
            settings=replace(self._settings, patience=patience),
            control=Control(),
            emit=events.append,
            tally=Tally(health_at=math.inf),
            forbidden=self._forbidden,
            misranked=self._misranked,
        )
        result = tune_kernel(bench, self._problem, self._kernels[key])
        tally = bench.tally
        return Walked(result, tuple(events), recorder.repeated, tally.cached, tally.failed, tally.best_us)


def _answered(walker: Walker, asked: Message) -> Message:
    """Whatever goes wrong here is met by the run itself, which knows how to say it."""
    try:
        return {"walked": packed(walker.walk(asked["kernel"], asked["patience"], asked["prior"]))}
    except Exception:
        return {}


def main(read_fd: int, write_fd: int, parent: int) -> NoReturn:
    channel = open_channel(read_fd, write_fd, parent)
    try:
        order: Order = unpacked(channel.receive()["order"])
        with rare_collections(), Store.open(order.database, read_only=True) as store:
            walker = Walker(store, order)
            load_libraries()
            while True:
                asked = channel.receive()
                channel.send(_answered(walker, asked))
    except ChannelClosed:
        raise SystemExit(0) from None
