"""A source that nobody drains holds so many events and no more: its reader waits, whatever it has to tell, and nothing
is let go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from emmy_tui import database_source
from emmy_tui.database_source import DatabaseSource, recorded_events
from emmy_tui.run_source import RunSource
from engine.events import Event, Logged
from engine.store import Store
from tests.emmy_tui.measured import fill
from tests.emmy_tui.recorded import record
from tests.emmy_tui.scripted import search_events
from tests.emmy_tui.test_left_out import change
from tests.emmy_tui.test_recorded_kernels import without_runs
from tests.emmy_tui.test_source import until
from tests.emmy_tui.two_runs import record_runs

LIMIT = 1
EVENTS = search_events()


def of_runs(path: Path) -> Path:
    return record_runs(path)


def of_rows_alone(path: Path) -> Path:
    """What is told of it comes from `known` alone."""
    return without_runs(path)


def of_a_run_that_goes_on(path: Path) -> Path:
    """What the rows know beside it is told once it waits for more."""
    without_runs(path)
    record(path, EVENTS[:60], ended=False)
    return path


def with_rows_left_out(path: Path) -> Path:
    """More ways to be bad than fit in."""
    record(path, EVENTS)
    for place, spoilt in enumerate(("body = '{'", "kind = 'Boom'", "at = 'soon'", "body = '['", "body = '1'")):
        change(path, f"UPDATE event SET {spoilt} WHERE seq = (SELECT seq FROM event LIMIT 1 OFFSET {9 + place})")
    return path


FILLED = [of_runs, of_rows_alone, of_a_run_that_goes_on, with_rows_left_out, fill]


def words(events: list[Event]) -> Counter[str]:
    """The events, without when what is said beside the rows was said."""
    return Counter(event.text if isinstance(event, Logged) else repr(event) for event in events)


def all_of(path: Path) -> Counter[str]:
    """What a source tells where the inbox has room for everything."""
    source, events = DatabaseSource(path), list[Event]()
    try:
        until(lambda: bool(events.extend(source.drain(100_000)) or not source.reading))
        events += source.drain(100_000)
    finally:
        source.close()
    assert len(events) > LIMIT
    return words(events)


@pytest.mark.parametrize("filled", FILLED)
def test_the_reader_waits_and_nothing_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filled: Callable[[Path], Path]
) -> None:
    path = filled(tmp_path / "tune.db")
    monkeypatch.setattr(database_source, "POLL_S", 0.001)
    expected = all_of(path)
    monkeypatch.setattr(database_source, "INBOX_LIMIT", LIMIT)
    source, events = DatabaseSource(path), list[Event]()
    try:
        for _ in range(len(list(expected.elements())) - LIMIT):
            until(lambda: len(source._inbox) == LIMIT)
            assert source.reading, "what is not taken yet is on its way"
            events += source.drain(1)
            assert len(source._inbox) <= LIMIT
        until(lambda: bool(events.extend(source.drain(1)) or not source.reading))
        events += source.drain(LIMIT)
    finally:
        source.close()
    assert words(events) == expected


def test_a_reader_that_waits_for_room_ends_with_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = with_rows_left_out(tmp_path / "tune.db")
    monkeypatch.setattr(database_source, "INBOX_LIMIT", LIMIT)
    with Store.open(path, read_only=True) as store:
        sources = (DatabaseSource(path), RunSource(path, store.runs()[-1]))
    for source in sources:
        until(lambda source=source: len(source._inbox) == LIMIT)
        source.close()
        until(lambda source=source: not source._thread.is_alive())
        assert len(source._inbox) == LIMIT
    assert sum(1 for _ in recorded_events(path)) > LIMIT
