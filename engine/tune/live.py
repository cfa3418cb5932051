"""A live run from the user's text to its summary: open the database and the device, capture, tune, record the end."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from engine import __version__
from engine.capture import capture, parse_target
from engine.deploy import user_name
from engine.events import Event, Logged, RunFinished, RunState
from engine.ir.plan import Program
from engine.measure import CounterReader, Device, open_device
from engine.prior import Prior
from engine.store import BadRow, LeftOut, RunInfo, Store, remove_database
from engine.tune.ahead import Ahead
from engine.tune.control import Control
from engine.tune.controlled import ControlledProblem, ControlsRequest, controlled
from engine.tune.devices import KERNELS_AT_ONCE, Fleet
from engine.tune.floors import Floors
from engine.tune.full_disk import FullDisk
from engine.tune.learn import Learner, chosen_prior, earlier_runs, steering_sentences
from engine.tune.opening import opened, start
from engine.tune.problem import CapturedProblem, Problem
from engine.tune.recorder import StoreRecorder
from engine.tune.run import rare_collections, tune
from engine.tune.settings import Settings
from engine.tune.sweeping import misranked_kinds
from engine.tune.walkers import Walkers
from engine.tune.workbench import Tally, Workbench


class Host(Protocol):
    """What a run needs from whoever started it."""

    @property
    def settings(self) -> Settings: ...

    @property
    def control(self) -> Control: ...

    def emit(self, event: Event) -> None: ...

    def change_state(self, state: RunState, reason: str = "") -> None: ...

    def own_device(self, device: Device) -> Device: ...


@dataclass(frozen=True, slots=True)
class LiveRequest:
    """What the user asked for: the expression, the database, the device's name, and the command to repeat it.

    `device` may name several, separated by commas: they are one run's fleet. With `controls` ptxas's are searched too.
    `counters` reads the metric of an objective that is one.
    """

    code: str
    database: Path
    device: str
    command: str = ""
    open_device: Callable[..., Device] = open_device
    controls: ControlsRequest | None = None
    counters: CounterReader | None = None


LOCK_TOLD_S = 10.0
"""How soon a wait for another process's lock is told of again."""

Then = Callable[[LiveRequest, Host, Store, Device], list[RunFinished]]
"""What is done with the open database and device once the run has ended."""


def nothing_more(request: LiveRequest, host: Host, store: Store, device: Device) -> list[RunFinished]:
    return []


@rare_collections()
def tune_live(request: LiveRequest, host: Host, then: Then = nothing_more) -> list[RunFinished]:
    """Tune one expression on a device, and then whatever else was asked for meanwhile.

    Raises CaptureError, DeviceError, StoreError or ValueError, each one sentence for a person. Without a device nothing
    is written; a later refusal leaves no database behind that was not there before.
    """
    host.change_state(RunState.CAPTURING)
    parse_target(request.code)
    wanted = request.controls
    controls = wanted.load() if wanted is not None else None
    jobs, cold_l2 = host.settings.jobs, host.settings.cold_l2
    device: Device | None = None
    ahead = Ahead(request.code, request.database, host.settings, walk=wanted is None)
    try:
        with ahead:
            device = host.own_device(opened(request.open_device, request.device, jobs, controls, cold_l2=cold_l2))
        with _database(request.database, told_of_lock(request.database, host)) as store:
            chosen_prior(store, host.settings.prior)
            plain = _problem(store, request.code, device, ahead, host.control)
            program = plain.program
            problem = controlled(plain, controls, device.target.capability, store, wanted)
            first = record_run(request, host, store, device, program, problem, host.settings, ahead.walkers)
            return [first, *then(request, host, store, device)]
    finally:
        if ahead.walkers is not None:
            ahead.walkers.close()
        if device is not None:
            device.close()


def told_of_lock(path: Path, host: Host) -> Callable[[], None]:
    """What a write calls while another process's lock keeps it: people hear of it, unless the run is paused for it."""
    said_at = -math.inf

    def tell() -> None:
        nonlocal said_at
        now = time.monotonic()
        if not host.control.paused and now - said_at > LOCK_TOLD_S:
            said_at = now
            text = f"{path} is locked by another process: the run waits for it"
            host.emit(Logged(at=time.time(), level="warning", text=text))

    return tell


