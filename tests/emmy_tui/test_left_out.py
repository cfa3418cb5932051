"""A row that can't be read is left out of the screen with one warning, and the screen shows the rest."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from emmy_tui.database_source import DatabaseSource
from emmy_tui.run_source import RunSource
from engine.events import Event, Logged, Measured
from engine.store import Store
from tests.emmy_tui.looking import application, running, screen_text
from tests.emmy_tui.measured import fill, matmul
from tests.emmy_tui.recorded import record
from tests.emmy_tui.scripted import START, search_events
from tests.emmy_tui.test_desk import Here
from tests.emmy_tui.test_empty_database import until as awaited
from tests.emmy_tui.test_source import until
from tests.emmy_tui.two_runs import record_runs

EVENTS = search_events()


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(statement).rowcount == 1
        connection.commit()


def test_a_desk_answers_with_the_rest_warns_once_and_keeps_a_mark(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = fill(tmp_path / "tune.db", rows=8)
    with Store.open(path) as store:
        key = matmul().key
        (context, *_) = store.contexts()
        before = len(store.timed(key, context.key))
    change(
        path,
        "UPDATE measurement SET median_us = -1 WHERE id = (SELECT max(id) FROM measurement WHERE status = 'ok' "
        f"AND kernel_key = '{key}' AND context_key = '{context.key}')",
    )
    here = Here()
    here.desk.connect(lambda: path)
    for _ in range(2):
        here.ask("timed", lambda store: store.timed(key, context.key))
        here.wait()
    here.until(lambda: bool(here.warned))
    assert here.desk.badges == ("1 ROW LEFT OUT",)
    here.desk.close()
    assert here.sentences == []
    assert [len(answer) for answer in here.answers] == [before - 1, before - 1]
    (said,) = here.warned
    assert "of table measurement" in said
    assert said in caplog.text


@pytest.mark.parametrize("value", ["body = '{'", "kind = 'Boom'"])
def test_a_database_is_followed_without_an_event_that_cant_be_read(tmp_path: Path, value: str) -> None:
    path = record_runs(tmp_path / "two.db")
    change(path, f"UPDATE event SET {value} WHERE rowid = (SELECT max(rowid) FROM event WHERE kind = 'Measured')")
    with followed(path) as (source, events):
        (said,) = told(events)
        assert "of table event" in said
        assert events[-1] in warnings(events), "behind all that was read, as a log is cut off at its start"
        assert any(isinstance(event, Measured) for event in events)
        assert source.badges == ("1 ROW LEFT OUT",)


@contextmanager
def followed(path: Path) -> Iterator[tuple[DatabaseSource, list[Event]]]:
    """A source, with what it has read once all is read."""
    source, events = DatabaseSource(path), list[Event]()
    try:
        until(lambda: bool(events.extend(source.drain(10_000)) or not source.reading))
        events += source.drain(10_000)
        yield source, events
    finally:
        source.close()


def warnings(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, Logged) and "left out: " in event.text]


def told(events: Sequence[Event]) -> list[str]:
    return [event.text for event in warnings(events) if isinstance(event, Logged)]


SPOILT = "started_at = 'soon'"
"""What is wrong with a run that can't be read."""


def with_runs(path: Path, ends: Sequence[bool], spoilt: Sequence[int]) -> Path:
    """A database of runs of which some can't be read."""
    for number, ended in enumerate(ends):
        record(path, EVENTS[:60] if not ended else EVENTS, target=f"relu({number})", ended=ended)
    for number in spoilt:
        change(path, f"UPDATE run SET {SPOILT} WHERE target = 'relu({number})'")
    return path


@pytest.mark.parametrize(
    ("ends", "spoilt"),
    [([True], [0]), ([True, True], [0]), ([True, True], [1]), ([True, False], [0]), ([True, True, True], [0, 2])],
)
def test_a_run_that_is_left_out_is_told_and_marked(
    tmp_path: Path, ends: list[bool], spoilt: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    path = with_runs(tmp_path / "tune.db", ends, spoilt)
    with caplog.at_level(logging.WARNING, "emmy_tui"), followed(path) as (source, events):
        assert told(events)
        assert "of table run" in told(events)[0]
        assert [record.getMessage() for record in caplog.records] == [f"{path}: {text}" for text in told(events)]
        count = len(spoilt)
        assert source.badges[-1] == f"{count} ROW{'S' if count > 1 else ''} LEFT OUT"
        until(lambda: not source.reading)
        assert source.badges, "for as long as it holds"


def test_one_that_is_mended_is_missing_no_more(tmp_path: Path) -> None:
    path = with_runs(tmp_path / "tune.db", [True, True], [0])
    with followed(path) as (source, _):
        assert source.badges == ("1 ROW LEFT OUT",)
        change(path, f"UPDATE run SET started_at = {START - 1} WHERE target = 'relu(0)'")
        until(lambda: source.badges == ())


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_the_screen_keeps_a_mark_and_the_log_tells_which(tmp_path: Path, size: tuple[int, int]) -> None:
    path = with_runs(tmp_path / "tune.db", [True, True], [0])
    app = application(DatabaseSource(path))
    async with running(app, size) as pilot:
        await awaited(pilot, lambda: "1 ROW LEFT OUT" in screen_text(app).splitlines()[0])
        await awaited(pilot, lambda: "finished" in screen_text(app))
        await awaited(pilot, lambda: bool(told(list(app.view.snapshot.log))))
        assert "1 ROW LEFT OUT" in screen_text(app).splitlines()[0]


def test_the_run_that_is_looked_at_is_marked_too(tmp_path: Path) -> None:
    path = with_runs(tmp_path / "tune.db", [True], [])
    change(path, "UPDATE event SET body = '{' WHERE rowid = (SELECT max(rowid) FROM event WHERE kind = 'Measured')")
    with Store.open(path, read_only=True) as store:
        source = RunSource(path, store.runs()[0])
    try:
        until(lambda: source.drain(10_000) == [] and not source.reading)
        assert source.badges == ("1 ROW LEFT OUT",)
    finally:
        source.close()
