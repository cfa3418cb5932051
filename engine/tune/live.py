"""A live run from the user's text to its summary: open the database and the device, capture, tune, record the end."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from engine import __version__
from engine.capture import capture, parse_target
from engine.events import Event, RunFinished, RunState
from engine.ir.plan import Program
from engine.measure import Device, DeviceError, open_device
from engine.prior import ColdModel
from engine.store import RunInfo, Store
from engine.tune.control import Control
from engine.tune.devices import Fleet
from engine.tune.full_disk import FullDisk
from engine.tune.problem import CapturedProblem
from engine.tune.recorder import StoreRecorder
from engine.tune.run import tune
from engine.tune.settings import Settings
from engine.tune.workbench import Tally, Workbench
from engine.vocabulary import Context


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

    `device` may name several, separated by commas: they are one run's fleet.
    """

    code: str
    database: Path
    device: str
    command: str = ""
    open_device: Callable[..., Device] = open_device


def tune_live(request: LiveRequest, host: Host) -> list[RunFinished]:
    """Tune one expression on a device.

    Raises CaptureError, DeviceError, StoreError or ValueError, each one sentence for a person. Without a device nothing
    is written; a later refusal leaves no database behind that was not there before.
    """
    host.change_state(RunState.CAPTURING)
    parse_target(request.code)
    device = host.own_device(_opened(request, host.settings.jobs))
    try:
        with _database(request.database) as store:
            _check_prior(store, host.settings.prior)
            return [_run(request, host, store, device, _program(store, request.code, device.context))]
    finally:
        device.close()


def _opened(request: LiveRequest, jobs: int | None) -> Device:
    """The device, or a fleet of all that the request names, which share the compile processes."""
    names = [name.strip() for name in request.device.split(",")]
    first = request.open_device(names[0], jobs=jobs)
    if len(names) == 1:
        return first
    devices = [first]
    try:
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise DeviceError(f"{twice[0]} is named twice: name each device once")
        for name in names[1:]:
            devices.append(request.open_device(name, jobs=jobs, beside=first))
        return Fleet(devices)
    except BaseException:
        for device in devices:
            device.close()
        raise


@contextmanager
def _database(path: Path) -> Iterator[Store]:
    """The open database; one that was made here and never got a run is taken away again."""
    existed = path.exists()
    runs = 0
    try:
        with Store.open(path) as store:
            try:
                yield store
            finally:
                runs = len(store.runs())
    finally:
        if not existed and not runs:
            for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
                name.unlink(missing_ok=True)


def _check_prior(store: Store, prior: str) -> None:
    """A run's name is a prior too: the one that steered it. Raises ValueError for a name that no run has."""
    if prior in ("latest", "cold"):
        return
    steered = {run.id: run.prior for run in store.runs()}
    if prior not in steered:
        raise ValueError(
            f"--prior {prior}: no run of that name is in {store.path}; it is latest, cold, or a run's name"
        )
    if steered[prior] != ColdModel().version:
        raise ValueError(f"--prior {prior}: that run was steered by {steered[prior]}, which is not kept here")


def _program(store: Store, code: str, context: Context) -> Program:
    """The program as an earlier run captured it with the same versions, else captured anew: the text says it all."""
    for run in reversed(store.runs()):
        if run.target == code and run.context_key == context.key:
            return store.program(run.id)
    return capture(code)


def _run(request: LiveRequest, host: Host, store: Store, device: Device, program: Program) -> RunFinished:
    prior = ColdModel()
    store.record_context(device.context, device.target)
    info = RunInfo(
        target=request.code,
        program=program,
        device=request.device,
        gpu=device.context.gpu,
        context_key=device.context.key,
        seed=host.settings.seed,
        patience=host.settings.patience,
        prior=prior.version,
        command=request.command,
        author=getpass.getuser(),
        version=__version__,
    )
    run = store.start_run(info)
    bench = Workbench(
        run=run,
        database=str(request.database),
        device=device,
        recorder=StoreRecorder(store, device.context.key, FullDisk(host.control, host.change_state)),
        prior=prior,
        settings=host.settings,
        control=host.control,
        emit=host.emit,
        tally=Tally(busy_s_at_start=device.health().busy_s),
        devices=len(device) if isinstance(device, Fleet) else 1,
    )
    if isinstance(device, Fleet):
        device.tell = partial(bench.log, level="warning")
    host.change_state(RunState.PAUSED if host.control.paused else RunState.RUNNING)
    for note in program.notes:
        bench.log(note)
    state = RunState.FAILED
    summary = "{}"
    try:
        finished = tune(bench, CapturedProblem(program, device.target))
        state = RunState.STOPPED if host.control.stopping else RunState.FINISHED
        summary = json.dumps(asdict(finished))
        return finished
    finally:
        store.end_run(run, state, summary)
