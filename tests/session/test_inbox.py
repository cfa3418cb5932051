"""A bounded inbox lets go of node visits alone, and counts them."""

from __future__ import annotations

from engine.events import Event, Logged, NodeVisited
from engine.session.inbox import Inbox


def visit(number: int) -> Event:
    return NodeVisited(at=0.0, node=str(number), visits=1, best_us=None, state="open")


def test_past_the_limit_visits_are_dropped_and_counted_and_nothing_else() -> None:
    inbox = Inbox(limit=3)
    line = Logged(at=1.0, level="info", text="kept")
    inbox.put_all([visit(0), visit(1)])
    inbox.put(visit(2))
    inbox.put(visit(3))
    inbox.put_all([line, visit(4)])
    assert inbox.dropped == 2
    assert inbox.drain(2) == [visit(0), visit(1)]
    assert inbox.drain(10) == [visit(2), line]
    assert inbox.drain(10) == []
