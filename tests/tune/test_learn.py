"""Learn: rows after each kernel's search, a fit after the last, and the prior that a run names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.events import Event, Logged, PriorRefit, RunStarted
from engine.ir.kernel import Kernel
from engine.measure import Device
from engine.prior import ColdModel, Reservoir, load_models, models_path, rows_path, shipped_rows, steering
from engine.store import Store
from engine.tune import Control, LiveRequest, Settings, fit_database, tune_live
from engine.tune.learn import chosen_prior
from engine.vocabulary import Failure, FailureKind, Schedule

from .fake_device import FakeDevice

CODE = "torch.matmul(torch.randn(256, 256, device='cuda'), torch.randn(256, 256, device='cuda'))"


class Host:
    """A host that only remembers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.control = Control()
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def change_state(self, state: object, reason: str = "") -> None:
        return None

    def own_device(self, device: Device) -> Device:
        return device


def smooth_us(kernel: Kernel, schedule: Schedule) -> float:
    """A time that knobs explain, unlike what the shipped kernels show."""
    knobs = schedule.as_dict()
    return 5.0 + abs(int(knobs["BLOCK_M"]) - 32) / 8 + abs(int(knobs["NUM_STAGES"]) - 4) + int(knobs["NUM_WARPS"])


def run(database: Path, device: FakeDevice, **settings: object) -> Host:
    host = Host(Settings(**{"patience": 10, **settings}))  # type: ignore[arg-type]
    tune_live(LiveRequest(CODE, database, "fake:0", "emmy tune", lambda name, jobs: device), host)
    return host


def started(host: Host) -> RunStarted:
    (found,) = [event for event in host.events if isinstance(event, RunStarted)]
    return found


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    database = tmp_path / "t.db"
    run(database, FakeDevice(smooth_us))
    return database


def test_a_run_says_what_steers_and_keeps_its_rows(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    host = run(database, FakeDevice(smooth_us))
    shipped = steering(database).latest.version
    assert started(host).prior == shipped
    assert any(shipped in event.text for event in host.events if isinstance(event, Logged))
    rows = Reservoir.load(rows_path(database))
    before = shipped_rows()
    assert before is not None
    assert len(rows) > len(before)
    with Store.open(database, read_only=True) as store:
        assert store.runs()[0].prior == shipped


@pytest.mark.slow
def test_the_same_prior_launches_nothing_and_a_better_one_reaches_new_candidates(tmp_path: Path) -> None:
    tuned, device = tmp_path / "t.db", FakeDevice(smooth_us)
    run(tuned, device, patience=40)
    with Store.open(tuned) as store:
        first = store.runs()[0]
        told = fit_database(store)
        assert told is not None
        assert told.version == load_models(models_path(tuned))[-1].model.version
    same = FakeDevice(smooth_us)
    again = run(tuned, same, prior=first.id, patience=40)
    assert same.launches == []
    assert started(again).prior == first.prior
    better = FakeDevice(smooth_us)
    host = run(tuned, better, prior="latest", patience=40)
    assert started(host).prior == told.steering
    assert told.trusted
    assert better.launches
    with Store.open(tuned) as store:
        assert json.loads(store.runs()[-1].summary)["cached"] > 0
    assert not set(better.launches) & set(device.launches), "nothing that is in the database is measured again"


@pytest.mark.slow
def test_a_run_that_is_repeated_is_steered_as_it_was(tmp_path: Path) -> None:
    tuned = tmp_path / "t.db"
    first = run(tuned, FakeDevice(smooth_us), patience=40)
    with Store.open(tuned) as store:
        told = fit_database(store)
        assert told is not None
        assert chosen_prior(store, "auto", "another program", store.runs()[0].context_key).version == told.steering
        assert chosen_prior(store, "auto", store.runs()[0].target, "another machine").version == told.steering
    assert started(first).prior != told.steering
    for _ in range(2):
        same = FakeDevice(smooth_us)
        again = run(tuned, same, patience=40)
        assert same.launches == []
        assert started(again).prior == started(first).prior
        assert any("--prior latest" in event.text for event in again.events if isinstance(event, Logged))


def test_a_cold_run_stays_cold(tuned: Path) -> None:
    host = run(tuned, FakeDevice(smooth_us), prior="cold")
    assert started(host).prior == ColdModel().version


def test_a_prior_that_is_not_kept_is_refused(tuned: Path) -> None:
    with Store.open(tuned) as store:
        with pytest.raises(ValueError, match="no run of that name"):
            chosen_prior(store, "run-99")
        first = store.runs()[0]
    with Store.open(tuned) as store:
        assert chosen_prior(store, first.id).version == first.prior
        assert chosen_prior(store, "cold").version == ColdModel().version


def test_spoiled_rows_are_said_and_taken_from_the_database_again(tuned: Path) -> None:
    whole = Reservoir.load(rows_path(tuned))
    rows_path(tuned).write_bytes(b"cut off")
    host = run(tuned, FakeDevice(smooth_us), prior="cold")
    said = [event.text for event in host.events if isinstance(event, Logged) and event.level == "warning"]
    assert any("damaged" in text and "spoiled" in text for text in said), said
    again = Reservoir.load(rows_path(tuned)) if rows_path(tuned).exists() else None
    assert again is None or len(again) >= len(whole)


@pytest.mark.slow
def test_enough_new_rows_are_fitted_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.tune.learn.FRESH_SHARE", 0.001)
    database = tmp_path / "t.db"
    host = run(database, FakeDevice(smooth_us))
    (told,) = [event for event in host.events if isinstance(event, PriorRefit)]
    kept = load_models(models_path(database))[-1]
    assert (told.version, told.trusted) == (kept.model.version, kept.calibration.trusted)
    assert told.steering == (told.version if told.trusted else ColdModel().version)
    assert told.fresh >= 20
    with Store.open(database, read_only=True) as store:
        assert told in list(store.events_of(store.runs()[0].id))


def test_all_failures_teach_nothing(tmp_path: Path) -> None:
    broken = Failure(next(iter(FailureKind)), "no")
    host = run(tmp_path / "t.db", FakeDevice(smooth_us, lambda kernel, schedule: broken))
    assert not any(isinstance(event, PriorRefit) for event in host.events)
    with Store.open(tmp_path / "t.db") as store:
        assert fit_database(store) is None


def test_a_run_of_a_user_without_a_name_is_kept_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr("getpass.getuser", nobody)
    database = tmp_path / "t.db"
    run(database, FakeDevice(smooth_us))
    with Store.open(database, read_only=True) as store:
        assert store.runs()[0].author == "unknown"
