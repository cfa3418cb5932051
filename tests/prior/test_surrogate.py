from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.prior import Surrogate
from engine.prior.surrogate import START, log_expected_improvement
from engine.search import EnumeratedSpace, Search, StopReason
from engine.tune.scoring import LearningSearch
from engine.vocabulary import KnobValue, Option, Schedule

Knobs = dict[str, KnobValue]
GRID: list[Knobs] = [
    {"block": block, "warps": warps, "stages": stages, "swizzle": swizzle}
    for block, warps, stages, swizzle in product((16, 32, 64, 128, 256), (1, 2, 4, 8), (1, 2, 3, 4, 5), (False, True))
]


def walk(candidates: list[Knobs], us: Callable[[Knobs], float | None], seed: int = 0, patience: int = 400) -> Search:
    """A learning search driven to its end."""
    search = LearningSearch(EnumeratedSpace(candidates), Surrogate(candidates, seed=seed), patience=patience)
    while (proposal := search.ask()) is not None:
        time = us(proposal.knobs)
        search.tell(proposal, None if time is None else 1 / time)
    return search


def smooth(knobs: Knobs) -> float:
    return 10 + abs(math.log2(int(knobs["block"])) - 7) + abs(int(knobs["stages"]) - 4) + 3 * (knobs["warps"] != 4)


def test_it_finds_the_best_sooner_than_chance() -> None:
    best = min(map(smooth, GRID))
    needed = []
    for seed in range(3):
        search = walk(GRID, smooth, seed, patience=25)
        assert search.best is not None
        assert 1 / search.best.reward == pytest.approx(best)
        needed.append(search.best.proposal.number)
    chance = (len(GRID) + 1) / (1 + sum(smooth(knobs) == best for knobs in GRID))
    assert sorted(needed)[1] < chance


def path_of(seed: int, candidates: list[Knobs]) -> list[str]:
    seen: list[str] = []

    def us(knobs: Knobs) -> float:
        seen.append(Schedule.of(knobs).key)
        return smooth(knobs)

    walk(candidates, us, seed, patience=30)
    return seen


def test_same_seed_same_path_whatever_the_order_of_candidates() -> None:
    first = path_of(3, GRID)
    assert first == path_of(3, GRID)
    assert first == path_of(3, list(reversed(GRID)))
    assert first != path_of(4, GRID)


@pytest.mark.parametrize("us", [lambda knobs: 5.0, lambda knobs: None], ids=["all equal", "all fail"])
def test_a_flat_landscape_ends_with_patience_or_with_everything_tried(us: Callable[[Knobs], float | None]) -> None:
    search = walk(GRID, us, patience=50)
    assert search.stopped is StopReason.PATIENCE
    assert not search.root.exhausted
    few = GRID[:30]
    assert walk(few, us, patience=50).stopped is StopReason.EXHAUSTED


def test_one_that_works_among_failures_is_found_or_the_search_says_that_it_gave_up() -> None:
    needle = GRID[137]
    search = walk(GRID, lambda knobs: 1.0 if knobs == needle else None, patience=len(GRID))
    assert search.best is not None
    assert search.best.proposal.knobs == needle
    given_up = walk(GRID, lambda knobs: 1.0 if knobs == needle else None, patience=25)
    assert given_up.stopped is StopReason.PATIENCE
    assert given_up.best is not None or (given_up.decided == 25 and not given_up.root.exhausted)


def deceptive(knobs: Knobs) -> float:
    """A broad basin at small blocks without swizzle that ends at 10.125, and one narrow good place far from it."""
    if knobs["block"] == 256 and knobs["warps"] == 8 and knobs["swizzle"]:
        return 5.0 + abs(int(knobs["stages"]) - 3)
    return 10 + math.log2(int(knobs["block"]) / 16) + int(knobs["warps"]) / 8 + 4 * bool(knobs["swizzle"])


def test_a_narrow_good_place_is_found_within_the_bound_of_chance() -> None:
    found = []
    for seed in range(2):
        search = walk(GRID, deceptive, seed, patience=100)
        assert search.best is not None
        assert 1 / search.best.reward <= 10.125  # never worse than the broad basin's end
        found.append(1 / search.best.reward == pytest.approx(5.0))
    assert all(found)


