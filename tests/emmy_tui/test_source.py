"""Sources: sessions that open on their own thread and fail in words, and a database that is read and followed."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from emmy_tui.database_source import POLL_S, DatabaseSource, latest_runs, recorded_events
from emmy_tui.source import Anew, Mode, Session, SessionSource
from engine.events import Event, KernelFound, Logged, Measured, RunFinished, RunStarted, RunState, StateChanged
from engine.snapshot import Snapshot, apply
from engine.store import Store
from tests.emmy_tui.recorded import record
from tests.emmy_tui.scripted import failed_events, search_events

EVENTS = search_events()


class FakeSession:
    """A session of one line, which ends when it is stopped."""

    def __init__(self) -> None:
        self.state = RunState.IDLE
        self.dropped = 2
        self.pid: int | None = None
        self.asked: list[str] = []
        self._events: list[Event] = []

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset({"pause", "stop"}) if self.state is RunState.RUNNING else frozenset()

    def drain(self, limit: int = 5000) -> list[Event]:
        events, self._events = self._events[:limit], self._events[limit:]
        return events

    def start(self) -> None:
        self.state = RunState.RUNNING
        self._events.append(Logged(at=1.0, level="info", text="started"))

    def pause(self) -> None:
        raise RuntimeError("not now")

    def resume(self) -> None:
        self.asked.append("resume")

    def stop(self) -> None:
        self.asked.append("stop")
        self.state = RunState.STOPPED

    def abort(self) -> None:
        self.asked.append("abort")

    def close(self) -> None:
        self.asked.append("close")


def until(condition: Callable[[], bool]) -> None:
    """Wait for another thread, ten seconds at most."""
    ends = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.005)


def collected(source: SessionSource | DatabaseSource, count: int) -> list[Event]:
    events: list[Event] = []

    def enough() -> bool:
        events.extend(source.drain(100))
        return len(events) >= count

    until(enough)
    return events


def read_to(source: DatabaseSource, kind: type[Event]) -> list[Event]:
    """Everything up to the first event of a kind."""
    events: list[Event] = []

    def found() -> bool:
        events.extend(source.drain(500))
        return any(isinstance(event, kind) for event in events)

    until(found)
    return events


def session_source(factory: Callable[[], Session]) -> SessionSource:
    return SessionSource(factory, Mode.LIVE, "title", "db")


def test_a_session_opens_and_starts_on_its_own() -> None:
    source = session_source(FakeSession)
    assert [event.text for event in collected(source, 1) if isinstance(event, Logged)] == ["started"]
    until(lambda: source.capabilities == {"pause", "stop"})
    assert source.dropped == 2
    source.close()


def test_a_session_that_can_not_open_says_why() -> None:
    def broken() -> Session:
        raise ValueError("patience must be at least 1")

    source = session_source(broken)
    (event,) = collected(source, 1)
    assert isinstance(event, StateChanged)
    assert (event.state, event.reason) == (RunState.FAILED, "patience must be at least 1")
    until(lambda: source.capabilities == {"start"})


def test_an_ended_session_starts_anew() -> None:
    made: list[FakeSession] = []

    def factory() -> Session:
        made.append(FakeSession())
        return made[-1]

    source = session_source(factory)
    collected(source, 1)
    source.start()
    assert len(made) == 1
    source.stop()
    until(lambda: source.capabilities == {"start"})
    source.start()
    events = collected(source, 2)
    assert isinstance(events[0], Anew)
    assert isinstance(events[1], Logged)
    assert len(made) == 2
    source.close()
    assert made[1].asked == ["close"]
    source.start()
    assert len(made) == 2


def test_a_refused_verb_becomes_a_line_of_the_log() -> None:
    source = session_source(FakeSession)
    collected(source, 1)
    source.pause()
    (event,) = collected(source, 1)
    assert isinstance(event, Logged)
    assert event.text == "pause was refused: not now"


def test_closing_before_it_opened_closes_it_later() -> None:
    made: list[FakeSession] = []

    def slow() -> Session:
        time.sleep(0.1)
        made.append(FakeSession())
        return made[-1]

    source = session_source(slow)
    source.close()
    until(lambda: bool(made) and made[0].asked == ["close"])


def test_a_database_that_is_not_there_is_named_and_read_once_it_is(tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    source = DatabaseSource(path)
    until(lambda: "none.db" in source.trouble)
    assert "FILE GONE" in source.badges
    assert source.mode is Mode.BROWSE
    assert source.capabilities == frozenset()
    record(path, failed_events())
    events = read_to(source, RunFinished)
    assert not any(isinstance(event, Anew) for event in events)
    assert (source.trouble, source.badges) == ("", ())
    source.close()


def test_steering_a_database_does_nothing(tmp_path: Path) -> None:
    source = DatabaseSource(tmp_path / "none.db")
    for verb in ("start", "pause", "resume", "stop", "abort"):
        getattr(source, verb)()
    source.close()


def test_a_database_yields_its_run(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    record(path, EVENTS)
    source = DatabaseSource(path)
    events = read_to(source, RunFinished)
    snapshot, expected = Snapshot(), Snapshot()
    for event in events:
        apply(snapshot, event)
    for event in EVENTS:
        apply(expected, event)
    assert list(snapshot.kernels) == list(expected.kernels)
    assert (snapshot.measured, snapshot.cached, snapshot.failed) == (
        expected.measured,
        expected.cached,
        expected.failed,
    )
    assert [row.best_us for row in snapshot.kernels.values()] == [row.best_us for row in expected.kernels.values()]
    assert set(snapshot.nodes) == set(expected.nodes)
    source.close()


def test_a_newer_run_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    record(path, failed_events())
    source = DatabaseSource(path)
    read_to(source, RunFinished)
    record(path, failed_events(), ended=False)
    until(lambda: bool(source._inbox))
    assert source.reading, "from before the first event of the new view on"
    later = read_to(source, Measured)
    assert isinstance(later[0], Anew)
    until(lambda: source.drain(500) == [] and not source.reading)
    source.close()


def test_the_latest_run_of_each_program_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    for target in ("a(x)", "b(x)", "a(x)"):
        record(path, failed_events(), target=target)
    with Store.open(path, read_only=True) as store:
        runs = latest_runs(store)
        assert [run.target for run in runs] == ["b(x)", "a(x)"]
        assert runs[-1].id == store.runs()[-1].id
    assert sum(isinstance(event, RunFinished) for event in recorded_events(path)) == 2


def badges_when(source: DatabaseSource, wanted: Callable[[tuple[str, ...]], bool]) -> tuple[str, ...]:
    """The source's badges once they are as wanted."""
    until(lambda: wanted(source.badges))
    return source.badges


