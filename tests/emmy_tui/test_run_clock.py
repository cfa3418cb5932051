from __future__ import annotations

from dataclasses import replace

import pytest

from emmy_tui.run_clock import RunClock
from engine.events import Event, Logged, RunStarted, RunState, StateChanged
from tests.emmy_tui.scripted import search_events

STARTED = next(event for event in search_events() if isinstance(event, RunStarted))


def started(at: float) -> RunStarted:
    return replace(STARTED, at=at)


def state(at: float, state: RunState) -> StateChanged:
    return StateChanged(at=at, state=state)


def said(at: float) -> Logged:
    return Logged(at=at, level="info", text="")


def after(*events: Event) -> RunClock:
    clock = RunClock()
    for event in events:
        clock.note(event)
    return clock


def test_there_is_no_time_before_a_run_starts() -> None:
    assert after(state(3, RunState.CAPTURING), said(4)).elapsed_s(9) is None


def test_it_runs_to_now_or_to_the_last_event() -> None:
    clock = after(started(10), said(14))
    assert clock.elapsed_s() == 4
    assert clock.elapsed_s(19) == 9


def test_it_stands_still_while_paused_and_goes_on() -> None:
    clock = after(started(10), state(15, RunState.PAUSED), said(16))
    assert clock.elapsed_s(99) == 5
    clock.note(state(100, RunState.RUNNING))
    assert clock.elapsed_s(103) == 8


def test_it_does_not_restart_at_the_next_program_of_a_replay() -> None:
    clock = after(started(10), said(20), state(20, RunState.RUNNING), started(20))
    assert clock.elapsed_s(25) == 15


def test_time_between_the_runs_of_a_database_does_not_count() -> None:
    clock = after(started(10), said(20), started(5000), said(5003), state(5004, RunState.FINISHED), said(5005))
    assert clock.elapsed_s(9999) == 14


def test_it_never_goes_back_by_the_news_of_a_pause_or_a_frozen_view() -> None:
    clock = after(started(10), said(14))
    assert clock.elapsed_s(21) == 11
    assert clock.elapsed_s() == 11, "a frozen view stops where it is"
    clock.note(state(20.2, RunState.PAUSED))
    assert clock.elapsed_s(99) == 11
    clock.note(state(100, RunState.RUNNING))
    assert clock.elapsed_s(100.5) == 11
    assert clock.elapsed_s(102) == pytest.approx(12.2)


def test_a_clock_that_was_set_is_forgotten_at_the_end() -> None:
    clock = after(started(10))
    assert clock.elapsed_s(9999) == 9989
    clock.note(state(20, RunState.FINISHED))
    assert clock.elapsed_s() == 10