@contextmanager
def _database(path: Path, waiting: Callable[[], None]) -> Iterator[Store]:
    """The open database; one that was made here and never got a run is taken away again."""
    existed = path.exists()
    runs = 0
    try:
        with Store.open(path, waiting=waiting) as store:
            try:
                yield store
            finally:
                runs = len(store.runs())
    finally:
        if not existed and not runs:
            remove_database(path)


def _problem(store: Store, code: str, device: Device, ahead: Ahead, control: Control) -> CapturedProblem:
    """The program as an earlier run captured it with the same versions, else captured anew: the text says it all.

    What measures starts beside a capture, and where the GPU's ceilings are not known, which it measures first.
    """
    context, target = device.context, device.target
    if store.ceilings(context.key) is None:
        start(device)
    for run in earlier_runs(store, code, context.key):
        try:
            return ahead.problem(run.id, target) or CapturedProblem(store.program(run.id), target)
        except BadRow as error:
            store.leave_out(error)
    start(device)
    return CapturedProblem(capture(code, given_up=lambda: control.aborted), target)


def record_run(
    request: LiveRequest,
    host: Host,
    store: Store,
    device: Device,
    program: Program,
    problem: Problem,
    settings: Settings,
    walkers: Walkers | None = None,
) -> RunFinished:
    """One run of a problem, with its row from the start to the end; `walkers` are of the run that it may repeat."""
    prior = chosen_prior(store, settings.prior, problem.target, device.context.key)
    disk = FullDisk(host.control, host.change_state)
    disk.outlast(lambda: store.record_context(device.context, device.target))
    info = RunInfo(
        target=problem.target,
        program=program,
        device=request.device,
        gpu=device.context.gpu,
        context_key=device.context.key,
        seed=settings.seed,
        patience=settings.patience,
        prior=prior.version,
        command=request.command,
        author=user_name(),
        version=__version__,
    )
    run = disk.outlast(lambda: store.start_run(info))
    bench = _bench(run, request, host, store, device, problem, settings, prior, disk)
    if walkers is not None and walkers.context_key == device.context.key:
        bench.walkers = walkers
    if isinstance(device, Fleet):
        device.tell = partial(bench.log, level="warning")
    host.change_state(RunState.PAUSED if host.control.paused else RunState.RUNNING)
    _say_first(bench, [*program.notes, *steering_sentences(store.path, settings.prior, prior)])
    bench.learner = Learner.open(store, device.context.key, device.target, bench.recorder.timed_sample, bench.log)
    state = RunState.FAILED
    summary = "{}"
    try:
        finished = _tuned(store, bench, problem)
        state = RunState.STOPPED if host.control.stopping else RunState.FINISHED
        summary = json.dumps(asdict(finished))
        return finished
    finally:
        disk.outlast(lambda: store.end_run(run, state, summary))


def _bench(
    run: str,
    request: LiveRequest,
    host: Host,
    store: Store,
    device: Device,
    problem: Problem,
    settings: Settings,
    prior: Prior,
    disk: FullDisk,
) -> Workbench:
    """What the run works with."""
    return Workbench(
        run=run,
        database=str(request.database),
        device=device,
        recorder=StoreRecorder(store, device.context.key, disk),
        prior=prior,
        settings=settings,
        control=host.control,
        emit=host.emit,
        forbidden=store.forbidden(),
        floors=Floors(store.ceilings(device.context.key)),
        misranked=misranked_kinds(store, device.context.key),
        disk=disk,
        tally=Tally(busy_s_at_start=device.health().busy_s),
        devices=len(device) if isinstance(device, Fleet) else 1,
        kernels_per_device=KERNELS_AT_ONCE,
        counters=request.counters,
        assembler=problem.controls.assembler if isinstance(problem, ControlledProblem) else None,
    )


def _tuned(store: Store, bench: Workbench, problem: Problem) -> RunFinished:
    """`tune`, and what it says of rows that can't be read."""
    left_out = LeftOut(store, partial(bench.log, level="warning"))
    left_out.tell()
    finished = tune(bench, problem)
    left_out.tell()
    bench.record_events()
    return finished


def _say_first(bench: Workbench, notes: Sequence[str]) -> None:
    for note in notes:
        bench.log(note)
    for kind in sorted(bench.misranked):
        bench.log(f"{kind}: its ranking times misled in this database; it is ranked by deploy times", "warning")
