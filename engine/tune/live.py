"""A live run from the user's text to its summary: open the database and the device, capture, tune, record the end."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from engine import __version__
from engine.capture import capture
from engine.events import Event, RunFinished, RunStarted, RunState
from engine.ir.plan import Program
from engine.measure import Device, open_device
from engine.prior import ColdModel
from engine.store import RunInfo, Store
from engine.tune.control import Control
from engine.tune.problem import CapturedProblem
from engine.tune.recorder import StoreRecorder
from engine.tune.run import tune
from engine.tune.settings import Settings
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
    """What the user asked for: the expression, the database, the device's name, and the command to repeat it."""

    code: str
    database: Path
    device: str
    command: str = ""
    open_device: Callable[..., Device] = open_device


def tune_live(request: LiveRequest, host: Host) -> list[RunFinished]:
    """Tune one expression on a device. Raises CaptureError, DeviceError or StoreError, each one sentence for a person.

    The database opens first, so that a bad path costs nothing; the device starts while the program is captured.
    """
    host.change_state(RunState.CAPTURING)
    with Store.open(request.database) as store, ThreadPoolExecutor(1) as beside:
        captured = beside.submit(capture, request.code)
        device = host.own_device(request.open_device(request.device, jobs=host.settings.jobs))
        try:
            return [_run(request, host, store, device, captured.result())]
        finally:
            device.close()


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
        device=device,
        recorder=StoreRecorder(store, device.context.key),
        prior=prior,
        settings=host.settings,
        control=host.control,
        emit=host.emit,
        tally=Tally(busy_s_at_start=device.health().busy_s),
    )
    bench.tell(
        RunStarted,
        run=run,
        target=request.code,
        device=request.device,
        gpu=device.context.gpu,
        seed=host.settings.seed,
        patience=host.settings.patience,
        prior=prior.version,
        database=str(request.database),
    )
    host.change_state(RunState.RUNNING)
    state = RunState.FAILED
    summary = "{}"
    try:
        finished = tune(bench, CapturedProblem(program, device.target))
        state = RunState.STOPPED if host.control.stopping else RunState.FINISHED
        summary = json.dumps(asdict(finished))
        return finished
    finally:
        store.end_run(run, state, summary)
