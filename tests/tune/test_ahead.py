"""What is made while the device opens changes nothing but when it is made."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from engine.codegen import offered_assignments
from engine.events import Measured
from engine.measure import Device
from engine.store import Store
from engine.tune import LiveRequest, tune_live
from engine.tune.ahead import Ahead
from engine.tune.learn import chosen_prior
from engine.tune.problem import CapturedProblem
from engine.tune.scoring import kernel_surrogate
from engine.tune.settings import Settings

from .fake_device import CONTEXT, FakeDevice
from .test_live import CODE, Host

SETTINGS = Settings(patience=8, surrogate=True)


class StartedDevice(FakeDevice):
    """Counts how often it is told that something will be measured."""

    def __init__(self) -> None:
        super().__init__()
        self.started = 0

    def start(self) -> None:
        self.started += 1


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ahead") / "t.db"
    _tune(path, StartedDevice())
    return path


def _tune(database: Path, device: FakeDevice, wait_for_it: bool = False) -> list[object]:
    host = Host(SETTINGS)

    def opened(name: str, jobs: int | None) -> Device:
        for thread in threading.enumerate():
            if wait_for_it and thread.name == "ahead":
                thread.join()
        return device

    tune_live(LiveRequest(CODE, database, "fake:0", "emmy tune", opened), host)
    return host.events


def _prepared(database: Path) -> Ahead:
    ahead = Ahead(CODE, database, SETTINGS)
    with ahead:
        ahead._thread.join()
    return ahead


def test_a_begun_kernel_is_searched_as_one_that_is_not(database: Path) -> None:
    ahead = _prepared(database)
    with Store.open(database, read_only=True) as store:
        run = store.runs()[-1]
        program, target = store.program(run.id), store.target(CONTEXT.key)
        prior = chosen_prior(store, SETTINGS.prior, run.target, run.context_key)
        kernel = store.recorded_groupings(run.id)[0].grouping.calls[0].kernel
    problem = ahead.problem(run.id, target)
    assert problem is not None
    begun = problem.take_surrogate(kernel, prior, SETTINGS.seed)
    assert begun is not None
    assert problem.take_surrogate(kernel, prior, SETTINGS.seed) is None
    anew = kernel_surrogate(prior, CapturedProblem(program, target), kernel, target, SETTINGS.seed)
    fork = problem.schedule_space(kernel).fork(())
    assert fork is not None
    for step, knobs in enumerate(offered_assignments(kernel, target)[:24]):
        assert begun.speeds({}, fork.options) == anew.speeds({}, fork.options)
        for surrogate in (begun, anew):
            surrogate.learn(knobs, 10.0 + step % 7)


def test_another_chip_or_run_gets_a_problem_of_its_own(database: Path) -> None:
    ahead = _prepared(database)
    with Store.open(database, read_only=True) as store:
        run = store.runs()[-1]
        target = store.target(CONTEXT.key)
    mine = ahead.problem(run.id, target)
    assert mine is not None
    assert ahead.problem(run.id, target) is mine
    assert ahead.problem("another", target) is None
    assert ahead.problem(run.id, replace(target, shared_bytes=1)) is None


@pytest.mark.parametrize("content", [None, b"", b"no database at all" * 100])
def test_without_a_readable_database_nothing_is_made(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "t.db"
    if content is not None:
        path.write_bytes(content)
    assert _prepared(path)._made is None
    assert path.exists() == (content is not None)


def test_a_repeated_run_measures_nothing_and_ends_the_same(database: Path) -> None:
    devices = StartedDevice(), StartedDevice()
    first = _tune(database, devices[0])
    again = _tune(database, devices[1], wait_for_it=True)
    assert [device.launches for device in devices] == [[], []]
    assert len(_story(first)) > 8
    assert _story(first) == _story(again)


def test_a_new_program_starts_the_device_before_it_is_captured(tmp_path: Path) -> None:
    device = StartedDevice()
    _tune(tmp_path / "t.db", device)
    assert device.started > 0
    assert device.launches


def _story(events: list[object]) -> list[tuple[str, str, float | None, bool]]:
    """What was found, in order."""
    return [(one.kernel, one.schedule, one.us, one.best) for one in events if isinstance(one, Measured)]