def test_dead_regions_are_learned() -> None:
    """Fast on paper and always failing: the forest of times would go there, the forest of failures keeps away."""
    surrogate = Surrogate(GRID)
    options = [Option((("block", block),)) for block in (64, 256)]
    for knobs in GRID[: 4 * START : 2] + GRID[-START * 2 :: 2]:
        surrogate.learn(knobs, None if knobs["block"] == 256 else 100 / int(knobs["block"]))
    slow, dead = surrogate.speeds({}, options)
    assert (slow, dead < 0.01) == (1.0, True)


def test_a_prior_decides_until_there_are_answers() -> None:
    predicted = [math.log(smooth(knobs)) for knobs in GRID]
    surrogate = Surrogate(GRID, predicted)
    options = [Option((("warps", warps),)) for warps in (1, 2, 4, 8)]
    speeds = surrogate.speeds({"block": 64}, options)
    wanted = [1 / min(smooth(k) for k in GRID if k["block"] == 64 and k["warps"] == w) for w in (1, 2, 4, 8)]
    assert speeds == pytest.approx([value / max(wanted) for value in wanted])


def test_what_was_begun_is_not_proposed_until_it_is_released() -> None:
    candidates: list[Knobs] = [{"a": 1}, {"a": 2}]
    surrogate = Surrogate(candidates)
    options = [Option((("a", 1),)), Option((("a", 2),)), Option((("a", 9),))]
    surrogate.begin({"a": 1})
    assert [math.isnan(speed) for speed in surrogate.speeds({}, options)] == [True, False, True]
    surrogate.release({"a": 1})
    assert [math.isnan(speed) for speed in surrogate.speeds({}, options)] == [False, False, True]
    surrogate.learn({"a": 1}, 3.0)
    surrogate.release({"a": 1})
    surrogate.learn({"a": 9}, 3.0)
    assert math.isnan(surrogate.speeds({}, options)[0])
    for us in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="finite"):
            surrogate.learn({"a": 2}, us)


@settings(deadline=None, max_examples=6)
@given(st.lists(st.none() | st.floats(1e-3, 1e6), min_size=len(GRID), max_size=len(GRID)), st.integers(0, 3))
def test_speeds_are_sound_on_any_landscape(times: list[float | None], seed: int) -> None:
    surrogate = Surrogate(GRID, seed=seed)
    options = [Option((("block", block),)) for block in (16, 32, 64, 128, 256)]
    for knobs, us in list(zip(GRID, times, strict=True))[: START + 4]:
        surrogate.learn(knobs, us)
        speeds = surrogate.speeds({}, options)
        assert all(math.isnan(speed) or 0 <= speed <= 1 for speed in speeds)
        assert max(speed for speed in speeds if not math.isnan(speed)) == 1.0


def test_expected_improvement_never_saturates() -> None:
    means = np.linspace(-1, 60, 200)
    worth = log_expected_improvement(0.0, means, np.full(200, 0.5))
    assert np.isfinite(worth).all()
    assert (np.diff(worth) < 0).all()
    assert worth[0] == pytest.approx(math.log(0.5 * (2 * 0.97724987 + 0.05399097)), rel=1e-6)


def test_what_is_like_a_candidate_in_flight_waits_for_its_answer() -> None:
    """After a fit, a begun candidate lowers the worth of those that the forest holds to be like it, and of no other."""
    candidates: list[dict[str, KnobValue]] = [{"a": a, "b": b} for a in range(8) for b in range(8)]
    surrogate = Surrogate(candidates)
    for number, knobs in enumerate(candidates):
        if number % 3 == 0:
            surrogate.learn(knobs, 1.0 + abs(int(str(knobs["a"])) - 5))
    options = [Option(tuple(sorted(knobs.items()))) for knobs in candidates]
    before = surrogate.speeds({}, options)
    likely = max((i for i in range(len(before)) if not math.isnan(before[i])), key=before.__getitem__)
    surrogate.begin(candidates[likely])
    after = surrogate.speeds({}, options)
    assert math.isnan(after[likely])
    best = max((i for i in range(len(after)) if not math.isnan(after[i])), key=after.__getitem__)
    assert candidates[best] != candidates[likely]
    surrogate.release(candidates[likely])
    assert not math.isnan(surrogate.speeds({}, options)[likely])
