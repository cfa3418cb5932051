"""A tuner that was stopped by a signal says nothing: the screen says it for it, of its own and of one it follows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emmy_tui.database_source import GONE_S, DatabaseSource
from emmy_tui.source import Mode, SessionSource
from emmy_tui.stopped import is_stopped, stopped_writer
from engine.store import Store
from tests.emmy_tui.recorded import record
from tests.emmy_tui.test_source import EVENTS, FakeSession, badges_when, until

READ, WRITE = "True", "False"


@contextmanager
def holding(path: Path, read_only: str) -> Iterator[int]:
    """A process that has the database open, by its number."""
    code = (
        f"from engine.store import Store; from pathlib import Path; "
        f"s = Store.open(Path({str(path)!r}), read_only={read_only}); print(s.runs()[0].id, flush=True); input()"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline()
        try:
            yield child.pid
        finally:
            child.kill()


def stop(pid: int, number: signal.Signals = signal.SIGSTOP) -> None:
    os.kill(pid, number)
    until(lambda: is_stopped(pid))


def go_on(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)
    until(lambda: not is_stopped(pid))


def unfinished(path: Path) -> float:
    """A run that says nothing more, and when it spoke last."""
    record(path, EVENTS[:40], ended=False)
    return max(event.at for event in EVENTS[:40])


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP])
def test_a_writer_that_is_stopped_is_named_until_it_goes_on(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    last = unfinished(path)
    with holding(path, WRITE) as pid:
        source = DatabaseSource(path, clock=lambda: last + GONE_S + 60)
        try:
            until(lambda: source.drain(500) == [] and not source.reading)
            assert source.badges == ("WRITER SILENT 11m",)
            assert source.lost
            stop(pid, number)
            assert badges_when(source, any_stopped) == (f"WRITER STOPPED BY A SIGNAL, kill -CONT {pid}",)
            assert (source.lost, source.heard_s) == (False, None)
            go_on(pid)
            assert badges_when(source, lambda found: not any_stopped(found)) == ("WRITER SILENT 11m",)
        finally:
            source.close()


def any_stopped(badges: tuple[str, ...]) -> bool:
    return any("STOPPED" in badge for badge in badges)


def test_one_that_only_reads_is_no_writer(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    unfinished(path)
    with Store.open(path), holding(path, READ) as reader, holding(path, WRITE) as writer:
        stop(reader)
        assert stopped_writer(path) is None
        stop(writer)
        assert stopped_writer(path) == writer
        assert stopped_writer(tmp_path / "other.db") is None


def test_the_screens_own_tuner_is_named_too(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    unfinished(path)
    session = FakeSession()
    source = SessionSource(lambda: session, Mode.LIVE, "title", "db")
    until(lambda: source.capabilities == {"pause", "stop"})
    assert source.badges == ()
    with holding(path, WRITE) as pid:
        session.pid = pid
        assert source.badges == ()
        stop(pid)
        assert source.badges == (f"TUNER STOPPED BY A SIGNAL, kill -CONT {pid}",)
        go_on(pid)
        assert source.badges == ()
    assert source.badges == (), "it has ended"
    source.close()
