"""A database that is cut short, or spoilt in its place, while it is read: that is said, and what was read stays."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from emmy_tui.database_source import DatabaseSource, file_signature
from emmy_tui.main import arguments_parser
from emmy_tui.opening import frame_of, open_source
from emmy_tui.refusal import BadInput
from emmy_tui.run_source import RunSource
from engine.events import Event, Measured
from engine.store import Store
from tests.emmy_tui.looking import application, running, screen_text
from tests.emmy_tui.recorded import record
from tests.emmy_tui.scripted import search_events
from tests.emmy_tui.test_empty_database import until as awaited
from tests.emmy_tui.test_source import until

EVENTS = search_events()
SAYS = "it is shorter than its header says"
Look = Callable[[Path], DatabaseSource]


def run_of(path: Path) -> RunSource:
    with Store.open(path, read_only=True) as store:
        return RunSource(path, store.runs()[-1])


LOOKS: dict[str, Look] = {"the newest run": DatabaseSource, "a run of it": run_of}


def halved(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def nearly_whole(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 100)


def written_over(path: Path) -> None:
    content = b"no database at all " * (path.stat().st_size // 19)
    with path.open("r+b") as file:
        file.write(content)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


SPOILT = {halved: SAYS, nearly_whole: SAYS, written_over: "is no SQLite database", emptied: "is empty"}


@contextmanager
def looking(path: Path, look: Look = DatabaseSource) -> Iterator[tuple[DatabaseSource, list[Event]]]:
    """A source that has read all that is there, and what it read."""
    source, events = look(path), list[Event]()
    try:
        until(lambda: bool(events.extend(source.drain(500)) or not source.reading))
        events += source.drain(500)
        yield source, events
    finally:
        source.close()


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize(("spoil", "says"), SPOILT.items(), ids=lambda one: getattr(one, "__name__", ""))
def test_it_is_said_and_what_was_read_stays(
    tmp_path: Path, spoil: Callable[[Path], None], says: str, look: Look, *, ended: bool
) -> None:
    path, whole = tmp_path / "tune.db", tmp_path / "whole.db"
    record(path, EVENTS, ended=ended)
    shutil.copyfile(path, whole)
    with looking(path, look) as (source, events):
        assert any(isinstance(event, Measured) for event in events)
        spoil(path)
        until(lambda: says in source.trouble)
        assert source.drain(500) == [], "nothing that was shown is taken back"
        with whole.open("rb") as origin, path.open("r+b") as file:  # in its place, as it was
            shutil.copyfileobj(origin, file)
        until(lambda: source.trouble == "")
        again: list[Event] = []
        until(lambda: bool(again.extend(source.drain(500)) or any(isinstance(event, Measured) for event in again)))


def test_while_somebody_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    record(path, EVENTS[:40], ended=False)
    with closing(sqlite3.connect(path)) as writer, looking(path) as (source, _):
        for number in range(5):
            writer.execute("UPDATE run SET target = ?", (f"relu({number})",))
            writer.commit()
            seen = file_signature(path)
            until(lambda seen=seen: source._whole == seen)
            assert source.trouble == ""
        halved(path)
        until(lambda: SAYS in source.trouble)
        assert "CAN'T READ" in source.badges


async def test_the_screen_says_so_above_what_it_shows(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    record(path, EVENTS)
    app = application(DatabaseSource(path))
    async with running(app, (160, 45)) as pilot:
        await awaited(pilot, lambda: "matmul" in screen_text(app) and "finished" in screen_text(app))
        halved(path)
        await awaited(pilot, lambda: SAYS in " ".join(screen_text(app).split()))
        assert "CAN'T READ" in screen_text(app).splitlines()[0]
        assert "matmul" in screen_text(app)


@pytest.mark.parametrize("way_in", [open_source, frame_of])
def test_one_that_is_cut_short_is_refused_before_a_screen_is_drawn(
    tmp_path: Path, way_in: Callable[..., object]
) -> None:
    path = tmp_path / "tune.db"
    record(path, EVENTS)
    halved(path)
    with pytest.raises(BadInput, match=SAYS):
        way_in(arguments_parser().parse_args([str(path)]))
