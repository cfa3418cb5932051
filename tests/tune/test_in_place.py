"""Schedules in the whole graph: a runner-up that is faster there replaces the winner, and is asked for only once."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.cli.explaining import times_text
from engine.cli.grouping_report import programs_with_groupings
from engine.cli.summary import summary_lines
from engine.codegen import offered_schedules
from engine.deploy import Source, deployment, deploys_now
from engine.events import Assembled, ComparedInPlace, Event, Logged, RunFinished, RunState
from engine.ir import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure import AssembledResult, Device, PairedTimes
from engine.prior import ColdModel
from engine.snapshot import Snapshot, apply
from engine.store import Store
from engine.tune import Control, ReplayRequest, tune_replay
from engine.tune.devices import Fleet
from engine.tune.in_place import PIPELINE, RUNNERS_UP, WITHIN
from engine.tune.settings import Objective, Settings
from engine.vocabulary import Failure, FailureKind, Measurement, Regime, Schedule, Status, Timing, Verdict

from .fake_device import FakeDevice, landscape_us
from .rig import linear_gelu_program, tune_with

SETTINGS = Settings(patience=10, outer_patience=50, near_share=1.5)
WRONG = Failure(FailureKind.WRONG_RESULT, "relative error 0.3")


class InPlace(FakeDevice):
    """In a graph every schedule but the one that is fastest alone saves `saves_us`, except those of `wrong`."""

    def __init__(self, saves_us: float, wrong: int = 0, always: bool = False) -> None:
        super().__init__(us=self.alone_us)
        self.saves_us = saves_us
        self.wrong = wrong
        self.always = always
        self.times: dict[str, dict[str, float]] = {}
        self.graphs: list[tuple[dict[str, str], bool]] = []
        self.turns: list[list[Mapping[str, Schedule]]] = []
        self.refused: set[str] = set()

    def alone_us(self, kernel: Kernel, schedule: Schedule) -> float:
        us = 30.0 + 1e-3 * (landscape_us(kernel, schedule) % 1.0)
        self.times.setdefault(kernel.key, {})[schedule.key] = us
        return us

    def is_fastest_alone(self, kernel: str, schedule: Schedule) -> bool:
        times = self.times[kernel]
        return times[schedule.key] == min(times.values())

    def whole_us(self, grouping: Grouping, schedules: Mapping[str, Schedule], pdl: bool) -> float:
        us = 70.0 if len(grouping.calls) == 2 else 90.0
        return us - sum(self.saves_us for key, s in schedules.items() if not self.is_fastest_alone(key, s)) - pdl

    def assemble(
        self,
        grouping: Grouping,
        schedules: Mapping[str, Schedule],
        program: Graph | None = None,
        *,
        pdl: bool = False,
    ) -> AssembledResult:
        self.graphs.append(({key: schedule.key for key, schedule in schedules.items()}, pdl))
        us = self.whole_us(grouping, schedules, pdl)
        return AssembledResult(Timing(us, us, us, (us,)), 1e-3)

    def compare_graphs(
        self,
        grouping: Grouping,
        schedules: Sequence[Mapping[str, Schedule]],
        program: Graph | None = None,
        *,
        pdl: bool = False,
    ) -> PairedTimes:
        self.turns.append(list(schedules))
        for one in schedules[1:]:
            key = next(key for key in one if one[key] != schedules[0][key])
            if len(self.refused) < self.wrong or one[key].key in self.refused or self.always:
                self.refused.add(one[key].key)
                return PairedTimes(failure=WRONG)
        each = [self.whole_us(grouping, one, pdl) for one in schedules]
        return PairedTimes(tuple(tuple(us * (1 + 1e-4 * (r % 3)) for r in range(12)) for us in each))


def tuned(path: Path, device: FakeDevice, settings: Settings = SETTINGS) -> list[Event]:
    events: list[Event] = []
    events.append(tune_with(path, device, linear_gelu_program(), settings, events=events))
    return events


def of_kind(events: Sequence[Event], kind: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def end_of(events: Sequence[Event]) -> RunFinished:
    end = events[-1]
    assert isinstance(end, RunFinished)
    return end


def best_of(path: Path) -> tuple[float, Mapping[str, Schedule]]:
    with Store.open(path, read_only=True) as store:
        run = store.latest_run()
        assert run is not None
        row = min(
            (row for row in store.recorded_groupings(run.id) if row.whole_us is not None), key=lambda r: r.whole_us or 0
        )
        recorded = store.assembled(row.grouping, run.context_key, pdl=row.pdl_us == row.whole_us)
        assert recorded is not None
        assert store.assembled(row.id, run.context_key, pdl=row.pdl_us == row.whole_us) == recorded
        return row.whole_us or 0.0, recorded.schedules


def test_a_runner_up_that_is_faster_in_place_is_what_is_kept(tmp_path: Path) -> None:
    device = InPlace(saves_us=4.0)
    events = tuned(tmp_path / "t.db", device)
    us, schedules = best_of(tmp_path / "t.db")
    assert not any(device.is_fastest_alone(key, schedule) for key, schedule in schedules.items())
    assert us == 70.0 - 4.0 * len(schedules) - 1.0
    assert min(event.assembled_us or us for event in events if isinstance(event, Assembled)) == us
    assert any("runners-up of" in event.text for event in events if isinstance(event, Logged))
    end = end_of(events)
    assert (end.in_place, end.alone_us, end.assembled_us) == (2, 69.0, us)
    for event in of_kind(events, ComparedInPlace):
        assert isinstance(event, ComparedInPlace)
        assert event.kept != event.schedules[0]
        assert Verdict.FASTER in event.verdicts
        assert event.medians_us[1] < event.medians_us[0]


def test_what_won_in_place_is_deployed(tmp_path: Path) -> None:
    device = InPlace(saves_us=4.0)
    tuned(tmp_path / "t.db", device)
    us, schedules = best_of(tmp_path / "t.db")
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        chosen = deployment(linear_gelu_program(), store, device.context.key, device.target, ColdModel())
    assert chosen.schedules == schedules
    assert (chosen.us, chosen.alone_us) == (us, 69.0)
    assert {item.chosen.source for item in chosen.kernels if item.chosen is not None} == {Source.IN_PLACE}
    assert "in place: 69" in times_text(chosen)


def test_the_end_of_a_run_and_the_groupings_say_what_was_tried(tmp_path: Path) -> None:
    tuned(tmp_path / "t.db", InPlace(saves_us=4.0))
    snapshot = Snapshot()
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        run = store.latest_run()
        assert run is not None
        (program,) = programs_with_groupings(store)
        assert program.in_place == store.tried_in_place(run.id)
        assert len(program.in_place) == 2
        assert all("makes the graph faster" in one.text for one in program.in_place)
        for event in store.events_of(run.id):
            apply(snapshot, event)
    assert sum(isinstance(event, ComparedInPlace) for event in snapshot.log) == 2
    apply(snapshot, end_of(tuned(tmp_path / "t.db", InPlace(saves_us=4.0))))
    (said,) = (line for line in summary_lines(snapshot, tmp_path / "t.db", None) if line.startswith("in place"))
    assert "2 kernels" in said
    assert "69.00 us" in said


def test_in_the_program_the_screens_show_what_won_in_place_and_alone_the_own_best(tmp_path: Path) -> None:
    device = InPlace(saves_us=4.0)
    tuned(tmp_path / "t.db", device)
    _, schedules = best_of(tmp_path / "t.db")
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        run = store.latest_run()
        assert run is not None
        for key, schedule in schedules.items():
            placed = deploys_now(store, key, device.context.key, ColdModel(), run.id)
            alone = deploys_now(store, key, device.context.key, ColdModel())
            assert (placed.schedule, placed.regime) == (schedule, Regime.DEPLOY)
            assert placed.runner_up is not None
            assert placed.runner_up.schedule == alone.schedule
            assert device.is_fastest_alone(key, alone.schedule or schedule)
            assert placed.lines[1:] == alone.lines


def test_the_fastest_graph_of_all_runs_of_a_program_decides_for_its_kernels(tmp_path: Path) -> None:
    """A later run that tried nothing in place comes to a slower graph."""
    device = InPlace(saves_us=4.0)
    tuned(tmp_path / "t.db", device)
    tuned(tmp_path / "t.db", device, Settings(patience=10, outer_patience=50, near_share=1.5, in_place=0))
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        chosen = deployment(linear_gelu_program(), store, device.context.key, device.target, ColdModel())
        first, later = store.runs()
        assert best_of(tmp_path / "t.db")[1] != chosen.schedules
        for key, schedule in chosen.schedules.items():
            for run in (first, later):
                assert deploys_now(store, key, device.context.key, ColdModel(), run.id).schedule == schedule


@dataclass
class ReplayHost:
    """Whoever asks for a replay."""

    settings: Settings
    events: list[Event] = field(default_factory=list)
    control: Control = field(default_factory=Control)

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def change_state(self, state: RunState, reason: str = "") -> None:
        return None

    def own_device(self, device: Device) -> Device:
        return device


@pytest.mark.parametrize("compared", [True, False])
def test_a_replay_ends_as_the_recorded_run_did_with_or_without_its_comparisons(tmp_path: Path, compared: bool) -> None:
    tuned(tmp_path / "t.db", InPlace(saves_us=4.0))
    if not compared:
        with sqlite3.connect(tmp_path / "t.db") as database:
            database.execute("DELETE FROM event WHERE kind = 'ComparedInPlace'")
    host = ReplayHost(SETTINGS)
    (end,) = tune_replay(ReplayRequest(tmp_path / "t.db"), host)
    assert (end.in_place, end.alone_us, end.assembled_us) == (2, 69.0, best_of(tmp_path / "t.db")[0])
    assert len(of_kind(host.events, ComparedInPlace)) == 2 * compared


def test_a_fleet_compares_graphs_at_one_of_its_devices(tmp_path: Path) -> None:
    first, second = InPlace(saves_us=4.0), InPlace(saves_us=4.0)
    second.times = first.times
    events: list[Event] = []
    end = tune_with(tmp_path / "t.db", Fleet([first, second]), linear_gelu_program(), SETTINGS, events=events)
    assert end.in_place == 2
    assert (len(first.turns), second.turns) == (2, [])
    assert Fleet([FakeDevice()]).compare_graphs(Grouping((), (), ()), [{}]) == PairedTimes()


def test_a_pin_decides_before_what_won_in_place(tmp_path: Path) -> None:
    device = InPlace(saves_us=4.0)
    tuned(tmp_path / "t.db", device)
    _, schedules = best_of(tmp_path / "t.db")
    pinned, other = schedules
    own = Schedule.from_key(min(device.times[pinned], key=lambda key: device.times[pinned][key]))
    with Store.open(tmp_path / "t.db") as store:
        store.record_pin(pinned, own, device.context.key, author="me")
        chosen = deployment(linear_gelu_program(), store, device.context.key, device.target, ColdModel())
        without = deployment(linear_gelu_program(), store, device.context.key, device.target, ColdModel(), pins=False)
    assert chosen.schedules == {pinned: own, other: schedules[other]}
    assert chosen.us is None, "this graph was not timed"
    assert without.schedules == schedules


def test_a_schedule_found_faster_alone_after_the_run_decides_for_its_kernel(tmp_path: Path) -> None:
    device = InPlace(saves_us=4.0)
    tuned(tmp_path / "t.db", device)
    _, schedules = best_of(tmp_path / "t.db")
    key, other = schedules
    with Store.open(tmp_path / "t.db") as store:
        run = store.latest_run()
        assert run is not None
        offered = offered_schedules(store.kernel(key), device.target)
        found = next(one for one in offered if one.key not in device.times[key])
        timing = Timing(1.0, 1.0, 1.0, (1.0,))
        fast = Measurement(key, found, Regime.DEPLOY, device.context.key, Status.OK, timing=timing)
        store.record_measurement(fast, run=run.id)
        chosen = deployment(linear_gelu_program(), store, device.context.key, device.target, ColdModel())
    assert chosen.schedules == {key: found, other: schedules[other]}


def test_a_rerun_puts_nothing_together_and_ends_with_the_same(tmp_path: Path) -> None:
    tuned(tmp_path / "t.db", InPlace(saves_us=4.0))
    first = best_of(tmp_path / "t.db")
    again = InPlace(saves_us=4.0)
    events = tuned(tmp_path / "t.db", again)
    assert (again.graphs, again.turns, again.launches) == ([], [], [])
    assert best_of(tmp_path / "t.db") == first
    assert end_of(events).in_place == 2
    assert all(event.cached for event in events if isinstance(event, ComparedInPlace))


def test_a_gain_inside_the_noise_changes_nothing(tmp_path: Path) -> None:
    device = InPlace(saves_us=0.2)
    events = tuned(tmp_path / "t.db", device)
    assert not any("runners-up of" in event.text for event in events if isinstance(event, Logged))
    assert best_of(tmp_path / "t.db")[0] == 69.0
    assert (end_of(events).in_place, end_of(events).alone_us) == (0, 69.0)
    assert all(event.kept == event.schedules[0] for event in events if isinstance(event, ComparedInPlace))


def test_a_schedule_that_is_wrong_in_place_is_not_kept_and_the_others_are_tried_alone(tmp_path: Path) -> None:
    device = InPlace(saves_us=4.0, wrong=1)
    events = tuned(tmp_path / "t.db", device)
    kept = [schedule.key for schedule in best_of(tmp_path / "t.db")[1].values()]
    assert device.refused
    assert not device.refused & set(kept)
    reasons = [event.reason for event in events if isinstance(event, ComparedInPlace) and event.reason]
    assert set(reasons) == {"wrong result: relative error 0.3"}
    assert end_of(events).in_place == 2
    none = tuned(tmp_path / "u.db", InPlace(saves_us=4.0, always=True))
    assert end_of(none).in_place == 0
    assert best_of(tmp_path / "u.db")[0] == 69.0
    again = InPlace(saves_us=4.0)
    tuned(tmp_path / "u.db", again)
    assert again.turns == [], "what failed in place is known too"


def test_few_graphs_are_tried_and_only_of_schedules_that_are_close_alone(tmp_path: Path) -> None:
    device = InPlace(saves_us=0.0)
    tuned(tmp_path / "t.db", device)
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        run = store.latest_run()
        assert run is not None
        for turns in device.turns:
            assert len(turns) <= 1 + RUNNERS_UP
            for graph in turns:
                for key, schedule in graph.items():
                    times = store.timed(key, run.context_key)
                    assert times[schedule] <= min(times.values()) * (1 + WITHIN)
    assert len(device.turns) == 2


@pytest.mark.parametrize(("tries", "turns"), [(0, 0), (1, 1), (3, 1), (4, 2)])
def test_the_number_of_tries_is_bounded(tmp_path: Path, tries: int, turns: int) -> None:
    device = InPlace(saves_us=0.0)
    tuned(tmp_path / "t.db", device, Settings(patience=10, outer_patience=50, near_share=1.5, in_place=tries))
    assert sum(len(graphs) - 1 for graphs in device.turns) == tries
    assert len(device.turns) == turns


def test_runners_up_that_stream_their_operands_otherwise_go_first(tmp_path: Path) -> None:
    device = InPlace(saves_us=0.0)
    tuned(tmp_path / "t.db", device)
    for turns in device.turns:
        key = next(key for key in turns[0] if turns[0][key] != turns[1][key])
        ways = [tuple(graph[key].as_dict().get(name) for name in PIPELINE) for graph in turns]
        known = {tuple(Schedule.from_key(one).as_dict().get(name) for name in PIPELINE) for one in device.times[key]}
        assert len(set(ways)) == min(len(known), len(ways))


def test_nothing_is_tried_where_one_schedule_is_known_or_counts_decide(tmp_path: Path) -> None:
    device = InPlace(saves_us=4.0)
    tuned(tmp_path / "t.db", device, Settings(patience=10, outer_patience=50, near_share=1.5, limit=1))
    assert device.turns == []
    counted = InPlace(saves_us=4.0)
    settings = Settings(patience=10, outer_patience=50, near_share=1.5, objective=Objective.REGISTERS)
    tuned(tmp_path / "u.db", counted, settings)
    assert counted.turns == []


def test_a_device_that_compares_no_graphs_tries_none(tmp_path: Path) -> None:
    events = tuned(tmp_path / "t.db", FakeDevice())
    assert of_kind(events, ComparedInPlace) == []
    assert end_of(events).in_place == 0
