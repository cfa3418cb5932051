"""Processes that search beside a repeated run change nothing of it but how long it takes."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from engine.events import KernelFinished, Measured, NodeOpened, NodeVisited, RunFinished
from engine.store import Store
from engine.tune import LiveRequest, tune_live
from engine.tune import ahead as ahead_module
from engine.tune.settings import Objective, Settings
from engine.tune.walkers import MOST_WALKERS, Order, Walkers, walkers_for

from .fake_device import FakeDevice
from .test_live import CODE, Host

SETTINGS = Settings(patience=8, surrogate=True)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run twice, so that what the first run taught the prior is settled."""
    path = tmp_path_factory.mktemp("walkers") / "t.db"
    for _ in range(2):
        _tune(path, FakeDevice())
    return path


@pytest.fixture
def database(finished: Path, tmp_path: Path) -> Path:
    for path in finished.parent.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path / finished.name


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Walkers]]:
    """The walkers of the runs of a test, on a machine with CPUs enough for two."""
    found: list[Walkers] = []

    def noted(*args: Any) -> Walkers | None:
        walkers = walkers_for(*args)
        found.extend([walkers] if walkers is not None else [])
        return walkers

    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(6))
    monkeypatch.setattr(ahead_module, "walkers_for", noted)
    yield found
    for walkers in found:
        walkers.close()


def _tune(database: Path, device: FakeDevice, settings: Settings = SETTINGS) -> tuple[RunFinished, list[Any]]:
    host = Host(settings)
    (summary,) = tune_live(LiveRequest(CODE, database, "fake:0", "emmy tune", lambda name, jobs: device), host)
    return summary, host.events


def _story(events: list[Any]) -> list[tuple[Any, ...]]:
    """What was told of candidates and nodes, without moments."""
    told = [one for one in events if isinstance(one, Measured | NodeOpened | NodeVisited | KernelFinished)]
    return [(type(one).__name__, *asdict(replace(one, at=0.0)).items()) for one in told]


def _nodes(database: Path) -> list[Any]:
    with sqlite3.connect(database) as connection:
        return connection.execute(
            "SELECT key, parent, knobs, depth, prior, visits, best_us, state FROM node ORDER BY key"
        ).fetchall()


def _walked(walkers: Walkers) -> list[bool]:
    return [walk.result(0) is not None for walk in walkers._walks.values()]


def test_a_repeated_run_is_told_as_if_it_had_searched_itself(database: Path, begun: list[Walkers]) -> None:
    own, devices = database.with_name("own.db"), (FakeDevice(), FakeDevice())
    for path in list(database.parent.iterdir()):
        shutil.copy(path, path.with_name(path.name.replace(database.stem, "own", 1)))
    first, walked = _tune(database, devices[0])
    assert [_walked(walkers) for walkers in begun] == [[True]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahead_module, "walkers_for", lambda *args: None)
        second, searched = _tune(own, devices[1])
    assert [device.launches for device in devices] == [[], []]
    assert len(_story(walked)) > 50
    assert _story(walked) == _story(searched)
    assert _nodes(database) == _nodes(own)
    for name in ("measured", "cached", "failed", "best_us", "sum_us", "assembled_us"):
        assert getattr(first, name) == getattr(second, name)


def test_what_isnt_known_is_searched_by_the_run(database: Path, begun: list[Walkers]) -> None:
    with sqlite3.connect(database) as connection:
        (gone,) = connection.execute("SELECT schedule FROM measurement ORDER BY id LIMIT 1 OFFSET 5").fetchone()
        connection.execute("DELETE FROM measurement WHERE schedule = ?", (gone,))
    device = FakeDevice()
    summary, _ = _tune(database, device)
    assert [_walked(walkers) for walkers in begun] == [[False]]
    assert {schedule for _, schedule, _ in device.launches} == {gone}
    assert summary.measured == len(device.launches)


def test_a_walker_that_is_killed_costs_nothing(database: Path, begun: list[Walkers]) -> None:
    with Store.open(database, read_only=True) as store:
        run = store.runs()[-1]
        kernel = store.kernels()[0].key
    walkers = Walkers(Order(database, run, SETTINGS), 1)
    begun.append(walkers)
    while not walkers._children:
        time.sleep(0.01)
    os.killpg(walkers._children[0].pid, signal.SIGKILL)
    walkers.start(kernel, SETTINGS.patience, run.prior)
    assert walkers.walk(kernel).result(30) is None


def test_closed_walkers_leave_no_process_and_answer(database: Path) -> None:
    with Store.open(database, read_only=True) as store:
        run = store.runs()[-1]
        kernel = store.kernels()[0].key
    walkers = Walkers(Order(database, run, SETTINGS), 2)
    walkers.start(kernel, SETTINGS.patience, run.prior)
    assert walkers.walk(kernel).result(60) is not None
    walkers.start("no kernel", SETTINGS.patience, run.prior)
    walkers.close()
    walkers.close()
    walkers.start("too late", SETTINGS.patience, run.prior)
    assert [walkers.walk(key).result(0) for key in ("no kernel", "too late")] == [None, None]
    for child in walkers._children:
        with pytest.raises(ProcessLookupError):
            os.kill(child.pid, 0)
    assert not walkers._nursery.folder.exists()


def test_another_prior_is_not_walked(database: Path, begun: list[Walkers]) -> None:
    with Store.open(database, read_only=True) as store:
        run = store.runs()[-1]
        kernel = store.kernels()[0].key
    walkers = Walkers(Order(database, run, SETTINGS), 1)
    begun.append(walkers)
    walkers.start(kernel, SETTINGS.patience, "another")
    assert walkers.walk(kernel).result(60) is None


@pytest.mark.parametrize(
    "settings",
    [
        replace(SETTINGS, patience=9),
        replace(SETTINGS, seed=1),
        replace(SETTINGS, objective=Objective.REGISTERS),
    ],
)
def test_a_run_that_repeats_none_begins_none(database: Path, begun: list[Walkers], settings: Settings) -> None:
    with Store.open(database, read_only=True) as store:
        run = store.runs()[-1]
    assert walkers_for(database, run, settings) is None
    assert walkers_for(database, replace(run, state="stopped"), SETTINGS) is None


@pytest.mark.parametrize(("cpus", "count"), [(1, 0), (3, 0), (4, 1), (8, 3), (64, MOST_WALKERS)])
def test_there_are_as_many_as_cpus_leave_room_for(
    database: Path, monkeypatch: pytest.MonkeyPatch, cpus: int, count: int
) -> None:
    with Store.open(database, read_only=True) as store:
        run = store.runs()[-1]
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(cpus))
    walkers = walkers_for(database, run, SETTINGS)
    assert (0 if walkers is None else len(walkers._threads)) == count
    if walkers is not None:
        walkers.close()
