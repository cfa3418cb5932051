"""A row that can't be read is left out of the screen with one warning, and the screen shows the rest."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from emmy_tui.database_source import DatabaseSource
from engine.events import Logged, Measured
from engine.store import Store
from tests.emmy_tui.measured import fill, matmul
from tests.emmy_tui.test_desk import Here
from tests.emmy_tui.test_source import until
from tests.emmy_tui.two_runs import record_runs


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(statement).rowcount == 1
        connection.commit()


def test_a_desk_answers_with_the_rest_and_warns_once(tmp_path: Path) -> None:
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
    here.desk.close()
    assert here.sentences == []
    assert [len(answer) for answer in here.answers] == [before - 1, before - 1]
    (said,) = here.warned
    assert "of table measurement" in said


@pytest.mark.parametrize("value", ["body = '{'", "kind = 'Boom'"])
def test_a_database_is_followed_without_an_event_that_cant_be_read(tmp_path: Path, value: str) -> None:
    path = record_runs(tmp_path / "two.db")
    change(path, f"UPDATE event SET {value} WHERE rowid = (SELECT max(rowid) FROM event WHERE kind = 'Measured')")
    source = DatabaseSource(path)
    events = []
    until(lambda: bool(events.extend(source.drain(10_000)) or not source.reading))
    events += source.drain(10_000)
    source.close()
    said = [event.text for event in events if isinstance(event, Logged) and "left out: " in event.text]
    assert len(said) == 1
    assert "of table event" in said[0]
    assert any(isinstance(event, Measured) for event in events)
