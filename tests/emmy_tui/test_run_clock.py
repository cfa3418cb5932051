from __future__ import annotations

from dataclasses import replace

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
