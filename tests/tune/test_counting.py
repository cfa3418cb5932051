"""A metric as the objective: the search goes by time, and the candidates near the fastest are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from engine.events import Event, KernelFinished, Logged
from engine.measure import CounterReader
from engine.tune import CounterObjective, Objective, Settings, objective_named
from engine.tune import workbench as parts
from tests.measure.fake_ncu import METRIC, fake_ncu

from . import rig
from .fake_device import FakeDevice


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path / 'cuda'}{os.pathsep}/usr/bin:/bin")
    return tmp_path / "cuda"


def tuned(path: Path, objective: CounterObjective, monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """A run on a device where every candidate takes nearly the same time."""
    events: list[Event] = []
    reader = CounterReader.open(objective.metric, 0)
    monkeypatch.setattr(rig, "Workbench", partial(parts.Workbench, counters=reader))
    device = FakeDevice(lambda kernel, schedule: 10.0 + (sum(schedule.key.encode()) % 89) * 0.001)
    rig.tune_with(path, device, rig.matmul_program(), Settings(patience=12, objective=objective), events=events)
    return events


def said(events: Sequence[Event]) -> str:
    return "\n".join(event.text for event in events if isinstance(event, Logged))


def warps(events: Sequence[Event]) -> int:
    finished = next(event for event in reversed(events) if isinstance(event, KernelFinished))
    words = dict(word.split("=") for word in finished.best_schedule.split())
    return int(words["NUM_WARPS"])


def test_the_least_or_the_most_of_the_fastest_is_used(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = fake_ncu(folder)
    least = tuned(tmp_path / "least.db", CounterObjective(METRIC), monkeypatch)
    assert f"{METRIC} is {10 * warps(least)} at 10." in said(least)
    assert "the least of 8 candidates near the fastest" in said(least)
    assert 2 <= len(log.read_text().splitlines()) <= 9, "a few candidates are read, and one before all of them"
    most = tuned(tmp_path / "most.db", CounterObjective(METRIC, most=True), monkeypatch)
    assert warps(most) > warps(least)


def test_what_stops_being_readable_leaves_the_fastest(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ncu(folder)
    opened = CounterReader.open(METRIC, 0)
    fake_ncu(folder, "forbidden")
    monkeypatch.setattr(CounterReader, "open", classmethod(lambda cls, metric, index: opened))
    events = tuned(tmp_path / "t.db", CounterObjective(METRIC), monkeypatch)
    assert said(events).count("which this user may not") == 1
    assert warps(events)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("time", Objective.TIME),
        ("spills", Objective.SPILLS),
        (f"ncu:{METRIC}", CounterObjective(METRIC)),
        (f"ncu:max:{METRIC}", CounterObjective(METRIC, most=True)),
    ],
)
def test_objectives_have_names(name: str, wanted: object) -> None:
    assert objective_named(name) == wanted


@pytest.mark.parametrize("name", ["", "ncu:", "ncu:a b", "ncu:--set", "warps"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not a valid Objective"):
        objective_named(name)
