from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.search import Node, Path, Proposal, Search, StopReason
from tests.search.toys import (
    GridSpace,
    TreeSpace,
    all_nodes,
    drive,
    hashed,
    hashed_scorer,
    no_opinion,
)

KNOBS = {"BLOCK_M": (16, 32, 64), "BLOCK_N": (16, 32, 64), "NUM_WARPS": (1, 2, 4, 8)}
LEAVES = 36


def too_wide(knobs: dict[str, int]) -> bool:
    return knobs.get("BLOCK_M", 0) * knobs.get("BLOCK_N", 0) * knobs.get("NUM_WARPS", 1) > 4096


def some_fail(knobs: dict[str, int]) -> float | None:
    value = hashed(knobs)
    return None if value < 0.3 else value


@st.composite
def searches(draw: st.DrawFn) -> tuple[Search, str]:
    salt = draw(st.text(max_size=3))
    space = GridSpace(
        {name: KNOBS[name] for name in draw(st.lists(st.sampled_from(sorted(KNOBS)), unique=True, max_size=3))},
        illegal=lambda knobs: hashed(knobs, salt) < 0.2,
    )
    patience = draw(st.integers(1, 40))
    limit = draw(st.none() | st.integers(0, 40))
    return Search(space, draw(st.sampled_from([no_opinion, hashed_scorer])), patience=patience, limit=limit), salt


@given(searches(), st.integers(1, 20))
def test_every_leaf_is_asked_at_most_once_and_the_counts_add_up(built: tuple[Search, str], window: int) -> None:
    search, salt = built
    asked = drive(search, lambda knobs: None if hashed(knobs, salt) < 0.4 else hashed(knobs, salt), window)
    assert len({repr(p.knobs) for p in asked}) == len(asked) == search.decided
    assert search.stopped is not None
    assert search.root.visits == search.decided + search.dead_ends
    for node in all_nodes(search):
        assert node.in_flight == 0
        if node.children:
            assert node.visits == sum(child.visits for child in node.children)
            rewards = [child.best_reward for child in node.children if child.best_reward]
            assert node.best_reward == max(rewards, default=None)
        else:
            assert node.visits <= 1


@given(searches(), st.integers(1, 20), st.randoms(use_true_random=False))
def test_told_in_the_order_asked_the_order_of_completion_is_invisible(
    built: tuple[Search, str], window: int, rng: random.Random
) -> None:
    search, salt = built
    twin = Search(search._space, search._scorer, patience=search.patience, limit=search._limit)
    straight = [p.knobs for p in drive(search, lambda knobs: hashed(knobs, salt), window)]
    flight: list[Proposal] = []
    done: dict[int, float] = {}
    asked = []
    while True:
        while len(flight) < window and (proposal := twin.ask()) is not None:
            flight.append(proposal)
            asked.append(proposal.knobs)
        if not flight:
            break
        while flight[0].number not in done:
            finished = rng.choice([p for p in flight if p.number not in done])
            done[finished.number] = hashed(finished.knobs, salt)
        head = flight.pop(0)
        twin.tell(head, done[head.number])
    assert asked == straight
    assert twin.stopped == search.stopped


@given(st.integers(1, 16), st.lists(st.integers(0, 15), max_size=60))
def test_tells_in_any_order_keep_the_counts(window: int, picks: list[int]) -> None:
    search = Search(GridSpace(KNOBS), hashed_scorer, patience=LEAVES)
    flight: list[Proposal] = []
    for pick in picks:
        while len(flight) < window and (proposal := search.ask()) is not None:
            flight.append(proposal)
        if not flight:
            break
        proposal = flight.pop(pick % len(flight))
        search.tell(proposal, hashed(proposal.knobs))
        assert search.in_flight == tuple(sorted(flight, key=lambda p: p.number))
        assert search.root.in_flight == len(flight)
        assert search.root.visits == search.decided


def test_virtual_loss_spreads_a_window() -> None:
    search = Search(GridSpace(KNOBS), no_opinion, patience=LEAVES)
    window = [search.ask() for _ in range(9)]
    assert len({(p.knobs["BLOCK_M"], p.knobs["BLOCK_N"]) for p in window if p}) == 9


