"""A whole run: what is measured, what is served, what is measured twice, and what a failure does."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.events import Assembled, Event, GroupingScored, KernelFinished, Measured, NodeOpened
from engine.ir import GraphBuilder, TensorSpec
from engine.ir.kernel import Kernel
from engine.ir.plan import Program
from engine.snapshot import Snapshot, apply
from engine.store import Store
from engine.tune.control import Control
from engine.tune.settings import Settings
from engine.vocabulary import Failure, FailureKind, Regime, Schedule

from .fake_device import CONTEXT, FakeDevice, landscape_us
from .rig import linear_gelu_program, matmul_program, tune_with


def _measured(events: list[Event], regime: Regime) -> list[Measured]:
    return [event for event in events if isinstance(event, Measured) and event.regime == regime]


def test_a_rerun_walks_the_same_path_and_launches_nothing(tmp_path: Path) -> None:
    first_events: list[Event] = []
    second_events: list[Event] = []
    first = tune_with(tmp_path / "t.db", FakeDevice(), matmul_program(), events=first_events)
    again = FakeDevice()
    second = tune_with(tmp_path / "t.db", again, matmul_program(), events=second_events)
    assert first.measured > 20
    assert again.launches == []
    assert again.assemblies == []
    assert second.measured == 0
    assert second.cached == first.measured
    assert (second.sum_us, second.assembled_us) == (first.sum_us, first.assembled_us)
    paths = [[event.schedule for event in _measured(e, Regime.RANKING)] for e in (first_events, second_events)]
    assert paths[0] == paths[1]


def test_the_same_seed_gives_the_same_path_in_two_databases(tmp_path: Path) -> None:
    devices = [FakeDevice(), FakeDevice()]
    for number, device in enumerate(devices):
        tune_with(tmp_path / f"{number}.db", device, matmul_program())
    assert devices[0].launches == devices[1].launches


def test_a_killed_run_measures_nothing_again(tmp_path: Path) -> None:
    control = Control()
    seen: list[Event] = []
    stopping = FakeDevice(us=lambda kernel, schedule: _stop_after(control, seen, 30, landscape_us(kernel, schedule)))
    settings = Settings(patience=60)
    tune_with(tmp_path / "t.db", stopping, matmul_program(), settings, control, seen)
    kept = {e.schedule for e in _measured(seen, Regime.RANKING)}
    resumed = FakeDevice()
    tune_with(tmp_path / "t.db", resumed, matmul_program(), settings)
    again = {str(Schedule.from_key(key)) for _, key, regime in resumed.launches if regime is Regime.RANKING}
    assert len(kept) >= 10
    assert again
    assert not kept & again


def _stop_after(control: Control, seen: list[Event], count: int, us: float) -> float:
    if len(_measured(seen, Regime.RANKING)) >= count:
        control.stop()
    return us


def test_only_candidates_near_the_best_so_far_are_measured_in_the_deploy_regime(tmp_path: Path) -> None:
    events: list[Event] = []
    device = FakeDevice()
    tune_with(tmp_path / "t.db", device, matmul_program(), events=events)
    best = float("inf")
    expected = set()
    for event in _measured(events, Regime.RANKING):
        assert event.us is not None
        best = min(best, event.us)
        if event.us <= best * 1.15:
            expected.add(event.schedule)
    deployed = [event.schedule for event in _measured(events, Regime.DEPLOY)]
    assert set(deployed) == expected
    assert len(deployed) == len(expected)


def test_every_grouping_is_entered_and_the_fastest_assembled_graph_wins(tmp_path: Path) -> None:
    events: list[Event] = []
    device = FakeDevice()
    finished = tune_with(tmp_path / "t.db", device, linear_gelu_program(), events=events)
    scored = [event for event in events if isinstance(event, GroupingScored)]
    assert len(scored) >= 2
    assert all(event.sum_us is not None for event in scored)
    assembled = [event.assembled_us for event in events if isinstance(event, Assembled)]
    assert finished.assembled_us == min(us for us in assembled if us is not None)
    kernels_tuned = [event.kernel for event in events if isinstance(event, KernelFinished)]
    assert len(kernels_tuned) == len(set(kernels_tuned))


def test_a_kernel_whose_candidates_all_fail_the_same_way_stops_early_and_says_the_cause(tmp_path: Path) -> None:
    broken = Failure(FailureKind.COMPILE_ERROR, "ptxas is missing")
    events: list[Event] = []
    device = FakeDevice(failing=lambda kernel, schedule: broken)
    finished = tune_with(tmp_path / "t.db", device, matmul_program(), Settings(patience=200), events=events)
    end = next(event for event in events if isinstance(event, KernelFinished))
    assert end.state == "failed"
    assert "ptxas is missing" in end.reason
    assert len(device.launches) < 60
    assert finished.sum_us is None
    assert any(isinstance(e, GroupingScored) and e.sum_us is None and "ptxas is missing" in e.reason for e in events)


def test_failed_candidates_cost_one_row_each_and_never_win(tmp_path: Path) -> None:
    def failing(kernel: Kernel, schedule: Schedule) -> Failure | None:
        fast = landscape_us(kernel, schedule) < 60
        return Failure(FailureKind.WRONG_RESULT, "relative error 0.4") if fast else None

    device = FakeDevice(failing=failing)
    finished = tune_with(tmp_path / "t.db", device, matmul_program(), Settings(patience=40))
    assert finished.failed > 0
    assert finished.best_us is not None
    assert finished.best_us >= 60
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        rows = store.variants("", 10_000)
        assert sum(item.failed for item in rows) == finished.failed


def test_what_was_emitted_and_what_the_database_tells_a_follower_are_the_same_run(tmp_path: Path) -> None:
    events: list[Event] = []
    tune_with(tmp_path / "t.db", FakeDevice(), linear_gelu_program(), events=events)
    live, followed = Snapshot(), Snapshot()
    for event in events:
        apply(live, event)
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        run = store.latest_run()
        assert run is not None
        for event in store.events_of(run.id):
            apply(followed, event)
    assert followed.kernels.keys() == live.kernels.keys()
    for key, row in live.kernels.items():
        seen = followed.kernels[key]
        assert (seen.best_us, seen.measured, seen.failed, seen.best_schedule) == (
            row.best_us,
            row.measured,
            row.failed,
            row.best_schedule,
        )
    assert {n: (r.visits, r.best_us) for n, r in followed.nodes.items()} == {
        n: (r.visits, r.best_us) for n, r in live.nodes.items()
    }
    assert followed.groupings == live.groupings


def test_siblings_of_a_path_are_opened_once_so_that_what_was_passed_over_is_visible(tmp_path: Path) -> None:
    events: list[Event] = []
    tune_with(tmp_path / "t.db", FakeDevice(), matmul_program(), events=events)
    opened = [event.node for event in events if isinstance(event, NodeOpened)]
    assert len(opened) == len(set(opened))
    visited = {event.node for event in _measured(events, Regime.RANKING)}
    assert visited < set(opened)


@pytest.mark.parametrize("window", [1, 7, 16])
def test_any_window_finds_and_records_the_best_of_what_it_tried(tmp_path: Path, window: int) -> None:
    device = FakeDevice()
    settings = Settings(patience=30, window=window)
    finished = tune_with(tmp_path / "t.db", device, matmul_program(), settings)
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        kernel = store.kernels()[0]
        best = store.best(kernel.key, CONTEXT.key, Regime.RANKING)
        assert best is not None
        assert best.us == pytest.approx(finished.best_us)


def test_a_kernel_that_no_family_can_generate_fails_with_the_familys_reason(tmp_path: Path) -> None:
    builder = GraphBuilder()
    left, right = (builder.input(TensorSpec.contiguous((64, 64), "float64")) for _ in range(2))
    program = Program(builder.build(builder.add("matmul", left, right)), "double")
    events: list[Event] = []
    device = FakeDevice()
    finished = tune_with(tmp_path / "t.db", device, program, events=events)
    assert device.launches == []
    assert finished.sum_us is None
    assert any(isinstance(e, GroupingScored) and "float64" in e.reason for e in events)
