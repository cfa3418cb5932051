"""Schedules in the whole graph: a runner-up that is faster there replaces the winner, and is asked for only once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.events import Assembled, Event, Logged
from engine.ir import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure import AssembledResult
from engine.store import Store
from engine.tune.in_place import GAIN, RUNNERS_UP, WITHIN
from engine.tune.settings import Settings
from engine.vocabulary import Schedule, Timing

from .fake_device import FakeDevice, landscape_us
from .rig import linear_gelu_program, tune_with

SETTINGS = Settings(patience=10, outer_patience=50, near_share=1.5)


class InPlace(FakeDevice):
    """In the graph every schedule but the one that is fastest alone saves `saves_us`."""

    def __init__(self, saves_us: float) -> None:
        super().__init__(us=self.alone_us)
        self.saves_us = saves_us
        self.times: dict[str, dict[str, float]] = {}
        self.graphs: list[tuple[dict[str, str], bool]] = []

    def alone_us(self, kernel: Kernel, schedule: Schedule) -> float:
        us = 30.0 + 1e-3 * (landscape_us(kernel, schedule) % 1.0)
        self.times.setdefault(kernel.key, {})[schedule.key] = us
        return us

    def is_fastest_alone(self, kernel: str, schedule: Schedule) -> bool:
        times = self.times[kernel]
        return times[schedule.key] == min(times.values())

    def assemble(
        self,
        grouping: Grouping,
        schedules: Mapping[str, Schedule],
        program: Graph | None = None,
        *,
        pdl: bool = False,
    ) -> AssembledResult:
        self.graphs.append(({key: schedule.key for key, schedule in schedules.items()}, pdl))
        us = 70.0 if len(grouping.calls) == 2 else 90.0
        us -= sum(self.saves_us for key, s in schedules.items() if not self.is_fastest_alone(key, s)) + pdl
        return AssembledResult(Timing(us, us, us, (us,)), 1e-3)


def tuned(path: Path, device: InPlace) -> list[Event]:
    events: list[Event] = []
    tune_with(path, device, linear_gelu_program(), SETTINGS, events=events)
    return events


def best_of(path: Path) -> tuple[float, Mapping[str, Schedule]]:
    with Store.open(path, read_only=True) as store:
        run = store.latest_run()
        assert run is not None
        row = min(
            (row for row in store.recorded_groupings(run.id) if row.whole_us is not None), key=lambda r: r.whole_us or 0
        )
        recorded = store.assembled(row.grouping, run.context_key, pdl=row.pdl_us == row.whole_us)
        assert recorded is not None
        return row.whole_us or 0.0, recorded.schedules


def test_a_runner_up_that_is_faster_in_place_is_what_is_kept(tmp_path: Path) -> None:
    device = InPlace(saves_us=4.0)
    events = tuned(tmp_path / "t.db", device)
    us, schedules = best_of(tmp_path / "t.db")
    assert not any(device.is_fastest_alone(key, schedule) for key, schedule in schedules.items())
    assert us == 70.0 - 4.0 * len(schedules) - 1.0
    assert min(event.assembled_us or us for event in events if isinstance(event, Assembled)) == us
    assert any("runners-up of" in event.text for event in events if isinstance(event, Logged))


def test_a_rerun_puts_nothing_together_and_ends_with_the_same(tmp_path: Path) -> None:
    tuned(tmp_path / "t.db", InPlace(saves_us=4.0))
    first = best_of(tmp_path / "t.db")
    again = InPlace(saves_us=4.0)
    tuned(tmp_path / "t.db", again)
    assert again.graphs == []
    assert best_of(tmp_path / "t.db") == first


def test_a_gain_inside_the_noise_changes_nothing(tmp_path: Path) -> None:
    device = InPlace(saves_us=0.9 * GAIN * 60.0)
    events = tuned(tmp_path / "t.db", device)
    assert not any("runners-up of" in event.text for event in events if isinstance(event, Logged))
    assert best_of(tmp_path / "t.db")[0] >= 69.0 - 2 * device.saves_us


def test_few_graphs_are_tried_and_only_of_schedules_that_are_close_alone(tmp_path: Path) -> None:
    device = InPlace(saves_us=0.0)
    tuned(tmp_path / "t.db", device)
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        run = store.latest_run()
        assert run is not None
        for graph, _ in device.graphs:
            for key, schedule in graph.items():
                times = store.timed(key, run.context_key)
                assert times[Schedule.from_key(schedule)] <= min(times.values()) * (1 + WITHIN)
    assert len(device.graphs) <= 2 * SETTINGS.finalists + 2 * RUNNERS_UP + 2
