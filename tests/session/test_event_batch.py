"""Events survive their way between two processes as they were."""

from __future__ import annotations

from engine.events import Logged, RunState, StateChanged
from engine.session.event_batch import pack_events, unpack_events
from tests.emmy_tui.scripted import COMPILING, failed_events, floors, search_events


def test_all_kinds_of_events_arrive_equal_and_in_order() -> None:
    events = [*search_events(), *failed_events(), *floors(), *COMPILING, Logged(at=1.0, level="error", text="ü\n\x00")]
    events.append(StateChanged(at=2.0, state=RunState.PAUSED, reason="as asked"))
    assert unpack_events(pack_events(events)) == events


def test_an_empty_batch() -> None:
    assert unpack_events(pack_events([])) == []
