"""A clock that is set back, that of who looks or that of who writes: no badge lies by it, and no time is negative."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emmy_tui.action import TABS
from emmy_tui.app import EmmyApp
from emmy_tui.database_source import SILENT_S, DatabaseSource
from emmy_tui.run_clock import RunClock
from emmy_tui.run_source import RunSource
from emmy_tui.run_state import GONE_S, Listener, Onward
from engine.events import Event, Logged, RunFinished, RunStarted, RunState, StateChanged
from engine.store import Store
from tests.emmy_tui.looking import running, screen_text
from tests.emmy_tui.measured import fill, press
from tests.emmy_tui.recorded import record
from tests.emmy_tui.scripted import search_events
from tests.emmy_tui.test_empty_database import until as awaited
from tests.emmy_tui.test_source import until

EVENTS = search_events()
BEGUN = EVENTS[:40]
SAID_AT = max(event.at for event in BEGUN)
HOUR = 3600.0
NEGATIVE = re.compile(r"(?<![\w.])-\d+(\.\d+)? ?(s|m|h|d|min)\b|-\d\d:\d\d|-\d+ (seconds|minutes|hours|days)")
STEPS = st.lists(st.tuples(st.floats(0.0, 1e4), st.floats(0.0, 1e6)), max_size=30)
"""Seconds that pass between two looks, and by how many the clock is set back at the end of them."""


@given(STEPS)
def test_what_has_passed_is_never_less_than_before_and_never_more_than_has_passed(
    steps: list[tuple[float, float]],
) -> None:
    onward, clock = Onward(), SAID_AT
    at = [onward.at(clock)]
    for passes, back in steps:
        clock += passes
        at.append(onward.at(clock))
        assert at[-1] - at[-2] == pytest.approx(passes, abs=1e-3)
        clock -= back
        at.append(onward.at(clock))
        assert at[-1] == pytest.approx(at[-2], abs=1e-3)
        assert at[-1] >= at[0]


def test_two_threads_that_look_at_it_see_it_go_on() -> None:
    onward, clock = Onward(), [SAID_AT]

    def look() -> None:
        for _ in range(2000):
            onward.at(clock[0])

    others = [threading.Thread(target=look) for _ in range(3)]
    for other in others:
        other.start()
    clock[0] -= HOUR
    for other in others:
        other.join()
    assert onward.at(clock[0]) == SAID_AT


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.sampled_from([None, *RunState])), max_size=40))
def test_a_run_has_never_taken_less_than_no_time(told: list[tuple[float, RunState | None]]) -> None:
    clock, at = RunClock(), SAID_AT
    clock.note(next(event for event in EVENTS if isinstance(event, RunStarted)))
    for moves, state in told:
        at += moves
        event: Event = Logged(at=at, level="info", text="")
        clock.note(event if state is None else StateChanged(at=at, state=state))
        for now in (at, None):
            elapsed = clock.elapsed_s(now)
            assert elapsed is not None
            assert elapsed >= 0.0


class Clock:
    """One that is set by a test."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@contextmanager
def following(path: Path, clock: Clock) -> Iterator[DatabaseSource]:
    """A source that has read all of a run that goes on."""
    source = DatabaseSource(path, clock=clock)
    try:
        until(lambda: source.drain(500) == [] and not source.reading)
        yield source
    finally:
        source.close()


def go_on(path: Path, source: DatabaseSource, events: Sequence[Event]) -> None:
    """The run writes again, and is read."""
    with Store.open(path) as store:
        store.record_events(store.runs()[-1].id, events)
    until(lambda: bool(source.drain(500)))
    until(lambda: source.drain(500) == [])


@pytest.mark.parametrize("back", [1.0, 90.0, HOUR, 400 * 86400.0])
def test_a_writer_that_is_silent_stays_so(tmp_path: Path, back: float) -> None:
    path = tmp_path / "tune.db"
    record(path, BEGUN, ended=False)
    clock = Clock(SAID_AT + 1200)
    with following(path, clock) as source:
        assert (source.badges, source.lost, source.heard_s) == (("WRITER SILENT 20m",), True, None)
        clock.now -= back
        assert (source.badges, source.lost, source.heard_s) == (("WRITER SILENT 20m",), True, None)
        clock.now += 120
        assert source.badges == ("WRITER SILENT 22m",)