def test_a_writer_that_is_silent_for_long_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    record(path, EVENTS[:40], ended=False)
    last = max(event.at for event in EVENTS[:40])
    silent = ((59.0, ()), (119.0, ("WRITER SILENT 1m",)), (660.0, ("WRITER SILENT 11m",)))
    for later, badges in (*silent, (3 * 86400.0, ("WRITER SILENT 3d",))):
        source = DatabaseSource(path, clock=lambda later=later: last + later)
        try:
            collected(source, 30)
            until(lambda source=source: source.drain(500) == [] and not source.reading)
            assert badges_when(source, lambda found, badges=badges: found == badges) == badges
        finally:
            source.close()


def test_silence_is_judged_once_everything_was_read(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    record(path, EVENTS)
    source = DatabaseSource(path, clock=lambda: EVENTS[-1].at + 1e6)
    try:
        while source.reading:
            assert source.badges == ()
            source.drain(3)
    finally:
        source.close()


def test_a_paused_run_owes_no_word_until_it_goes_on(tmp_path: Path) -> None:
    begun = [event for event in EVENTS[:40] if not isinstance(event, RunStarted)]
    last = max(event.at for event in begun)
    paused, resumed = (StateChanged(at=last + 1, state=state) for state in (RunState.PAUSED, RunState.RUNNING))
    for number, (told, badges) in enumerate((([paused], ()), ([paused, resumed], ("WRITER SILENT 9m",)))):
        path = tmp_path / f"{number}.db"
        record(path, [*begun, *told], ended=False)
        source = DatabaseSource(path, clock=lambda: last + 600)
        try:
            until(lambda source=source: source.drain(500) == [] and not source.reading)
            assert source.badges == badges
        finally:
            source.close()


def test_a_run_that_ended_is_not_silent(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    record(path, EVENTS)
    source = DatabaseSource(path, clock=lambda: EVENTS[-1].at + 1e6)
    try:
        read_to(source, RunFinished)
        assert badges_when(source, lambda found: not found) == ()
    finally:
        source.close()


def test_a_file_that_another_one_replaced_is_read_anew(tmp_path: Path) -> None:
    path, other = tmp_path / "tune.db", tmp_path / "other.db"
    record(path, EVENTS[:60], ended=False)
    record(other, failed_events(), target="rope")
    source = DatabaseSource(path)
    try:
        collected(source, 40)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        other.replace(path)
        assert badges_when(source, lambda found: "FILE REPLACED" in found)
        events = read_to(source, RunFinished)
        assert any(isinstance(event, Anew) for event in events)
        labels = {event.label for event in events if isinstance(event, KernelFound)}
        assert "rope" in labels
    finally:
        source.close()


def test_a_file_that_vanished_is_named_and_what_was_read_stays(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    record(path, EVENTS[:60], ended=False)
    source = DatabaseSource(path)
    try:
        events = collected(source, 40)
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        assert badges_when(source, lambda found: "FILE GONE" in found)
        time.sleep(2 * POLL_S)
        events += source.drain(500)
        assert not any(isinstance(event, Anew) or says_failed(event) for event in events)
        assert source.trouble == ""
        record(path, failed_events(), target="rope")
        later = read_to(source, RunFinished)
        assert isinstance(next(event for event in later if isinstance(event, Anew | RunStarted)), Anew)
        assert "FILE GONE" not in source.badges
    finally:
        source.close()


def says_failed(event: Event) -> bool:
    return isinstance(event, StateChanged) and event.state == RunState.FAILED


def test_a_run_that_died_without_a_word_gives_way_to_a_newer_one(tmp_path: Path) -> None:
    """Again and again: the second dies too, and its own events were followed till then."""
    path, begun = tmp_path / "run.db", [event for event in EVENTS[:40] if not isinstance(event, RunStarted)]
    record(path, begun, ended=False, target="a(x)")
    source = DatabaseSource(path)
    try:
        read_to(source, Measured)
        for target in ("a(x)", "b(x)", "a(x)"):
            record(path, begun, ended=False, target=target)
            events: list[Event] = []
            until(lambda events=events, target=target: target in targets_since_anew(source, events))
    finally:
        source.close()


def targets_since_anew(source: DatabaseSource, events: list[Event]) -> list[str]:
    """What the runs are of that came after the screen began anew; those of other programs come first."""
    events += source.drain(500)
    places = [number for number, event in enumerate(events) if isinstance(event, Anew)]
    later = events[places[-1] :] if places else []
    return [event.target for event in later if isinstance(event, RunStarted)][-1:]


Spoil = Callable[[Path], None]


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def garbled(path: Path) -> None:
    path.write_bytes(b"no database at all " * 400)


def robbed_of_a_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("ALTER TABLE event RENAME TO elsewhere")
        other.commit()


@pytest.mark.parametrize("spoil", [emptied, garbled, robbed_of_a_table])
def test_a_file_that_can_not_be_read_is_read_once_it_can(tmp_path: Path, spoil: Spoil) -> None:
    path = tmp_path / "tune.db"
    record(path, failed_events())
    whole = path.read_bytes()
    source = DatabaseSource(path)
    try:
        read_to(source, RunFinished)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        spoil(path)
        empties = spoil is emptied  # and another one is empty for the moment in which it is written
        until(lambda: bool(source.trouble) and ("is empty" in source.trouble) == empties)
        assert "\n" not in source.trouble
        assert "CAN'T READ" in source.badges
        assert source.drain(500) == []
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        path.write_bytes(whole)
        later = read_to(source, RunFinished)
        assert isinstance(later[0], Anew)
        assert sum(isinstance(event, RunFinished) for event in later) == 1
        assert (source.trouble, source.badges) == ("", ())
    finally:
        source.close()


def test_a_lock_is_waited_for_and_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.store.connection.BUSY_S", 0.1)
    path = tmp_path / "tune.db"
    record(path, failed_events())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        source = DatabaseSource(path)
        try:
            until(lambda: "locked by another process" in source.trouble)
            assert source.drain(10) == []
            other.close()
            read_to(source, RunFinished)
            assert source.trouble == ""
        finally:
            source.close()


def test_a_run_that_is_followed_says_when_it_was_heard_last(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    record(path, EVENTS[:40], ended=False)
    last = max(event.at for event in EVENTS[:40])
    for later, heard in ((3.0, 3.0), (61.0, None)):
        source = DatabaseSource(path, clock=lambda later=later: last + later)
        try:
            collected(source, 30)
            until(lambda source=source: source.drain(500) == [] and not source.reading)
            assert source.heard_s == heard
        finally:
            source.close()
