"""Which groupings are put together, how often, and which of them wins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from engine.events import Assembled, Event, GroupingScored, GroupingsExplored
from engine.ir import Graph
from engine.ir.plan import Grouping
from engine.measure import AssembledResult
from engine.store import Store
from engine.tune.settings import Settings
from engine.vocabulary import Failure, FailureKind, Schedule, Target, Timing

from .fake_device import FakeDevice
from .rig import linear_gelu_program, matmul_program, tune_with


class Assembling(FakeDevice):
    """Every kernel takes 10 us alone; a whole takes what `whole_us` says of its launches and of `pdl`."""

    def __init__(self, whole_us: Mapping[tuple[int, bool], float | None], capability: int = 90) -> None:
        super().__init__(us=lambda kernel, schedule: 10.0 if kernel.family == "contraction" else 0.5)
        self._whole_us = whole_us
        self._capability = capability
        self.asked: list[tuple[int, bool]] = []

    @property
    def target(self) -> Target:
        return Target(capability=self._capability)

    def assemble(
        self,
        grouping: Grouping,
        schedules: Mapping[str, Schedule],
        program: Graph | None = None,
        *,
        pdl: bool = False,
    ) -> AssembledResult:
        key = (len(grouping.calls), pdl)
        self.asked.append(key)
        us = self._whole_us[key]
        if us is None:
            return AssembledResult(None, failure=Failure(FailureKind.WRONG_RESULT, "relative error 0.3"))
        return AssembledResult(Timing(us, us, us, (us,)), 1e-3)


def tuned(path: Path, device: FakeDevice, settings: Settings | None = None) -> tuple[list[Event], float | None]:
    events: list[Event] = []
    settings = settings or Settings(patience=3, limit=6)
    finished = tune_with(path, device, linear_gelu_program(), settings, events=events)
    return events, finished.assembled_us


@pytest.mark.parametrize(
    ("whole_us", "best_us"),
    [
        ({(1, False): 10.2, (2, False): 11.0, (2, True): 10.7}, 10.2),
        ({(1, False): 11.2, (2, False): 11.0, (2, True): 10.7}, 10.7),
        ({(1, False): 11.2, (2, False): 11.0, (2, True): None}, 11.0),
        ({(1, False): None, (2, False): None, (2, True): 12.0}, 12.0),
        ({(1, False): None, (2, False): None, (2, True): None}, None),
    ],
)
def test_the_fastest_graph_wins_with_or_without_dependent_launch(
    tmp_path: Path, whole_us: Mapping[tuple[int, bool], float | None], best_us: float | None
) -> None:
    device = Assembling(whole_us)
    events, assembled_us = tuned(tmp_path / "t.db", device)
    assert assembled_us == best_us
    assert set(device.asked) == {(1, False), (2, False), (2, True)}, "a single kernel waits for nobody"
    told = [(event.pdl, event.assembled_us, event.reason) for event in events if isinstance(event, Assembled)]
    assert len(told) == 3
    assert all(us is not None or reason == "relative error 0.3" for _, us, reason in told)


def test_both_times_are_kept_and_a_rerun_assembles_nothing(tmp_path: Path) -> None:
    whole_us = {(1, False): 11.2, (2, False): 11.0, (2, True): 10.7}
    tuned(tmp_path / "t.db", Assembling(whole_us))
    again = Assembling(whole_us)
    events, assembled_us = tuned(tmp_path / "t.db", again)
    assert again.asked == []
    assert assembled_us == 10.7
    assert {event.assembled_us for event in events if isinstance(event, Assembled)} == {11.2, 11.0, 10.7}
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        run = store.latest_run()
        assert run is not None
        rows = store.recorded_groupings(run.id)
        assert {(row.assembled_us, row.pdl_us) for row in rows} == {(11.2, None), (11.0, 10.7)}
        assert min(row.whole_us for row in rows if row.whole_us is not None) == 10.7


def test_sums_that_are_far_off_are_not_put_together(tmp_path: Path) -> None:
    device = Assembling({(1, False): 10.2, (2, False): 1.0, (2, True): 1.0})
    tuned(tmp_path / "t.db", device, Settings(patience=3, limit=6, near_share=0.04))
    assert device.asked == [(1, False)]
    only = Assembling({(1, False): 10.2, (2, False): 1.0, (2, True): 1.0})
    tuned(tmp_path / "u.db", only, Settings(patience=3, limit=6, finalists=1))
    assert only.asked == [(1, False)]


def test_a_gpu_before_hopper_has_no_dependent_launch(tmp_path: Path) -> None:
    device = Assembling({(1, False): 11.2, (2, False): 11.0}, capability=80)
    tuned(tmp_path / "t.db", device)
    assert set(device.asked) == {(1, False), (2, False)}


def test_what_the_outer_search_left_alone_is_told(tmp_path: Path) -> None:
    events: list[Event] = []
    tune_with(tmp_path / "t.db", FakeDevice(), linear_gelu_program(), Settings(outer_patience=1), events=events)
    (ended,) = [event for event in events if isinstance(event, GroupingsExplored)]
    scored = [event for event in events if isinstance(event, GroupingScored)]
    assert (ended.entered, ended.failed, ended.exact) == (len(scored), 0, True)
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        run = store.latest_run()
        assert run is not None
        assert store.explored(run.id) == ended
    whole: list[Event] = []
    tune_with(tmp_path / "u.db", FakeDevice(), linear_gelu_program(), Settings(outer_patience=50), events=whole)
    (last,) = [event for event in whole if isinstance(event, GroupingsExplored)]
    assert last.untried == 0
    assert last.entered == ended.entered + ended.untried


def test_a_failed_grouping_is_counted_as_one(tmp_path: Path) -> None:
    events: list[Event] = []
    broken = Failure(FailureKind.COMPILE_ERROR, "ptxas is missing")
    tune_with(tmp_path / "t.db", FakeDevice(failing=lambda *_: broken), matmul_program(), events=events)
    (ended,) = [event for event in events if isinstance(event, GroupingsExplored)]
    assert (ended.entered, ended.failed, ended.untried) == (1, 1, 0)


def test_a_recording_without_dependent_launches_tells_nothing_of_them(tmp_path: Path) -> None:
    class Recorded(Assembling):
        def assemble(
            self,
            grouping: Grouping,
            schedules: Mapping[str, Schedule],
            program: Graph | None = None,
            *,
            pdl: bool = False,
        ) -> AssembledResult:
            return AssembledResult(None) if pdl else super().assemble(grouping, schedules, program)

    events, assembled_us = tuned(tmp_path / "t.db", Recorded({(1, False): 11.2, (2, False): 11.0}))
    assert assembled_us == 11.0
    assert not any(event.pdl for event in events if isinstance(event, Assembled))
