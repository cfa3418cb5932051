"""A disk without space pauses a run and says so; with space again it goes on, and nothing is missing."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.events import Logged, Measured, RunState, StateChanged
from engine.measure import DeviceHealth
from engine.session import TuningSession
from engine.store import Store, StoreFull, StoreLocked
from engine.store.connection import Connection
from engine.tune import Control, LiveRequest, Settings, full_disk, tune_live
from engine.tune.full_disk import FullDisk

from .fake_device import FakeDevice
from .fleet_rig import kept

CODE = "torch.matmul(torch.randn(64, 32), torch.randn(32, 64))"
LINE = "no space left on the disk"


class Quota:
    """Bounds every writing connection to as many pages as the file has, after `after` transactions."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.lifted = threading.Event()
        self.full = threading.Event()
        self._count = 0

    def before(self, connection: sqlite3.Connection) -> None:
        self._count += 1
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        limit = pages if self._count > self.after and not self.lifted.is_set() else 2**30
        connection.execute(f"PRAGMA max_page_count = {limit}").fetchone()
        if limit == pages:
            self.full.set()


@pytest.fixture
def quota(monkeypatch: pytest.MonkeyPatch) -> Iterator[Quota]:
    bound = Quota(after=60)
    plain = Connection.transaction

    def transaction(self: Connection) -> Any:
        bound.before(self.db.conn)
        return plain(self)

    monkeypatch.setattr(Connection, "transaction", transaction)
    monkeypatch.setattr(full_disk, "RETRY_S", 0.05)
    yield bound
    bound.lifted.set()


def _session(database: Path, device: FakeDevice) -> TuningSession:
    request = LiveRequest(CODE, database, "fake:0", "emmy tune", lambda name, jobs: device)
    return TuningSession(lambda host: tune_live(request, host), Settings(patience=30))


def _until_paused(session: TuningSession, events: list[Any]) -> StateChanged:
    while True:
        events += session.drain()
        paused = [e for e in events if isinstance(e, StateChanged) and e.state == RunState.PAUSED]
        if paused:
            return paused[-1]
        assert not session.wait(0.02), session.failure


@pytest.mark.slow
def test_the_run_waits_says_so_and_loses_nothing(tmp_path: Path, quota: Quota) -> None:
    events: list[Any] = []
    with _session(tmp_path / "t.db", FakeDevice()) as session:
        session.start()
        paused = _until_paused(session, events)
        assert paused.reason.startswith(f"{LINE} of {tmp_path / 't.db'}; the run waits")
        assert session.state is RunState.PAUSED
        assert "resume" in session.capabilities
        quota.lifted.set()
        assert session.wait(60)
    assert session.state is RunState.FINISHED
    assert session.failure is None
    states = [event.state for event in (*events, *session.drain(10**6)) if isinstance(event, StateChanged)]
    assert states[-2:] == [RunState.RUNNING, RunState.FINISHED]
    with _session(tmp_path / "plain.db", FakeDevice()) as plain:
        plain.start()
        assert plain.wait(60)
    assert kept(tmp_path / "t.db") == kept(tmp_path / "plain.db")


@pytest.mark.slow
def test_a_lock_of_another_process_holds_a_run_and_ends_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_disk, "RETRY_S", 0.05)
    monkeypatch.setattr("engine.store.connection.BUSY_S", 0.3)
    monkeypatch.setattr("engine.store.connection.WORD_S", 0.1)
    database = tmp_path / "t.db"
    events: list[Any] = []
    with _session(database, FakeDevice()) as session:
        session.start()
        while not any(isinstance(event, Measured) for event in events):
            events += session.drain()
            assert not session.wait(0.005), session.failure
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            paused = _until_paused(session, events)
            assert paused.reason.startswith(f"{database} is locked by another process")
            assert paused.reason.endswith("the run waits, and goes on by itself when that has ended")
            told = [event.text for event in events if isinstance(event, Logged)]
            assert f"{database} is locked by another process: the run waits for it" in told
        assert session.wait(60)
    assert session.state is RunState.FINISHED
    assert session.failure is None


def test_a_stop_ends_the_wait_for_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_disk, "RETRY_S", 0.01)
    control = Control()

    def write() -> None:
        raise StoreLocked("t.db is locked; wait for it")

    def change_state(state: RunState, reason: str) -> None:
        assert (state, reason.partition(";")[0]) == (RunState.PAUSED, "t.db is locked")
        control.stop()

    with pytest.raises(StoreLocked):
        FullDisk(control, change_state).outlast(write)


def test_a_resume_without_space_pauses_again_and_a_stop_ends_the_run(tmp_path: Path, quota: Quota) -> None:
    events: list[Any] = []
    with _session(tmp_path / "t.db", FakeDevice()) as session:
        session.start()
        _until_paused(session, events)
        events.clear()
        session.resume()
        _until_paused(session, events)
        session.stop()
        assert session.wait(30)
    if session.state is not RunState.STOPPED:  # the last rows may still have fitted into the pages that are there
        assert session.state is RunState.FAILED
        assert session.failure is not None
        assert session.failure.startswith(LINE)
    quota.lifted.set()
    again = FakeDevice()
    with _session(tmp_path / "t.db", again) as session:
        session.start()
        assert session.wait(60)
    assert session.state is RunState.FINISHED
    with Store.open(tmp_path / "t.db") as store:
        assert len(store.runs()) == 2


def test_compiles_without_space_pause_the_run_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_disk, "RETRY_S", 0.05)
    device = FakeDevice()
    device.seen = DeviceHealth(disk_full="no space is left under the cache")
    events: list[Any] = []
    with _session(tmp_path / "t.db", device) as session:
        session.start()
        paused = _until_paused(session, events)
        assert paused.reason.startswith("no space is left under the cache; the run waits")
        device.seen = DeviceHealth()
        assert session.wait(60)
    assert session.state is RunState.FINISHED


def test_a_stop_lets_go_of_what_waits_for_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Waiting(FakeDevice):
        def submit(self, kernel: Any, schedule: Any, regime: Any) -> Any:
            return Future()

    monkeypatch.setattr(full_disk, "RETRY_S", 0.05)
    device = Waiting()
    device.seen = DeviceHealth(disk_full="no space is left under the cache")
    with _session(tmp_path / "t.db", device) as session:
        session.start()
        _until_paused(session, [])
        session.stop()
        assert session.wait(30)
    assert session.state is RunState.STOPPED


def test_a_pause_that_a_person_asked_for_outlasts_the_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_disk, "RETRY_S", 0.01)
    control, states = Control(), list[RunState]()
    answers = iter([StoreFull("no space; free some"), StoreFull("no space; free some"), None])

    def write() -> str:
        if (error := next(answers)) is not None:
            raise error
        return "written"

    control.pause()
    disk = FullDisk(control, lambda state, reason: states.append(state))
    assert disk.outlast(write) == "written"
    assert control.paused
    assert states == [RunState.PAUSED]
