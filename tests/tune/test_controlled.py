"""ptxas controls in a run: offered last and empty first, believed only after the canary, used only when they win."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from engine.codegen import acf_of
from engine.deploy.deployment import kernel_choice
from engine.events import Compared, ControlsChecked, Event, KernelFinished, Logged, Measured
from engine.ir.kernel import Kernel
from engine.measure import (
    NO_OPTIMIZATION,
    Acceptance,
    Assembler,
    Controls,
    ControlsError,
    ControlsFile,
    DeviceHealth,
    Judgement,
    NoiseFloor,
    PairedTimes,
    option_sha256,
)
from engine.prior import ColdModel
from engine.search import EnumeratedSpace
from engine.store import Store
from engine.tune.controlled import ControlledProblem, ControlledSpace, ControlsMode, ControlsRequest
from engine.tune.problem import CapturedProblem, Problem
from engine.tune.settings import Objective, Settings
from engine.vocabulary import (
    BuildReport,
    Failure,
    FailureKind,
    Measurement,
    Option,
    Regime,
    Schedule,
    Status,
    Target,
    Timing,
)

from .fake_device import CONTEXT, FakeDevice
from .rig import matmul_program, tune_with

FAST, SLOW, WRONG, EVEN = (ControlsFile(name, name.encode()) for name in ("fast", "slow", "wrong", "even"))
BASE_US = {FAST.sha256: 0.9, SLOW.sha256: 1.3, EVEN.sha256: 0.9995}
O0 = option_sha256(NO_OPTIMIZATION)


def times(kernel: Kernel, schedule: Schedule) -> float:
    """Schedules differ by a few per cent, controls by what BASE_US says."""
    plain = Schedule.of({name: value for name, value in schedule.knobs if name != "ACF"})
    return (10.0 + (sum(plain.key.encode()) % 89) * 0.02) * BASE_US.get(acf_of(schedule), 1.0)


class Turns:
    """Windows in turns around what each candidate takes: `gain` of some controls in truth, `canary` without
    optimization, `itself` where a schedule stands a second time."""

    def __init__(
        self, gain: dict[str, float] | None = None, fresh: dict[str, float] | None = None, canary: float = 3.0
    ) -> None:
        self.gain = BASE_US if gain is None else gain
        self.fresh = self.gain if fresh is None else fresh
        self.canary = canary
        self.itself = 1.0
        self._draw = random.Random(3)
        self._asked = 0

    def __call__(self, kernel: Kernel, schedules: Sequence[Schedule], fresh: bool) -> PairedTimes:
        if kernel.label != "canary":
            self._asked += 1
        gain = self.fresh if self._asked > 1 else self.gain
        windows, seen = [], set()
        for schedule in schedules:
            acf = acf_of(schedule)
            plain = Schedule.of({**schedule.as_dict(), "ACF": ""})
            us = times(kernel, plain) * (self.canary if acf == O0 else gain.get(acf, 1.0))
            us *= self.itself if schedule in seen else 1.0
            seen.add(schedule)
            windows.append(tuple(us * self._draw.gauss(1.0, 0.002) for _ in range(25)))
        return PairedTimes(tuple(windows))


class Bench(FakeDevice):
    """A fake GPU on which `wrong` controls compute nonsense, and whose compiler says how many registers they take."""

    def __init__(self, turns: Turns | None) -> None:
        super().__init__(times, _failing)
        self.seen = DeviceHealth(noise=NoiseFloor(share=0.002, us=0.02))
        if turns is not None:
            self.paired = turns


def _failing(kernel: Kernel, schedule: Schedule) -> Failure | None:
    wrong = acf_of(schedule) == WRONG.sha256
    return Failure(FailureKind.WRONG_RESULT, "its error is 0.7") if wrong else None


def with_controls(
    *files: ControlsFile, after: bool = False, shared: bool = False, off_because: str = ""
) -> Callable[[Problem, Store], Problem]:
    def wrap(problem: Problem, store: Store) -> Problem:
        assembler = Assembler("/nowhere/ptxas", "13.3.73", "ab" * 32, True)
        each = tuple(Acceptance(file.sha256, file.name, True, changes_code=True) for file in files)
        judgement = Judgement(assembler, 90, each, off_because)
        mode = ControlsMode.SHARED if shared else ControlsMode.AFTER if after else ControlsMode.JOINT
        return ControlledProblem(problem, Controls(assembler, files), judgement, mode)

    return wrap


def tuned(
    database: Path,
    device: FakeDevice,
    *files: ControlsFile,
    settings: Settings | None = None,
    after: bool = False,
    off_because: str = "",
) -> list[Event]:
    events: list[Event] = []
    wrap = with_controls(*files, after=after, off_because=off_because)
    settings = settings or Settings(patience=120)
    tune_with(database, device, matmul_program(), settings, events=events, wrap=wrap)
    return events


def only(events: Sequence[Event], kind: type[Event]) -> Event:
    return next(event for event in reversed(events) if isinstance(event, kind))


def used(events: Sequence[Event]) -> str:
    finished = only(events, KernelFinished)
    assert isinstance(finished, KernelFinished)
    return finished.best_schedule


def logged(events: Sequence[Event], words: str) -> bool:
    return any(isinstance(event, Logged) and words in event.text for event in events)


def test_the_last_fork_offers_none_first() -> None:
    space = ControlledSpace(EnumeratedSpace([{"A": 1, "B": 1}, {"A": 2, "B": 1}]), ("f" * 64, "0" * 64))
    path: tuple[Option, ...] = ()
    names = []
    while fork := space.fork(path):
        names.append(fork.name)
        path = (*path, fork.options[0])
    assert names == ["A", "ACF"]
    assert path[-1] == Option((("ACF", ""),))
    last = space.fork(path[:-1])
    assert last is not None
    assert [dict(option.knobs)["ACF"] for option in last.options] == ["", "0" * 64, "f" * 64]


def test_candidates_and_space_agree(tmp_path: Path) -> None:
    program = matmul_program()
    plain = CapturedProblem(program, Target())
    kernel = plain.grouping(()).calls[0].kernel
    with Store.open(tmp_path / "t.db") as store:
        joint = with_controls(FAST, SLOW)(plain, store)
        after = with_controls(FAST, SLOW, after=True)(plain, store)
    count = len(plain.candidates(kernel))
    assert len(joint.candidates(kernel)) == 3 * count
    assert len(after.candidates(kernel)) == count
    assert {knobs["ACF"] for knobs in after.candidates(kernel)} == {""}


def test_controls_that_win_in_fresh_processes_are_used(tmp_path: Path) -> None:
    device = Bench(Turns())
    events = tuned(tmp_path / "t.db", device, FAST, SLOW)
    compared, checked = only(events, Compared), only(events, ControlsChecked)
    assert isinstance(checked, ControlsChecked)
    assert (checked.on, checked.offered, checked.mode) == (True, 2, "joint")
    assert checked.slowdown == pytest.approx(3.0, rel=0.01)
    assert isinstance(compared, Compared)
    assert acf_of(Schedule.from_key(compared.chosen)) == FAST.sha256
    assert FAST.sha256 in used(events)
    assert compared.processes == 2
    assert compared.control_verdict == "within noise"
    assert compared.tried > 2
    assert not acf_of(Schedule.from_key(compared.schedules[0]))
    fresh = [fresh for key, _, fresh in device.comparisons if key == compared.kernel]
    assert fresh == [True, True]
    assert logged(events, "ptxas controls win: 1.1")
    with Store.open(tmp_path / "t.db") as store:
        chosen = kernel_choice(store.kernels()[0], 1, store, CONTEXT.key, Target(), ColdModel()).chosen
    assert chosen is not None
    assert chosen.schedule.key == compared.chosen


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        (Turns(gain={FAST.sha256: 1.0}), "no ptxas controls win"),
        (Turns(fresh={FAST.sha256: 1.0}), "no ptxas controls win"),
        (Turns(gain={FAST.sha256: 0.999}), "no ptxas controls win"),
    ],
    ids=["lucky deploy time", "not in a second process", "inside the noise"],
)
def test_without_a_confirmed_win_none_are_used(tmp_path: Path, turns: Turns, words: str) -> None:
    events = tuned(tmp_path / "t.db", Bench(turns), FAST, SLOW)
    assert "ACF= " in f"{used(events)} "
    assert logged(events, words)


def test_noise_against_itself_gives_no_win(tmp_path: Path) -> None:
    class Drifting(Turns):
        def __call__(self, kernel: Kernel, schedules: Sequence[Schedule], fresh: bool) -> PairedTimes:
            self.itself = 1.0 if kernel.label == "canary" else 0.95
            return super().__call__(kernel, schedules, fresh)

    events = tuned(tmp_path / "t.db", Bench(Drifting()), FAST)
    compared = only(events, Compared)
    assert isinstance(compared, Compared)
    assert compared.control_verdict == "faster"
    assert not acf_of(Schedule.from_key(compared.chosen))


def test_slower_controls_are_never_confirmed(tmp_path: Path) -> None:
    device = Bench(Turns())
    events = tuned(tmp_path / "t.db", device, SLOW)
    assert "ACF= " in f"{used(events)} "
    assert not any(acf_of(schedule) == SLOW.sha256 for _, asked, _ in device.comparisons for schedule in asked)


def test_wrong_results_never_win(tmp_path: Path) -> None:
    events = tuned(tmp_path / "t.db", Bench(Turns()), WRONG)
    failed = [event for event in events if isinstance(event, Measured) and WRONG.sha256 in event.schedule]
    assert failed
    assert {event.failure for event in failed} == {FailureKind.WRONG_RESULT}
    assert WRONG.sha256 not in used(events)


@pytest.mark.parametrize(
    ("device", "words"),
    [
        (Bench(Turns(canary=1.0)), "without optimization takes 1.00"),
        (Bench(None), "the canary could not be timed"),
    ],
    ids=["not slower", "not timed"],
)
def test_a_red_canary_turns_the_layer_off(tmp_path: Path, device: FakeDevice, words: str) -> None:
    events = tuned(tmp_path / "t.db", device, FAST)
    checked = only(events, ControlsChecked)
    assert isinstance(checked, ControlsChecked)
    assert not checked.on
    assert words in checked.reason
    assert logged(events, "ptxas controls are off: ")
    assert all("ACF" not in schedule for _, schedule, _ in device.launches)
    assert used(events)


def test_what_ptxas_says_turns_the_layer_off_before_anything_runs(tmp_path: Path) -> None:
    device = Bench(Turns())
    events = tuned(tmp_path / "t.db", device, FAST, off_because="ptxas takes it and writes the same code")
    assert logged(events, "ptxas controls are off: ptxas takes it and writes the same code")
    assert all("ACF" not in schedule for _, schedule, _ in device.launches)


def test_schedules_first_then_the_controls_of_the_best(tmp_path: Path) -> None:
    device = Bench(Turns())
    events = tuned(tmp_path / "t.db", device, FAST, SLOW, WRONG, after=True)
    controlled = {
        Schedule.of({**Schedule.from_key(schedule).as_dict(), "ACF": ""}).key
        for _, schedule, _ in device.launches
        if acf_of(Schedule.from_key(schedule))
    }
    assert len(controlled) == 1, "one schedule only gets controls"
    tried = [key for _, key, regime in device.launches if regime is Regime.RANKING and acf_of(Schedule.from_key(key))]
    assert len(tried) == 3
    compared = only(events, Compared)
    assert isinstance(compared, Compared)
    assert compared.tried == 3
    assert FAST.sha256 in used(events)


@pytest.mark.parametrize("after", [False, True])
def test_a_rerun_is_served_and_decides_alike(tmp_path: Path, after: bool) -> None:
    first = tuned(tmp_path / "t.db", Bench(Turns()), FAST, SLOW, after=after)
    device = Bench(Turns(gain={}))
    again = tuned(tmp_path / "t.db", device, FAST, SLOW, after=after)
    compared = only(again, Compared)
    assert isinstance(compared, Compared)
    assert compared.cached
    assert used(again) == used(first)
    assert device.launches == []
    assert len(device.comparisons) == 1, "the canary alone is timed in every run"


class Counting(Bench):
    """Fast controls take many registers, even ones few."""

    registers: ClassVar[dict[str, int]] = {FAST.sha256: 200, EVEN.sha256: 24}

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime):  # type: ignore[no-untyped-def]
        answer = super().submit(kernel, schedule, regime)
        done: Measurement = answer.result()
        registers = self.registers.get(acf_of(schedule), 64)
        object.__setattr__(done, "build", BuildReport(registers, 0, 0, 0.1, 128))
        return answer


def test_registers_can_be_the_objective(tmp_path: Path) -> None:
    settings = Settings(patience=120, objective=Objective.REGISTERS)
    events = tuned(tmp_path / "t.db", Counting(Turns()), FAST, EVEN, settings=settings)
    assert EVEN.sha256 in used(events)
    with Store.open(tmp_path / "t.db") as store:
        rows = store.variants(top=3)[0].rows
    assert {row.registers for row in rows} <= {24, 64, 200}


def test_of_equal_counts_one_without_controls_is_used(tmp_path: Path) -> None:
    settings = Settings(patience=60, objective=Objective.SPILLS)
    events = tuned(tmp_path / "t.db", Counting(Turns()), FAST, settings=settings)
    assert "ACF= " in f"{used(events)} "


def test_costs_order_counts_before_times() -> None:
    def measured(us: float | None, registers: int | None) -> Measurement:
        timing = None if us is None else Timing(us, us, us)
        status = Status.FAILED if us is None else Status.OK
        return Measurement("k", Schedule.of({}), Regime.RANKING, "c", status, timing, build=BuildReport(registers))

    slow_small, fast_large = measured(1e6, 32), measured(1.0, 33)
    assert Objective.REGISTERS.prefers(slow_small, fast_large)
    assert Objective.TIME.prefers(fast_large, slow_small)
    assert Objective.REGISTERS.prefers(measured(1.0, 32), slow_small)
    assert Objective.REGISTERS.cost(measured(1.0, None)) is None
    assert not Objective.TIME.prefers(measured(None, 32), None)


def test_a_path_that_isnt_there_is_named_before_any_ptxas_is_looked_for(tmp_path: Path) -> None:
    missing = tmp_path / "nothing"
    with pytest.raises(ControlsError, match=str(missing)):
        ControlsRequest([missing], tmp_path / "no ptxas").load()
