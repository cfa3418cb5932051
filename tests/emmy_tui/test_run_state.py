"""Whether a run is heard of, by the clock of this machine, and what a run that never told of its end is called."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from emmy_tui.database_source import DatabaseSource
from emmy_tui.main import arguments_parser
from emmy_tui.once import frame
from emmy_tui.opening import frame_of
from emmy_tui.run_source import RunSource
from emmy_tui.run_state import GONE_S, WITHOUT_A_WORD, is_lost
from engine.events import RunStarted
from engine.store import Store
from tests.emmy_tui.looking import application, running, screen_text
from tests.emmy_tui.recorded import record
from tests.emmy_tui.scripted import search_events
from tests.emmy_tui.test_empty_database import until as awaited
from tests.emmy_tui.test_source import until

EVENTS = search_events()


def read_up(source: DatabaseSource) -> None:
    until(lambda: source.drain(500) == [] and not source.reading)


def test_rows_of_a_writer_whose_clock_is_behind_are_heard_when_they_arrive(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    record(path, EVENTS[:40], ended=False)
    now = max(event.at for event in EVENTS[:40]) + 1200
    source = DatabaseSource(path, clock=lambda: now)
    try:
        read_up(source)
        assert (source.badges, source.lost, source.heard_s) == (("WRITER SILENT 20m",), True, None)
        with Store.open(path) as store:
            store.record_events(store.runs()[0].id, EVENTS[40:60])
        until(lambda: bool(source.drain(500)) or source.heard_s is not None)
        until(lambda: source.heard_s == 0.0)
        assert (source.badges, source.lost) == ((), False)
    finally:
        source.close()


def test_a_writer_whose_clock_is_ahead_is_heard_now_at_the_first_look(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    record(path, EVENTS[:40], ended=False)
    now = [min(event.at for event in EVENTS[:40]) - 3600]
    source = DatabaseSource(path, clock=lambda: now[0])
    try:
        read_up(source)
        assert source.heard_s == 0.0
        now[0] += 120
        assert source.badges == ("WRITER SILENT 2m",)
    finally:
        source.close()


async def test_a_run_that_died_is_not_shown_as_running(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    begun = [event for event in EVENTS[:2]]
    record(path, begun, ended=False)
    with Store.open(path, read_only=True) as store:
        (run,) = store.runs()
        assert is_lost(store, run, time.time())
        assert not is_lost(store, run, begun[-1].at + GONE_S / 2)
    for source in (DatabaseSource(path), RunSource(path, run)):
        app = application(source)
        async with running(app, (160, 45)) as pilot:
            await awaited(pilot, lambda app=app: app.view.lost)
            app.tick()
            await pilot.pause()
            status = screen_text(app).splitlines()[0]
            assert WITHOUT_A_WORD in status
            assert not [word for word in ("running", "00:00:00") if word in status]
            assert not app.view.busy
    assert WITHOUT_A_WORD in frame_of(arguments_parser().parse_args(["--once", str(path)])).splitlines()[0]


def test_an_older_run_without_an_end_is_lost_and_one_that_ended_is_not(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    record(path, EVENTS[:40], ended=False)
    record(path, [replace(one, run="2") if isinstance(one, RunStarted) else one for one in EVENTS])
    with Store.open(path, read_only=True) as store:
        older, newer = store.runs()
        soon = max(event.at for event in EVENTS) + 1
        assert [is_lost(store, run, soon) for run in (older, newer)] == [True, False]


def test_one_frame_of_a_run_that_goes_on_says_so(tmp_path: Path) -> None:
    assert "running" in frame(EVENTS[:40], tmp_path / "tune.db", ascii_only=True).splitlines()[0]
