"""A session in a process of its own: its verbs, its events, and how it ends however the process does."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from engine.events import Event, Logged, Measured, NodeVisited, RunFinished, RunState, StateChanged
from engine.session import EngineProcess, SeparateSession, TuningSession
from engine.session.inbox import INBOX_LIMIT
from engine.session.separate import GONE
from engine.store import Store
from engine.tune import Host, Retune, Settings
from engine.vocabulary import Schedule
from tests.measure.rig import processes_about, until
from tests.session import works
from tests.tune.fake_device import CONTEXT

Work = Callable[[Host], list[RunFinished]]
CODE = "torch.matmul(torch.randn(128, 64, device='cuda'), torch.randn(64, 128, device='cuda'))"


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def started(work: Work, *, queues: bool = False, log: int | None = None) -> Iterator[SeparateSession]:
    with SeparateSession(TuningSession(work, Settings(), queues=queues), log=log) as session:
        session.start()
        yield session


def to_its_end(session: SeparateSession) -> list[Event]:
    assert session.wait(60)
    return session.drain(1_000_000)


def states(events: Sequence[Event]) -> list[str]:
    return [event.state for event in events if isinstance(event, StateChanged)]


def texts(events: Sequence[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Logged)]


def test_events_come_in_order_and_whole() -> None:
    with started(partial(works.tells, 5000)) as session:
        events = to_its_end(session)
    assert texts(events) == [str(number) for number in range(5000)]
    assert states(events) == ["capturing", "running", "finished"]
    assert session.summary == works.finished(5000)
    assert session.summary in events
    assert (session.state, session.failure, session.dropped) == (RunState.FINISHED, None, 0)
    assert session.capabilities == frozenset()


def test_it_is_asked_and_says_what_can_be_asked(tmp_path: Path) -> None:
    session = SeparateSession(TuningSession(partial(works.waits, tmp_path / "pid"), Settings(patience=7), queues=True))
    assert session.capabilities == {"start"}
    assert (session.state, session.settings.patience) == (RunState.IDLE, 7)
    session.start()
    session.start()
    assert session.state is RunState.CAPTURING
    assert session.capabilities == {"pause", "stop", "skip", "patience", "retune"}
    session.skip("before there is a process")
    session.set_patience("k", 9)
    until(lambda: session.state is RunState.RUNNING)
    session.pause()
    until(lambda: session.state is RunState.PAUSED)
    assert session.capabilities == {"resume", "stop", "skip", "patience", "retune"}
    session.resume()
    until(lambda: session.state is RunState.RUNNING)
    session.enqueue([Retune("a kernel")])
    assert session.kill_compile(3) is False
    with pytest.raises(ValueError, match="patience must be at least 1, not 0"):
        session.set_patience("k", 0)
    session.stop()
    events = to_its_end(session)
    assert states(events) == ["capturing", "running", "paused", "running", "stopping", "stopped"]
    assert texts(events)[:2] == ["skip before there is a process 0", "patience k 9"]
    with pytest.raises(ValueError, match=GONE):
        session.set_patience("k", 3)
    with pytest.raises(ValueError, match=GONE):
        session.enqueue([Retune("a kernel")])
    assert session.kill_compile(3) is False
    session.close()
    assert not alive(int((tmp_path / "pid").read_text()))


def test_its_process_has_a_number_while_there_is_one(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    session = SeparateSession(TuningSession(partial(works.waits, note), Settings()))
    assert session.pid is None
    with session:
        session.start()
        until(note.exists)
        assert session.pid == int(note.read_text())
        session.stop()
        assert session.wait(60)
        assert session.pid is None


def test_work_that_does_not_queue_refuses_in_the_words_of_the_session() -> None:
    with started(partial(works.waits, None)) as session:
        until(lambda: session.state is RunState.RUNNING)
        assert "retune" not in session.capabilities
        with pytest.raises(ValueError, match="takes no more kernels"):
            session.enqueue([Retune("a kernel")])


def test_an_exception_is_a_sentence_and_its_trace_is_in_the_log(tmp_path: Path) -> None:
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with started(works.breaks, log=log) as session:
        events = to_its_end(session)
    os.close(log)
    sentence = "internal error: RuntimeError: the engine broke on purpose"
    assert session.failure == sentence
    assert session.state is RunState.FAILED
    assert isinstance(events[-1], StateChanged)
    assert events[-1].reason == sentence
    text = (tmp_path / "log").read_text()
    assert "ERROR engine.session.tuning: the engine thread failed" in text
    assert "Traceback" in text


def test_a_refusal_is_its_sentence() -> None:
    with started(works.refuses) as session:
        to_its_end(session)
    assert (session.failure, session.state) == ("there is no such GPU", RunState.FAILED)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGSEGV, "the tuner's process was ended by SIGSEGV; what was measured is kept"),
        (signal.SIGKILL, "the tuner's process was ended by SIGKILL, as the system does where memory runs out; what"),
    ],
)
def test_a_process_that_dies_is_a_sentence(number: signal.Signals, words: str, tmp_path: Path) -> None:
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with started(partial(works.dies, number), log=log) as session:
        events = to_its_end(session)
    os.close(log)
    assert session.failure is not None
    assert session.failure.startswith(words)
    assert session.failure.endswith("and the run can be started again")
    assert session.state is RunState.FAILED
    assert states(events) == ["capturing", "running", "failed"]
    assert texts(events) == ["last words"]
    if number is signal.SIGSEGV:
        assert "in dies" in (tmp_path / "log").read_text(), "what its threads were at"


def test_what_is_printed_goes_to_the_log_and_nowhere_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with started(works.noisy, log=log) as session:
        to_its_end(session)
    os.close(log)
    text = (tmp_path / "log").read_text()
    for line in (
        "noise on descriptor one",
        "noise on descriptor two",
        "child noise",
        "printed noise",
        "engine: a line",
    ):
        assert line in text
    assert capfd.readouterr() == ("", "")


def test_it_runs_in_the_same_folder_with_the_same_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OF_THE_TEST", "as it was")
    with started(works.surroundings) as session:
        assert texts(to_its_end(session)) == [str(tmp_path), "as it was", "''"]


def test_a_reader_that_is_stopped_blocks_no_search_and_what_is_dropped_is_counted(tmp_path: Path) -> None:
    """The pipe fills and the inbox in the process reaches its limit; the search goes on, and its words arrive later."""
    note, count = tmp_path / "note", INBOX_LIMIT + 60_000
    with started(partial(works.floods, count, note)) as session:
        until(lambda: session.state is RunState.RUNNING)
        session._lock.acquire()
        try:
            taken, session._take = session._take, _Stopped(session).take  # type: ignore[method-assign]
            until(note.exists, 60)
        finally:
            session._take = taken  # type: ignore[method-assign]
            session._lock.release()
        session.stop()
        events = to_its_end(session)
    visits = sum(isinstance(event, NodeVisited) for event in events)
    assert states(events) == ["capturing", "running", "stopping", "stopped"]
    assert visits + session.dropped == count


class _Stopped:
    """Takes nothing while somebody holds the lock of the session."""

    def __init__(self, session: SeparateSession) -> None:
        self._session = session
        self._take = session._take

    def take(self, message: dict[str, object]) -> bool:
        with self._session._lock:
            pass
        return self._take(message)


def test_closing_ends_a_compile_and_every_process(tmp_path: Path) -> None:
    note = tmp_path / "note"
    with started(partial(works.compiles, note)) as session:
        until(note.exists)
        folder = Path(note.read_text())
        until(lambda: processes_about(folder))
        assert session._engine is not None
        pid = session._engine.pid  # type: ignore[attr-defined]
    assert session.state is RunState.STOPPED
    assert not alive(pid)
    until(lambda: not processes_about(folder), 5)
    assert not folder.exists()


def test_closing_ends_a_process_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.session.separate.ABORT_S", 0.3)
    note = tmp_path / "pid"
    with started(partial(works.waits, note)) as session:
        until(note.exists)
        pid = int(note.read_text())
        os.kill(pid, signal.SIGSTOP)
    assert session.state is RunState.STOPPED
    assert session.failure is None
    assert not alive(pid)


def test_closing_before_there_is_a_process_leaves_none() -> None:
    with started(partial(works.waits, None)) as session:
        pass
    assert session.wait(0)
    assert session.state is RunState.STOPPED


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_the_death_of_the_screen_ends_engine_and_compilers(number: signal.Signals, tmp_path: Path) -> None:
    note = tmp_path / "note"
    code = (
        "import sys, time; from functools import partial; from pathlib import Path\n"
        f"sys.path.insert(0, {works.ROOT!r})\n"
        "from tests.session.test_separate import *\n"
        f"with started(partial(works.compiles, Path({str(note)!r}))) as session:\n"
        "    until(lambda: session._engine is not None); print(session._engine.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as screen:
        assert screen.stdout is not None
        pid = int(screen.stdout.readline())
        until(note.exists)
        folder = Path(note.read_text())
        until(lambda: processes_about(folder))
        assert alive(pid)
        screen.send_signal(number)
    until(lambda: not alive(pid), 5)
    until(lambda: not processes_about(folder), 5)
    until(lambda: not folder.exists(), 5)


def test_words_that_can_not_be_taken_are_a_failure_and_leave_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_understood(text: str) -> list[Event]:
        raise TypeError("no such field")

    monkeypatch.setattr("engine.session.separate.unpack_events", not_understood)
    with started(partial(works.waits, None)) as session:
        to_its_end(session)
        assert isinstance(session._engine, EngineProcess)
        assert not alive(session._engine.pid)
    assert (session.state, session.failure) == (RunState.FAILED, "internal error: TypeError: no such field")


def test_a_process_that_can_not_be_started_is_a_sentence() -> None:
    def begin() -> EngineProcess:
        raise OSError(11, "Resource temporarily unavailable")

    session = SeparateSession(TuningSession(works.breaks, Settings()), begin=begin)
    session.start()
    assert session.wait(10)
    assert session.failure == "the tuner's process can't be started: Resource temporarily unavailable"


def pin_as_they_come(session: SeparateSession, path: Path, count: int) -> list[Event]:
    """Pin each candidate that was timed, as a screen does, until so many were; the events until then."""
    events: list[Event] = []
    pinned = 0
    ends = time.monotonic() + 60
    while pinned < count and not session.wait(0.01):
        assert time.monotonic() < ends
        for event in session.drain():
            events.append(event)
            if isinstance(event, Measured) and event.us is not None and pinned < count:
                with Store.open(path, create=False) as writer:
                    writer.record_pin(event.kernel, Schedule.of({"NUMBER": pinned}), CONTEXT.key, author="ana")
                pinned += 1
    assert pinned == count
    return events


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return database.execute(query).fetchall()


def test_a_whole_run_is_recorded_and_pins_are_written_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    with SeparateSession(works.tuning(CODE, path, patience=60)) as session:
        session.start()
        events = pin_as_they_come(session, path, 10)
        assert session.state is RunState.RUNNING
        events += to_its_end(session)
    assert session.failure is None
    assert session.summary is not None
    assert session.summary.measured > 10
    assert states(events) == ["capturing", "running", "finished"]
    assert rows(path, "SELECT state FROM run") == [("finished",)]
    assert rows(path, "SELECT count(*) FROM pin") == [(10,)]


def test_a_run_whose_process_is_killed_leaves_a_whole_database_to_go_on_with(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    with SeparateSession(works.tuning(CODE, path, patience=1000)) as session:
        session.start()
        pin_as_they_come(session, path, 3)
        assert isinstance(session._engine, EngineProcess)
        os.kill(session._engine.pid, signal.SIGKILL)
        assert session.wait(10)
    assert session.state is RunState.FAILED
    kept = rows(path, "SELECT count(*) FROM measurement")[0][0]
    assert isinstance(kept, int)
    assert kept >= 3
    with SeparateSession(works.tuning(CODE, path, patience=10)) as session:
        session.start()
        to_its_end(session)
    assert session.summary is not None
    assert session.summary.cached > 0