def test_a_window_of_sixteen_finds_what_a_window_of_one_finds() -> None:
    best = max(
        hashed({"BLOCK_M": m, "BLOCK_N": n, "NUM_WARPS": w})
        for m in (16, 32, 64)
        for n in (16, 32, 64)
        for w in (1, 2, 4, 8)
    )
    for window in (1, 16):
        search = Search(GridSpace(KNOBS), hashed_scorer, patience=LEAVES)
        assert len(drive(search, hashed, window)) == LEAVES
        assert search.best is not None
        assert search.best.reward == best
        assert search.stopped is StopReason.EXHAUSTED


@pytest.mark.parametrize("window", [1, 3, 16])
def test_exactly_patience_answers_follow_the_last_best_whatever_the_window(window: int) -> None:
    answers: list[float | None] = [1.0, 2.0, None, 3.0]

    def reward(knobs: object) -> float | None:
        told.append(answers[len(told)] if len(told) < len(answers) else 0.5)
        return told[-1]

    told: list[float | None] = []
    search = Search(GridSpace(KNOBS), no_opinion, patience=10)
    drive(search, reward, window)
    assert search.stopped is StopReason.PATIENCE
    assert search.decided == 4 + 10
    assert search.since_best == 10


def test_an_equal_reward_is_no_new_best() -> None:
    search = Search(GridSpace(KNOBS), no_opinion, patience=5)
    drive(search, lambda knobs: 1.0)
    assert search.decided == 1 + 5
    assert search.best is not None
    assert search.best.proposal.number == 1


def test_a_late_best_from_flight_goes_on_with_a_search_that_waited() -> None:
    search = Search(GridSpace(KNOBS), no_opinion, patience=2)
    first, second = search.ask(), search.ask()
    assert first
    assert second
    assert search.ask() is None
    assert search.stopped is None
    assert search.tell(first, 1.0)
    third = search.ask()
    assert third
    assert not search.tell(second, 0.5)
    assert search.ask() is None
    assert search.stopped is None
    assert search.tell(third, 2.0)
    assert search.since_best == 0
    assert search.ask() is not None


def test_a_limit_is_never_passed() -> None:
    search = Search(GridSpace(KNOBS), no_opinion, limit=7)
    assert len(drive(search, hashed, window=16)) == 7
    assert search.stopped is StopReason.LIMIT
    assert Search(GridSpace(KNOBS), no_opinion, limit=0).stopped is StopReason.LIMIT


def test_a_dead_end_counts_toward_patience_once_and_leaves_the_tree() -> None:
    space = TreeSpace({"A=1": {"B=1": {}, "B=2": {}}, "A=2": {"B=1": None, "B=2": None}})
    search = Search(space, no_opinion, patience=50)
    assert len(drive(search, lambda knobs: 1.0)) == 2
    assert search.dead_ends == 2
    assert search.root.visits == 4
    assert search.stopped is StopReason.EXHAUSTED


def test_dead_ends_alone_use_up_patience() -> None:
    search = Search(TreeSpace({f"A={i}": {} for i in range(9)}), no_opinion, patience=4)
    assert search.ask() is None
    assert search.stopped is StopReason.PATIENCE
    assert search.dead_ends == search.since_best == 4
    assert search.failures_before_success == 0


def test_a_duplicate_is_proposed_once_and_costs_no_patience() -> None:
    space = TreeSpace({"A=1": {"B=1": None, "B=2": None}, "B=1": {"A=1": None, "A=2": None}})
    search = Search(space, no_opinion, patience=50)
    asked = drive(search, lambda knobs: 1.0)
    assert sorted(repr(sorted(p.knobs.items())) for p in asked) == [
        "[('A', 1), ('B', 1)]",
        "[('A', 1), ('B', 2)]",
        "[('A', 2), ('B', 1)]",
    ]
    assert search.duplicates == 1
    assert search.since_best == 2
    assert search.root.visits == 3


def test_a_space_that_is_decided_from_the_start_is_one_candidate() -> None:
    search = Search(TreeSpace(None), no_opinion)
    proposal = search.ask()
    assert proposal is not None
    assert proposal.path == ()
    assert search.ask() is None
    assert search.stopped is None
    search.tell(proposal, 1.0)
    assert search.stopped is StopReason.EXHAUSTED


