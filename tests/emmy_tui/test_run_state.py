"""Whether a run is heard of, by the clock of this machine, and what a run that never told of its end is called."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from emmy_tui.app import EmmyApp
from emmy_tui.comparison import listed_runs
from emmy_tui.database_source import DatabaseSource
from emmy_tui.main import arguments_parser
from emmy_tui.once import frame
from emmy_tui.opening import frame_of
from emmy_tui.run_source import RunSource
from emmy_tui.run_state import GONE_S, WITHOUT_A_WORD, Listener, is_lost
from engine.events import KernelStarted, KernelState, Logged, RunStarted, RunState, StateChanged
from engine.snapshot import Snapshot, apply
from engine.store import Store, StoredRun
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
        assert Listener(run).lost(store, time.time())
        assert not Listener(run).lost(store, begun[-1].at + GONE_S / 2)
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
        assert [Listener(run).lost(store, soon) for run in (older, newer)] == [True, False]


def test_one_frame_of_a_run_that_goes_on_says_so(tmp_path: Path) -> None:
    assert "running" in frame(EVENTS[:40], tmp_path / "tune.db", ascii_only=True).splitlines()[0]


def test_a_listener_hears_what_is_written_between_two_looks_whatever_the_writers_clock_says(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    record(path, EVENTS[:40], ended=False)
    now = max(event.at for event in EVENTS[:40]) + 2 * GONE_S
    with Store.open(path) as store:
        (run,) = store.runs()
        listener = Listener(run)
        assert listener.lost(store, now)
        store.record_events(run.id, EVENTS[40:60])
        assert not listener.lost(store, now + 1)
        assert not listener.lost(store, now + GONE_S)
        assert listener.lost(store, now + GONE_S + 2)


def test_a_paused_run_owes_no_word_until_a_newer_one_begins(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    record(path, [*EVENTS[:40], StateChanged(at=EVENTS[39].at, state=RunState.PAUSED)], ended=False)
    with Store.open(path, read_only=True) as store:
        (run,) = store.runs()
    assert run.state == RunState.PAUSED
    assert [is_lost(run, newest=newest, silent=True) for newest in (True, False)] == [False, True]


async def test_lists_of_runs_say_of_the_followed_one_what_the_status_line_says(tmp_path: Path) -> None:
    """By the writer's clock it has been silent for an hour, and rows of it arrive."""
    path = tmp_path / "tune.db"
    record(path, [], ended=False)
    late = [replace(event, at=time.time() - 3600 + place) for place, event in enumerate(EVENTS)]
    with Store.open(path) as store:
        (run,) = store.runs()
        late = [replace(event, run=run.id) if isinstance(event, RunStarted) else event for event in late]
        store.record_events(run.id, late[:40])
    app = EmmyApp(DatabaseSource(path), bite_s=60.0)
    async with running(app, (160, 45)) as pilot:
        await awaited(pilot, lambda: app.view.lost)
        with Store.open(path) as store:
            assert [word for _, word in listed(app, store)] == [WITHOUT_A_WORD]
            store.record_events(run.id, late[40:60])
        await awaited(pilot, lambda: not app.view.lost)
        with Store.open(path, read_only=True) as store:
            assert [word for _, word in listed(app, store)] == ["running"]
            assert [word for _, word in listed_runs(store, app.view.now)] == [WITHOUT_A_WORD]


def listed(app: EmmyApp, store: Store) -> list[tuple[StoredRun, str]]:
    return listed_runs(store, app.view.now, app.view.followed, lost=app.view.lost)


async def test_no_kernel_of_a_run_that_died_is_tuned(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    begun = next(place for place, event in enumerate(EVENTS) if isinstance(event, KernelStarted))
    died = EVENTS[: begun + 2]
    record(path, died, ended=False)
    app = application(DatabaseSource(path))
    async with running(app, (220, 45)) as pilot:
        await awaited(pilot, lambda: app.view.lost)
        await awaited(pilot, lambda: "cut off" in screen_text(app))
        assert "tuning" not in screen_text(app)
        with Store.open(path) as store:
            store.record_events(store.runs()[0].id, [Logged(at=time.time(), level="info", text="here I am")])
        await awaited(pilot, lambda: "tuning" in screen_text(app))
    assert "cut off" in frame(died, path, ascii_only=True, lost=True)


def test_a_newer_run_or_an_end_cuts_off_what_was_tuned() -> None:
    begun = next(place for place, event in enumerate(EVENTS) if isinstance(event, KernelStarted))
    started = next(event for event in EVENTS if isinstance(event, RunStarted))
    for after in (replace(started, run="2"), StateChanged(at=started.at, state=RunState.STOPPED)):
        snapshot = Snapshot()
        for event in EVENTS[: begun + 1]:
            apply(snapshot, event)
        (row,) = (row for row in snapshot.kernels.values() if row.state == KernelState.TUNING)
        apply(snapshot, after)
        assert row.state == KernelState.CUT_OFF
