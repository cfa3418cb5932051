"""From the user's text to a summary and back by replay, with a fake GPU and a real capture."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from engine.capture import CaptureError
from engine.events import Logged, RunState
from engine.ir import GraphBuilder, TensorSpec
from engine.ir.plan import Program
from engine.measure import Device, DeviceError
from engine.session import TuningSession
from engine.store import Store, StoreError
from engine.tune import LiveRequest, Settings, live, tune_live

from .fake_device import FakeDevice

CODE = "torch.matmul(torch.randn(128, 64, device='cuda'), torch.randn(64, 128, device='cuda'))"


class Host:
    """A host that only remembers."""

    def __init__(self, settings: Settings) -> None:
        from engine.tune import Control

        self.settings = settings
        self.control = Control()
        self.states: list[RunState] = []
        self.events: list[object] = []

    def emit(self, event: object) -> None:
        self.events.append(event)

    def change_state(self, state: RunState, reason: str = "") -> None:
        self.states.append(state)

    def own_device(self, device: Device) -> Device:
        return device


def _request(code: str, database: Path, device: FakeDevice) -> LiveRequest:
    return LiveRequest(code, database, "fake:0", "emmy tune", lambda name, jobs: device)


def _replayed(database: Path, **kwargs: object) -> TuningSession:
    session = TuningSession.replay(database, settings=Settings(patience=10), **kwargs)  # type: ignore[arg-type]
    with session:
        session.start()
        assert session.wait(30)
    return session


def test_a_run_is_recorded_served_again_and_replayed(tmp_path: Path) -> None:
    database = tmp_path / "new" / "t.db"
    device = FakeDevice()
    (first,) = tune_live(_request(CODE, database, device), Host(Settings(patience=10)))
    assert first.measured > 10
    assert device.closed
    again = FakeDevice()
    (second,) = tune_live(_request(CODE, database, again), Host(Settings(patience=10)))
    assert again.launches == []
    assert second.cached == first.measured
    session = _replayed(database)
    assert session.failure is None
    assert session.summary is not None
    assert (session.summary.measured, session.summary.sum_us) == (0, pytest.approx(first.sum_us))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("torch.matmul(", "doesn't parse"),
        ("x = 1", "must be a call"),
        ("torch.poisson(torch.rand(8, 8))", "poisson"),
        ("torch.nothing(torch.randn(2))", "nothing"),
    ],
)
def test_bad_code_is_one_sentence_and_leaves_no_database(tmp_path: Path, code: str, words: str) -> None:
    database = tmp_path / "t.db"
    with pytest.raises(CaptureError, match=words) as caught:
        tune_live(_request(code, database, FakeDevice()), Host(Settings()))
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_device_that_is_not_there_leaves_no_database(tmp_path: Path) -> None:
    def refuse(name: str, jobs: int | None) -> Device:
        raise DeviceError("no GPU")

    with pytest.raises(DeviceError):
        tune_live(LiveRequest(CODE, tmp_path / "t.db", "cuda:0", "", refuse), Host(Settings()))
    assert list(tmp_path.iterdir()) == []


def test_a_refused_run_keeps_a_database_that_was_there(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    Store.open(database).close()
    with pytest.raises(CaptureError):
        tune_live(_request("x = 1", database, FakeDevice()), Host(Settings()))
    assert database.exists()


def test_an_unknown_prior_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="run-7"):
        tune_live(_request(CODE, tmp_path / "t.db", FakeDevice()), Host(Settings(prior="run-7")))


def test_a_session_says_why_it_failed_in_one_sentence(tmp_path: Path) -> None:
    no_database = tmp_path / "notes.db"
    no_database.write_text("these are notes")
    session = _replayed(no_database)
    assert session.state is RunState.FAILED
    assert session.failure is not None
    assert "notes.db" in session.failure
    assert no_database.read_text() == "these are notes"


def test_a_database_without_runs_has_nothing_to_replay(tmp_path: Path) -> None:
    Store.open(tmp_path / "t.db").close()
    session = _replayed(tmp_path / "t.db")
    assert session.failure is not None
    assert "no" in session.failure


def test_a_replay_writes_nothing(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    tune_live(_request(CODE, database, FakeDevice()), Host(Settings(patience=10)))

    def rows() -> list[int]:
        with sqlite3.connect(database) as connection:
            tables = ("run", "measurement", "node", "event", "grouping")
            return [connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in tables]

    before = rows()
    _replayed(database)
    assert rows() == before


def test_the_same_seed_replays_the_same_path(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    tune_live(_request(CODE, database, FakeDevice()), Host(Settings(patience=30)))
    paths = []
    for _ in range(2):
        session = _replayed(database)
        paths.append([e.schedule for e in session.drain(100_000) if type(e).__name__ == "Measured"])  # type: ignore[attr-defined]
    assert len(paths[0]) > 10
    assert paths[0] == paths[1]


def test_pause_holds_and_stop_ends_a_paced_replay(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    tune_live(_request(CODE, database, FakeDevice()), Host(Settings(patience=100)))
    session = TuningSession.replay(database, settings=Settings(patience=100), pace=0.05)
    with session:
        session.start()
        assert not session.wait(0.3)
        session.pause()
        assert session.state is RunState.PAUSED
        assert session.capabilities == {"stop", "resume", "skip", "patience"}
        session.resume()
        session.stop()
        assert session.wait(10)
    assert session.state is RunState.STOPPED
    assert session.summary is not None
    assert session.summary.cached > 0


def test_closing_a_session_ends_a_slow_replay_at_once(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    tune_live(_request(CODE, database, FakeDevice()), Host(Settings(patience=100)))
    session = TuningSession.replay(database, settings=Settings(patience=100), pace=30.0)
    session.start()
    session.wait(0.3)
    session.close()
    assert session.wait(0)
    assert session.state is RunState.STOPPED


def test_a_missing_database_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"absent\.db"):
        Store.open(tmp_path / "absent.db", read_only=True)


def test_what_is_to_be_said_of_a_program_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder()
    graph = b.build(b.add("exp", b.input(TensorSpec.contiguous((64, 64), "float32"))))
    line = "gpt2 --layer 0 --dtype bfloat16 --seq-len 64 --batch 1"
    program = Program(graph, line, notes=("The weights are random.",))
    monkeypatch.setattr(live, "capture", lambda text, **more: program)
    host = Host(Settings(patience=3))
    tune_live(_request(line, tmp_path / "t.db", FakeDevice()), host)
    assert "The weights are random." in [event.text for event in host.events if isinstance(event, Logged)]
    with Store.open(tmp_path / "t.db") as store:
        (run,) = store.runs()
        assert run.target == line
        assert store.program(run.id) == program


def test_a_pause_holds_over_the_start_of_the_next_program(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    for code in (CODE, CODE.replace("128", "256")):
        tune_live(_request(code, database, FakeDevice()), Host(Settings(patience=5)))
    session = TuningSession.replay(database, settings=Settings(patience=5))
    with session:
        session.control.pause()
        session.start()
        assert not session.wait(1.0)
        assert session.state is RunState.PAUSED
        session.resume()
        assert session.wait(30)
    assert session.state is RunState.FINISHED
