"""Which candidates are measured a second time, as a deployment runs them."""

from __future__ import annotations

from pathlib import Path

from engine.events import Event
from engine.ir.kernel import Kernel
from engine.tune.finish import MOST_FASTER
from engine.tune.settings import Settings
from engine.vocabulary import Regime, Schedule

from .fake_device import FakeDevice, landscape_us
from .fleet_rig import bests, kept
from .rig import matmul_program, tune_with

SETTINGS = Settings(patience=60, outer_patience=1)


class LevelDevice(FakeDevice):
    """All candidates are within a tenth: the band alone would leave nobody out. `us` is what they take."""

    def __init__(self) -> None:
        self.us: dict[str, float] = {}
        super().__init__(self._level_us)

    def _level_us(self, kernel: Kernel, schedule: Schedule) -> float:
        return self.us.setdefault(schedule.key, 100.0 + landscape_us(kernel, schedule) / 10.0)

    def asked(self, regime: Regime) -> list[str]:
        """Schedules, in order."""
        return [schedule for _, schedule, launched in self.launches if launched is regime]


def _run(database: Path) -> tuple[LevelDevice, list[Event]]:
    device, events = LevelDevice(), list[Event]()
    tune_with(database, device, matmul_program(), SETTINGS, events=events)
    return device, events


def test_of_many_level_candidates_those_behind_several_are_measured_once(tmp_path: Path) -> None:
    device, _ = _run(tmp_path / "t.db")
    ranked, deployed = device.asked(Regime.RANKING), device.asked(Regime.DEPLOY)
    fastest = sorted(ranked, key=device.us.__getitem__)
    assert set(fastest[:MOST_FASTER]) <= set(deployed)
    for place, schedule in enumerate(deployed):
        assert sum(device.us[other] <= device.us[schedule] for other in deployed[:place]) < MOST_FASTER
    assert len(deployed) < len(ranked) / 2


def test_a_second_run_asks_for_nothing_and_ends_with_the_same(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    _, first = _run(database)
    left = kept(database)
    device, second = _run(database)
    assert device.launches == []
    assert bests(first) == bests(second)
    again = kept(database)
    assert (again["node"], again["measurement"]) == (left["node"], left["measurement"])
