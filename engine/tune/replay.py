"""A replay: the same search over what a database recorded, with no GPU, no torch and no writing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.events import RunFinished, RunState
from engine.measure import ReplayDevice
from engine.prior import ColdModel, Prior, steering
from engine.store import Recording, Store, StoredRun, StoreError
from engine.tune.floors import Floors
from engine.tune.learn import COLD
from engine.tune.live import Host
from engine.tune.problem import RecordedProblem
from engine.tune.recorder import ReplayRecorder
from engine.tune.run import tune
from engine.tune.workbench import Tally, Workbench


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """`pace` is seconds a candidate; `target` keeps the recorded programs whose text contains it (None: all)."""

    database: Path
    pace: float = 0.0
    target: str | None = None


def tune_replay(request: ReplayRequest, host: Host) -> list[RunFinished]:
    """Search again over each recorded program, one after the other.

    Raises StoreError when the database can't be read or holds no recorded run that fits.
    """
    host.change_state(RunState.CAPTURING)
    with Store.open(request.database, read_only=True) as store:
        runs = _recorded_programs(store, request.target)
        if not runs:
            wanted = f" whose text contains {request.target!r}" if request.target else ""
            raise StoreError(f"{request.database} holds no finished run{wanted} to replay")
        finished: list[RunFinished] = []
        for run in runs:
            if host.control.stopping:
                break
            finished.append(_run(request, host, store, run))
        return finished


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


def _run(request: ReplayRequest, host: Host, store: Store, recorded: StoredRun) -> RunFinished:
    recording = Recording(store, recorded)
    device = host.own_device(ReplayDevice(recording, pace=request.pace))
    prior = ColdModel() if host.settings.prior == COLD else _steered_by(request.database, recorded)
    bench = Workbench(
        run=recorded.id,
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
    problem = RecordedProblem(recorded.target, store.recorded_groupings(recorded.id), store, recorded.context_key)
    try:
        return tune(bench, problem)
    finally:
        device.close()
