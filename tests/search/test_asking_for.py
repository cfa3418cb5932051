"""A caller may name the candidate: it is proposed as if the descent had come to it, once, and only if it is offered."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.search import EnumeratedSpace, Path, Search, StopReason
from engine.vocabulary import Option
from tests.search.toys import drive, hashed, no_opinion

LEAVES = [{"a": a, "b": b} for a in range(3) for b in range(3)]


def path_to(a: int, b: int) -> Path:
    return (Option((("a", a),)), Option((("b", b),)))


@given(st.permutations([(a, b) for a in range(3) for b in range(3)]), st.integers(0, 9))
def test_any_order_can_be_asked_for_and_the_rest_is_left(order: list[tuple[int, int]], named: int) -> None:
    search = Search(EnumeratedSpace(LEAVES), no_opinion, patience=50)
    for a, b in order[:named]:
        proposal = search.ask_for(path_to(a, b))
        assert proposal is not None
        assert proposal.knobs == {"a": a, "b": b}
        assert search.ask_for(path_to(a, b)) is None
        search.tell(proposal, hashed(proposal.knobs))
        assert search.ask_for(path_to(a, b)) is None
    left = drive(search, lambda knobs: hashed(knobs))
    assert sorted((p.knobs["a"], p.knobs["b"]) for p in left) == sorted(order[named:])
    assert search.stopped is StopReason.EXHAUSTED
    assert search.root.visits == search.decided == 9


def test_what_is_not_offered_or_forbidden_is_not_proposed() -> None:
    search = Search(EnumeratedSpace(LEAVES), no_opinion, forbidden=lambda path: path_to(1, 0)[:1] == path[:1])
    assert search.ask_for(path_to(7, 0)) is None
    assert search.ask_for(path_to(0, 0)[:1]) is None
    assert search.ask_for(path_to(1, 0)) is None
    assert search.ask_for(path_to(0, 0)) is not None


def test_patience_binds_what_is_asked_for_too() -> None:
    search = Search(EnumeratedSpace(LEAVES), no_opinion, patience=1)
    first = search.ask_for(path_to(2, 2))
    assert first is not None
    assert search.ask_for(path_to(0, 0)) is None
    search.tell(first, 1.0)
    second = search.ask_for(path_to(0, 0))
    assert second is not None
    search.tell(second, 0.5)
    assert search.ask_for(path_to(0, 1)) is None
    assert search.stopped is StopReason.PATIENCE
