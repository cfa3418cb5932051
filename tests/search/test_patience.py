from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.search.patience import StopReason, may_propose, stop_reason

counts = st.integers(0, 100)


def test_nothing_stops_while_a_proposal_is_in_flight() -> None:
    assert stop_reason(exhausted=True, since_best=99, decided=99, in_flight=1, patience=5, limit=5) is None


def test_running_out_is_named_before_limit_and_patience() -> None:
    reason = stop_reason(exhausted=True, since_best=9, decided=9, in_flight=0, patience=9, limit=9)
    assert reason is StopReason.EXHAUSTED
    reason = stop_reason(exhausted=False, since_best=9, decided=9, in_flight=0, patience=9, limit=9)
    assert reason is StopReason.LIMIT


@given(counts, counts, counts, st.integers(1, 100), st.none() | counts)
def test_with_nothing_in_flight_a_search_stops_exactly_when_it_may_not_propose(
    since_best: int, decided: int, in_flight: int, patience: int, limit: int | None
) -> None:
    proposes = may_propose(since_best=since_best, decided=decided, in_flight=0, patience=patience, limit=limit)
    stop = stop_reason(
        exhausted=False, since_best=since_best, decided=decided, in_flight=0, patience=patience, limit=limit
    )
    assert proposes == (stop is None)


def test_proposals_in_flight_are_held_against_patience() -> None:
    assert may_propose(since_best=3, decided=9, in_flight=1, patience=5, limit=None)
    assert not may_propose(since_best=3, decided=9, in_flight=2, patience=5, limit=None)
    assert not may_propose(since_best=0, decided=9, in_flight=1, patience=5, limit=10)
