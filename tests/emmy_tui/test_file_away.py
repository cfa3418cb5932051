"""A watched file that goes away, comes back, or can't be reached for a while."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from emmy_tui.database_source import DatabaseSource, is_gone
from engine.events import Event, Logged
from tests.emmy_tui.recorded import record
from tests.emmy_tui.test_source import until as wait_until

AS_NOBODY = """
import os, sys, time
from pathlib import Path
import engine.store.rows
from emmy_tui.app import EmmyApp
from emmy_tui.database_source import DatabaseSource

os.setgroups([]); os.setgid(65534); os.setuid(65534)
shut, path = Path(sys.argv[1]), Path(sys.argv[2])
source = DatabaseSource(path)

def until(what):
    ends = time.monotonic() + 20
    while not what():
        source.drain(100)
        assert time.monotonic() < ends, (source.badges, source.trouble, source.unwritable)
        time.sleep(0.02)

until(lambda: not source.reading and not source.trouble and source._told)
shut.chmod(0)
until(lambda: "CAN'T READ" in source.badges)
print(source.badges, source.trouble)
print(source.unwritable)
shut.chmod(0o755)
until(lambda: not source.trouble)
print(source.badges, repr(source.unwritable))
source.close()
"""


@pytest.fixture
def source(tmp_path: Path) -> Iterator[DatabaseSource]:
    record(tmp_path / "tune.db", [])
    found = DatabaseSource(tmp_path / "tune.db")
    yield found
    found.close()


def until(source: DatabaseSource, condition: Callable[[], bool]) -> list[Event]:
    """What came until then."""
    ends, events = time.monotonic() + 15, []
    while not condition():
        assert time.monotonic() < ends, source.badges
        events += source.drain(1000)
        time.sleep(0.02)
    return events


def test_the_same_file_that_comes_back_is_no_other_one(source: DatabaseSource, tmp_path: Path) -> None:
    path, away = tmp_path / "tune.db", tmp_path / "away.db"
    until(source, lambda: not source.reading and source._told)
    for _ in range(2):
        path.rename(away)
        until(source, lambda: source.badges == ("FILE GONE",))
        away.rename(path)
        said: list[str] = []
        deadline = time.monotonic() + 10.0
        while not said and time.monotonic() < deadline:
            said += [event.text for event in source.drain(1000) if isinstance(event, Logged)]
            time.sleep(0.01)
        assert said == ["tune.db is there again: it is the same file"]
        assert source.badges == ()


def test_another_file_is_replaced_until_the_first_is_there_again(source: DatabaseSource, tmp_path: Path) -> None:
    path, away, other = tmp_path / "tune.db", tmp_path / "away.db", tmp_path / "other.db"
    record(other, [])
    until(source, lambda: not source.reading and source._told)
    path.rename(away)
    other.rename(path)
    until(source, lambda: source.badges == ("FILE REPLACED",))
    path.rename(other)
    away.rename(path)
    until(source, lambda: source.badges == ())


def test_a_file_without_the_runs_of_the_first_is_another_one(source: DatabaseSource, tmp_path: Path) -> None:
    """A file system gives the number of a file that is gone to the next one."""
    path, other = tmp_path / "tune.db", tmp_path / "other.db"
    record(other, [], target="other")
    until(source, lambda: not source.reading and source._told)
    path.rename(tmp_path / "away.db")
    until(source, lambda: source.badges == ("FILE GONE",))
    source._first = (other.stat().st_dev, other.stat().st_ino)
    other.rename(path)
    until(source, lambda: source.badges == ("FILE REPLACED",))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_folder_that_is_shut_for_a_while_can_not_be_read(tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir()
    record(shut / "tune.db", [])
    for place in (*tmp_path.parents, tmp_path):
        if place.stat().st_uid == os.geteuid() and str(place).startswith("/tmp/pytest"):
            place.chmod(0o755)
    for file in (shut, *shut.iterdir()):
        os.chown(file, 65534, 65534)
    asked = [sys.executable, "-c", AS_NOBODY, str(shut), str(shut / "tune.db")]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    badges, unwritable, after = done.stdout.splitlines()
    assert "CAN'T READ" in badges
    assert "may not be entered" in badges
    assert "written" not in badges
    assert "can't be reached (Permission denied)" in unwritable
    assert after == "() ''"


def test_what_is_under_a_file_is_gone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert is_gone(tmp_path / "none")
    assert is_gone(tmp_path / "file" / "under")
    assert not is_gone(tmp_path / "file")
    assert not is_gone(tmp_path / ("x" * 300))


def test_a_copy_that_a_full_disk_froze_thaws_with_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = True
    record(tmp_path / "tune.db", [])
    monkeypatch.setattr("engine.store.connection.is_full", lambda path, error=None: full)
    source = DatabaseSource(tmp_path / "tune.db")
    try:
        until(source, lambda: source.badges == ("NOT UPDATING (full disk)",))
        full = False
        until(source, lambda: source.badges == ())
        record(tmp_path / "tune.db", [Logged(at=1.0, level="info", text="news")])
        came: list[Event] = []

        def has_news() -> bool:
            came.extend(source.drain(1000))
            return any(isinstance(event, Logged) and event.text == "news" for event in came)

        wait_until(has_news)
    finally:
        source.close()