@pytest.mark.parametrize("back", [1.0, 90.0, HOUR, 400 * 86400.0])
def test_silence_is_said_when_it_is_and_goes_with_the_next_word(tmp_path: Path, back: float) -> None:
    path = tmp_path / "tune.db"
    record(path, BEGUN, ended=False)
    clock = Clock(SAID_AT + 30)
    with following(path, clock) as source:
        assert (source.badges, source.heard_s) == ((), 30.0)
        clock.now -= back
        assert source.heard_s == pytest.approx(30.0)
        clock.now += SILENT_S - 30
        assert (source.badges, source.heard_s) == ((), pytest.approx(SILENT_S))
        clock.now += 1
        assert source.badges == ("WRITER SILENT 1m",)
        clock.now -= back
        assert source.badges == ("WRITER SILENT 1m",)
        go_on(path, source, EVENTS[40:60])
        assert (source.badges, source.heard_s, source.lost) == ((), 0.0, False)
        clock.now -= back
        assert (source.badges, source.heard_s) == ((), 0.0)
        clock.now += GONE_S + 1
        assert (source.badges, source.lost) == (("WRITER SILENT 10m",), True)


def test_a_run_that_begins_after_the_clock_was_set_back_is_heard_of(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    record(path, BEGUN, ended=False)
    clock = Clock(SAID_AT + 1200)
    with following(path, clock) as source:
        assert source.badges == ("WRITER SILENT 20m",)
        clock.now = SAID_AT - HOUR
        assert source.badges == ("WRITER SILENT 20m",)
        later = [replace(event, at=event.at - HOUR) for event in BEGUN if not isinstance(event, RunStarted)]
        record(path, later, ended=False, target="newer")
        until(lambda: source.drain(500) == [] and not source.reading and source.badges == ())
        assert source.heard_s is not None
        assert source.heard_s <= SILENT_S


@pytest.mark.parametrize("back", [90.0, HOUR])
def test_a_listener_counts_on(tmp_path: Path, back: float) -> None:
    path = tmp_path / "tune.db"
    record(path, BEGUN, ended=False)
    now = SAID_AT + 1
    with Store.open(path) as store:
        (run,) = store.runs()
        listener = Listener(run)
        assert not listener.lost(store, now)
        assert listener.lost(store, now + GONE_S)
        assert listener.lost(store, now + GONE_S - back)
        told = [replace(event, at=event.at - HOUR) for event in EVENTS[40:60]]  # by a clock that was set back as well
        store.record_events(run.id, told)
        assert not listener.lost(store, now + GONE_S - back)
        assert not listener.lost(store, now + 2 * GONE_S - back)
        assert listener.lost(store, now + 2 * GONE_S - back + 1)


def test_of_a_writer_whose_clock_was_set_back_the_last_word_counts(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    record(path, BEGUN[:20] + [replace(event, at=event.at - HOUR) for event in BEGUN[20:]], ended=False)
    with following(path, Clock(SAID_AT - HOUR + 50)) as source:
        assert source.heard_s == pytest.approx(50.0)


def jolted(events: Sequence[Event]) -> list[Event]:
    """Told by a clock that is set back by an hour again and again."""
    told = [replace(event, at=event.at - HOUR * (place // 25)) for place, event in enumerate(events)]
    return [replace(event, wall_s=-HOUR) if isinstance(event, RunFinished) else event for event in told]


@pytest.mark.parametrize("ended", [True, False])
async def test_nothing_on_the_screen_is_negative(tmp_path: Path, *, ended: bool) -> None:
    path = fill(tmp_path / "tune.db", rows=8)
    record(path, jolted(EVENTS if ended else EVENTS[:120]), ended=ended)
    clock = Clock(max(event.at for event in EVENTS) + 20)
    with Store.open(path, read_only=True) as store:
        sources = (DatabaseSource(path, clock=clock), RunSource(path, store.runs()[-1]))
    for source in sources:
        app = EmmyApp(source, clock=clock, bite_s=60.0)
        async with running(app, (200, 50)) as pilot:
            await awaited(pilot, lambda app=app: not app.view.reading)
            for number in range(1, len(TABS) + 1):
                await press(app, pilot, str(number))
                clock.now -= HOUR
                app.tick()
                await pilot.pause()
                assert not NEGATIVE.search(screen_text(app)), screen_text(app)
