from __future__ import annotations

from dataclasses import asdict

from hypothesis import given, settings
from hypothesis import strategies as st

from emmy_tui.feed import BITE_EVENTS, HELD_LIMIT, Feed
from emmy_tui.source import Anew, Mode
from engine.events import Logged, RunState, StateChanged
from engine.snapshot import Snapshot, apply
from tests.emmy_tui.scripted import START, ScriptedSource, failed_events, search_events


def test_a_feed_folds_what_its_source_sends() -> None:
    events = search_events()
    feed = Feed(ScriptedSource(events))
    while feed.bite():
        pass
    expected = Snapshot()
    for event in events:
        apply(expected, event)
    assert asdict(feed.snapshot) == asdict(expected)
    assert feed.state == RunState.FINISHED
    assert feed.take_touched() == set(expected.nodes)
    assert feed.take_touched() == set()


def test_one_bite_is_bounded() -> None:
    source = ScriptedSource([Logged(at=1, level="info", text=str(n)) for n in range(3 * BITE_EVENTS)])
    feed = Feed(source)
    assert feed.bite()
    assert len(source.waiting) >= 2 * BITE_EVENTS


def test_frozen_and_unfrozen_equals_never_frozen() -> None:
    events = search_events()
    frozen, unfrozen = Feed(ScriptedSource(events, per_drain=7)), Feed(ScriptedSource(events))
    for step in range(400):
        frozen.frozen = step % 5 < 3
        frozen.bite()
    frozen.frozen = False
    for feed in (frozen, unfrozen):
        for _ in range(400):
            feed.bite()
    assert frozen.held == 0
    assert asdict(frozen.snapshot) == asdict(unfrozen.snapshot)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    per_drain=st.integers(1, 700),
    holds=st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=12),
)
def test_any_freezes_leave_what_a_twin_without_them_shows(
    seed: int, per_drain: int, holds: list[tuple[bool, int]]
) -> None:
    events = search_events(seed)
    feed, twin = Feed(ScriptedSource(events, per_drain=per_drain)), Feed(ScriptedSource(events))
    for feed.frozen, bites in holds:
        for _ in range(bites):
            feed.bite()
    feed.frozen = False
    for one in (feed, twin):
        while one.bite() or one.source.waiting:
            pass
    assert feed.held == 0
    assert asdict(feed.snapshot) == asdict(twin.snapshot)
    assert (feed.state, feed.reason) == (twin.state, twin.reason)


def test_the_state_is_known_while_frozen() -> None:
    source = ScriptedSource([StateChanged(at=START, state=RunState.RUNNING)])
    feed = Feed(source)
    feed.bite()
    feed.frozen = True
    source.pause()
    feed.bite()
    assert feed.snapshot.state == RunState.RUNNING
    assert feed.state == RunState.PAUSED
    assert feed.held == 1


def test_holding_ends_at_the_limit() -> None:
    line = Logged(at=1, level="info", text="x")
    feed = Feed(ScriptedSource([line] * (HELD_LIMIT + 10)))
    feed.frozen = True
    while feed.frozen:
        feed.bite()
    assert feed.held <= HELD_LIMIT


def test_anew_begins_with_an_empty_snapshot() -> None:
    feed = Feed(ScriptedSource([*search_events(), Anew(at=START), *failed_events()]))
    while feed.bite():
        pass
    assert len(feed.snapshot.kernels) == 1
    assert feed.snapshot.failed == 9


def past_and_present() -> tuple[ScriptedSource, Feed, Snapshot]:
    """A database whose newer run came while a screen showed the older one; its events are still being read."""
    source = ScriptedSource(search_events(), mode=Mode.BROWSE, per_drain=5)
    feed = Feed(source)
    drained(feed)
    source.reading = True
    return source, feed, feed.snapshot


def drained(feed: Feed) -> None:
    while feed.bite():
        pass


def test_what_was_shown_stays_until_all_that_comes_anew_was_read() -> None:
    source, feed, before = past_and_present()
    source.add(Anew(at=START), *failed_events())
    drained(feed)
    assert feed.snapshot is before
    assert len(before.kernels) > 1
    assert feed.reading
    source.reading = False
    assert feed.reading, "what came is not shown yet"
    drained(feed)
    assert not feed.reading
    assert len(feed.snapshot.kernels) == 1
    assert feed.take_touched() == set(feed.snapshot.nodes)


def test_what_can_not_be_read_to_its_end_takes_nothing_away() -> None:
    source, feed, before = past_and_present()
    source.add(Anew(at=START), *failed_events()[:3])
    drained(feed)
    source.reading, source.trouble = False, "the file is damaged"
    drained(feed)
    assert feed.snapshot is before
    assert not feed.reading
    source.trouble = ""
    source.add(Anew(at=START), *failed_events())
    drained(feed)
    assert feed.snapshot.failed == 9


def test_a_frozen_view_does_not_wait_for_what_came_anew() -> None:
    source, feed, before = past_and_present()
    source.add(Anew(at=START))
    drained(feed)
    feed.frozen = True
    source.reading = False
    source.add(*failed_events())
    drained(feed)
    assert not feed.reading
    assert feed.snapshot is before
    feed.frozen = False
    drained(feed)
    assert len(feed.snapshot.kernels) == 1