def test_an_empty_space_is_exhausted_without_an_answer() -> None:
    search = Search(TreeSpace({}), no_opinion)
    assert search.ask() is None
    assert search.stopped is StopReason.EXHAUSTED
    assert search.dead_ends == 1


def test_what_is_forbidden_is_never_proposed_even_when_banned_on_the_way() -> None:
    banned = {64}

    def forbidden(path: Path) -> bool:
        return any(option.knobs == (("BLOCK_M", m),) for option in path for m in banned)

    search = Search(GridSpace(KNOBS), no_opinion, forbidden=forbidden, patience=LEAVES)
    first = search.ask()
    assert first is not None
    search.tell(first, 1.0)
    banned.add(16)
    rest = drive(search, lambda knobs: 0.5)
    assert {p.knobs["BLOCK_M"] for p in rest} == {32}
    assert len(rest) == 12
    assert search.stopped is StopReason.EXHAUSTED
    assert Search(GridSpace(KNOBS), no_opinion, forbidden=lambda path: True).ask() is None


def test_a_skipped_candidate_counts_toward_nothing_and_does_not_return() -> None:
    search = Search(GridSpace(KNOBS), no_opinion, patience=LEAVES)
    skipped = search.ask()
    assert skipped is not None
    search.skip(skipped)
    assert (search.decided, search.since_best, search.root.visits, search.root.in_flight) == (0, 0, 0, 0)
    asked = drive(search, hashed)
    assert len(asked) == LEAVES - 1
    assert skipped.knobs not in [p.knobs for p in asked]


def test_wrong_answers_are_refused() -> None:
    search = Search(GridSpace(KNOBS), no_opinion)
    proposal = search.ask()
    assert proposal is not None
    for reward in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="above 0"):
            search.tell(proposal, reward)
    search.tell(proposal, 1.0)
    with pytest.raises(ValueError, match="not in flight"):
        search.tell(proposal, 1.0)
    stranger = Search(GridSpace(KNOBS), no_opinion).ask()
    assert stranger is not None
    with pytest.raises(ValueError, match="not in flight"):
        search.skip(stranger)


@pytest.mark.parametrize(
    ("settings", "text"),
    [({"patience": 0}, "patience"), ({"exploration": math.nan}, "exploration"), ({"limit": -1}, "limit")],
)
def test_settings_without_sense_are_refused(settings: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Search(GridSpace(KNOBS), no_opinion, **settings)  # type: ignore[arg-type]


def test_a_scorer_that_answers_too_little_is_named() -> None:
    with pytest.raises(ValueError, match="1 speeds for 3 options of BLOCK_M"):
        Search(GridSpace(KNOBS), lambda path, options: [1.0]).ask()


def test_the_prior_is_asked_once_a_sibling_set() -> None:
    calls: list[Path] = []

    def scorer(path: Path, options: object) -> list[float]:
        calls.append(path)
        return hashed_scorer(path, options)  # type: ignore[arg-type, return-value]

    space = GridSpace(KNOBS)
    search = Search(space, scorer, patience=LEAVES)
    drive(search, hashed)
    assert len(calls) == len(set(calls)) == 1 + 3 + 9
    assert len(space.asked) == len(set(space.asked)) == 1 + 3 + 9 + LEAVES


def test_an_untried_sibling_without_promise_is_left_alone() -> None:
    """There is no forced expansion: five branches the prior finds hopeless stay untouched by twenty candidates."""
    space = GridSpace({"A": range(6), "B": range(40)})

    def scorer(path: Path, options: list[object]) -> list[float]:
        return [1.0] * len(options) if path else [1.0] + [1e-3] * 5

    search = Search(space, scorer, limit=20)  # type: ignore[arg-type]
    assert {p.knobs["A"] for p in drive(search, lambda knobs: 1.0)} == {0}


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_emission_order_of_options_does_not_matter(salt: int) -> None:
    paths = []
    for reverse in (False, True):
        search = Search(GridSpace(KNOBS, reverse=reverse), no_opinion, patience=LEAVES)
        asked: list[Node] = [p.node for p in drive(search, lambda knobs: hashed(knobs, str(salt)), 3)]
        paths.append([node.path for node in asked])
    assert paths[0] == paths[1]
