"""The finalists of a kernel: the one that is used, what a comparison needs, and that a re-run decides alike."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from engine.deploy.deployment import kernel_choice
from engine.deploy.evidence import Source
from engine.events import Compared, Event, KernelFinished, Logged
from engine.ir.kernel import Kernel
from engine.measure import DeviceHealth, NoiseFloor, PairedTimes
from engine.prior import ColdModel
from engine.snapshot import Snapshot, apply
from engine.store import Store
from engine.vocabulary import Failure, FailureKind, Schedule, Target

from .fake_device import CONTEXT, FakeDevice
from .rig import matmul_program, tune_with


class Turns:
    """Windows drawn around what each candidate takes in truth; what it took alone was off by what `us` adds."""

    def __init__(self, truth: Sequence[float], fresh: Sequence[float] | None = None) -> None:
        self._truth = {False: truth, True: fresh or truth}
        self._draw = random.Random(1)

    def __call__(self, kernel: Kernel, schedules: Sequence[Schedule], fresh: bool) -> PairedTimes:
        middles = self._truth[fresh][: len(schedules)]
        return PairedTimes(tuple(tuple(us * self._draw.gauss(1.0, 0.002) for _ in range(25)) for us in middles))


def level_device(turns: Turns | None = None) -> FakeDevice:
    """Its candidates all take about the same alone, each a different time, so that there are always four finalists."""
    device = FakeDevice(us=lambda kernel, schedule: 10.0 + (sum(schedule.key.encode()) % 97) * 1e-3)
    device.seen = DeviceHealth(noise=NoiseFloor(share=0.004, us=0.04))
    if turns is not None:
        device.paired = turns
    return device


def tuned(database: Path, device: FakeDevice) -> tuple[list[Event], Compared | None, str]:
    events: list[Event] = []
    tune_with(database, device, matmul_program(), events=events)
    compared = next((event for event in events if isinstance(event, Compared)), None)
    finished = next(event for event in events if isinstance(event, KernelFinished))
    return events, compared, finished.best_schedule


def test_a_finalist_that_is_faster_in_turns_in_two_processes_is_used(tmp_path: Path) -> None:
    device = level_device(Turns((10.0, 10.0, 9.0, 10.5)))
    events, compared, used = tuned(tmp_path / "t.db", device)
    assert compared is not None
    assert compared.verdicts == ("within noise", "faster", "slower")
    assert compared.chosen == compared.schedules[2]
    assert used == str(Schedule.from_key(compared.chosen))
    assert compared.lows[1] < 0.9 < compared.highs[1] < 1.0
    assert compared.tied == 0
    assert [fresh for _, _, fresh in device.comparisons] == [False, True]
    assert any(isinstance(event, Logged) and "number 3 by deploy time is faster" in event.text for event in events)
    with Store.open(tmp_path / "t.db") as store:
        kernel = store.kernels()[0]
        chosen = kernel_choice(kernel, 1, store, CONTEXT.key, Target(), ColdModel()).chosen
    assert chosen is not None
    assert (chosen.source, chosen.schedule.key) == (Source.DEPLOY, compared.chosen)


def test_a_win_that_a_fresh_process_does_not_repeat_changes_nothing(tmp_path: Path) -> None:
    turns = Turns((10.0, 10.0, 9.0, 10.0), fresh=(10.0, 10.0, 10.1, 10.0))
    _, compared, _ = tuned(tmp_path / "t.db", level_device(turns))
    assert compared is not None
    assert compared.processes == 2
    assert compared.chosen == compared.schedules[0]
    assert set(compared.verdicts) == {"within noise"}
    assert compared.tied == 3


def test_equals_are_not_timed_in_a_second_process(tmp_path: Path) -> None:
    device = level_device(Turns((10.0, 10.0, 10.0, 10.0)))
    events, compared, _ = tuned(tmp_path / "t.db", device)
    assert compared is not None
    assert (compared.processes, compared.tied) == (1, 3)
    assert len(device.comparisons) == 1
    assert any(isinstance(event, Logged) and "3 are within noise of the best" in event.text for event in events)


def test_a_rerun_decides_alike_and_times_nothing(tmp_path: Path) -> None:
    _, first, used = tuned(tmp_path / "t.db", level_device(Turns((10.0, 9.0, 10.0, 10.0))))
    again = level_device(Turns((9.0, 10.0, 10.0, 10.0)))
    _, second, used_again = tuned(tmp_path / "t.db", again)
    assert first is not None
    assert second is not None
    assert used_again == used
    assert (second.chosen, second.ratios, second.cached) == (first.chosen, first.ratios, True)
    assert (again.comparisons, again.launches) == ([], [])


def test_a_device_that_times_nothing_in_turns_leaves_the_lowest_time(tmp_path: Path) -> None:
    _, compared, used = tuned(tmp_path / "t.db", level_device())
    assert compared is None
    with Store.open(tmp_path / "t.db") as store:
        best = kernel_choice(store.kernels()[0], 1, store, CONTEXT.key, Target(), ColdModel()).chosen
    assert best is not None
    assert used == str(best.schedule)


def test_a_finalist_that_fails_in_turns_is_said_and_the_run_goes_on(tmp_path: Path) -> None:
    device = level_device()
    device.paired = lambda *asked: PairedTimes(failure=Failure(FailureKind.HANG, "its timing did not end within 5 s"))
    events, compared, used = tuned(tmp_path / "t.db", device)
    assert compared is None
    assert used
    warnings = [event.text for event in events if isinstance(event, Logged) and event.level == "warning"]
    assert warnings == [warnings[0]]
    assert "could not be timed in turns (hang: its timing did not end within 5 s)" in warnings[0]


def test_a_device_that_closes_meanwhile_stops_the_run(tmp_path: Path) -> None:
    def closed(*asked: object) -> PairedTimes:
        raise CancelledError

    device = level_device()
    device.paired = closed
    events: list[Event] = []
    tune_with(tmp_path / "t.db", device, matmul_program(), events=events)
    assert any(isinstance(event, Logged) and "stopped on request" in event.text for event in events)


def test_the_snapshot_holds_the_comparison_and_the_noise_floor(tmp_path: Path) -> None:
    events, compared, _ = tuned(tmp_path / "t.db", level_device(Turns((10.0, 11.0, 11.0, 11.0))))
    snapshot = Snapshot()
    for event in events:
        apply(snapshot, event)
    assert list(snapshot.comparisons.values()) == [compared]
    assert snapshot.health is not None
    assert snapshot.health.noise_us == pytest.approx(0.04)
    with Store.open(tmp_path / "t.db") as store:
        recorded = list(store.events_of(store.runs()[0].id))
    assert compared in recorded
