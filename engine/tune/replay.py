"""A replay: the same search over what a database recorded, with no GPU, no torch and no writing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.events import Logged, RunFinished, RunState
from engine.measure import ReplayDevice
from engine.prior import ColdModel, Prior, steering
from engine.store import LeftOut, RecordedGrouping, Recording, Store, StoredRun, StoreError
from engine.tune.floors import Floors
from engine.tune.learn import COLD
from engine.tune.live import Host
from engine.tune.problem import RecordedProblem
from engine.tune.recorder import ReplayRecorder
from engine.tune.retune import alone, target_text
from engine.tune.run import rare_collections, tune
from engine.tune.workbench import Tally, Workbench


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """`pace` is seconds a candidate; `target` keeps the recorded programs whose text contains it (None: all).

    With `kernels`, structural keys, each of these alone is searched again, in their order, and no whole program.
    """

    database: Path
    pace: float = 0.0
    target: str | None = None
    kernels: tuple[str, ...] = ()


@rare_collections()
def tune_replay(request: ReplayRequest, host: Host) -> list[RunFinished]:
    """Search again over each recorded program, or over single kernels, one after the other.

    Raises StoreError when the database can't be read or holds no recorded run that fits.
    """
    host.change_state(RunState.CAPTURING)
    with Store.open(request.database, read_only=True) as store:
        left_out = LeftOut(store, lambda text: host.emit(Logged(at=time.time(), level="warning", text=text)))
        problems: Iterable[tuple[StoredRun, RecordedProblem]] = _programs(store, request)
        if request.kernels:
            problems = _kernels(store, request.kernels)
        left_out.tell()
        finished: list[RunFinished] = []
        for number, (run, problem) in enumerate(problems, 1):
            if host.control.stopping:
                break
            name = f"{run.id}.{number}" if request.kernels else run.id  # kernels of one run are runs of their own
            finished.append(_run(name, request, host, store, run, problem))
            left_out.tell()
        return finished


def _programs(store: Store, request: ReplayRequest) -> Iterator[tuple[StoredRun, RecordedProblem]]:
    """Each recorded program; its groupings are read when it is its turn."""
    runs = _recorded_programs(store, request.target)
    if not runs:
        wanted = f" whose text contains {request.target!r}" if request.target else ""
        raise StoreError(f"{request.database} holds no finished run{wanted} to replay")
    for run in runs:
        yield run, RecordedProblem(run.target, store.recorded_groupings(run.id), store, run.context_key)


def _kernels(store: Store, keys: tuple[str, ...]) -> list[tuple[StoredRun, RecordedProblem]]:
    """Each kernel alone, in the context that it was measured in last, steered as the newest run there was."""
    runs = store.runs()
    found = []
    for key in keys:
        kernel = store.kernel(key)
        contexts = [context for context, _, _ in store.kernel_contexts(key)]
        run = next((run for context in contexts for run in reversed(runs) if run.context_key == context), None)
        if run is None:
            name = kernel.label or kernel.family
            raise StoreError(f"{store.path} holds no measurement of {name} {kernel.shape_text} to replay")
        grouping = RecordedGrouping("", (), alone(kernel), None, None, "")
        found.append((run, RecordedProblem(target_text(kernel), [grouping], store, run.context_key)))
    return found


def _recorded_programs(store: Store, target: str | None) -> list[StoredRun]:
    """The latest run of each recorded program, in the order in which the programs first appear."""
    latest: dict[tuple[str, str], StoredRun] = {}
    for run in store.runs():
        if (target is None or target in run.target) and store.recorded_groupings(run.id):
            latest[(run.target, run.context_key)] = run
    return list(latest.values())


def _steered_by(database: Path, recorded: StoredRun) -> Prior:
    """What was learned beside the database since, else the very prior of the recorded run, else the cold one."""
    own = steering(database, shipped=False)
    return own.latest if own.models else steering(database).version(recorded.prior) or own.latest


def _run(
    name: str, request: ReplayRequest, host: Host, store: Store, recorded: StoredRun, problem: RecordedProblem
) -> RunFinished:
    recording = Recording(store, recorded)
    device = host.own_device(ReplayDevice(recording, pace=request.pace))
    prior = ColdModel() if host.settings.prior == COLD else _steered_by(request.database, recorded)
    bench = Workbench(
        run=name,
        database=str(request.database),
        device=device,
        recorder=ReplayRecorder(store, recorded.context_key),
        prior=prior,
        settings=host.settings,
        control=host.control,
        emit=host.emit,
        tally=Tally(),
        floors=Floors(store.ceilings(recorded.context_key)),
    )
    host.change_state(RunState.PAUSED if host.control.paused else RunState.RUNNING)
    try:
        return tune(bench, problem)
    finally:
        device.close()
