from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.search.action_selection import normalized_priors, preference, puct

speeds = st.lists(st.one_of(st.floats(1e-300, 1e300), st.just(math.nan), st.just(math.inf)), min_size=1, max_size=20)


def test_puct_is_the_formula() -> None:
    assert puct(0.5, 0.25, 8, 2, 2.0) == pytest.approx(0.5 + 2.0 * 0.25 * 3.0 / 3.0)


def test_an_unvisited_child_has_a_finite_score() -> None:
    assert puct(0.0, 1.0, 0, 0, math.sqrt(2)) == pytest.approx(math.sqrt(2))


@given(st.floats(0, 1), st.floats(0.01, 1), st.integers(0, 10**6), st.integers(0, 10**6))
def test_visits_lower_a_score_and_a_better_prior_raises_it(q: float, p: float, parent: int, visits: int) -> None:
    score = puct(q, p, parent, visits, 1.4)
    assert puct(q, p, parent, visits + 1, 1.4) <= score
    assert puct(q, p / 2, parent, visits, 1.4) <= score


@given(speeds)
def test_the_best_sibling_has_one_and_no_prior_leaves_the_unit_interval(values: list[float]) -> None:
    priors = normalized_priors(values)
    assert max(priors) == 1.0
    assert all(0.0 <= p <= 1.0 for p in priors)


@given(speeds, st.floats(1e-3, 1e3))
def test_the_unit_of_speed_does_not_matter(values: list[float], unit: float) -> None:
    values = [v for v in values if 1e-200 < v < 1e200] or [1.0]
    assert normalized_priors([v * unit for v in values]) == pytest.approx(normalized_priors(values))


def test_no_opinion_counts_as_the_best() -> None:
    assert normalized_priors([2.0, math.nan, 1.0]) == [1.0, 1.0, 0.5]
    assert normalized_priors([math.nan, math.nan]) == [1.0, 1.0]
    assert normalized_priors([3.0, 3.0]) == [1.0, 1.0]
    assert normalized_priors([0.0, 0.0]) == [1.0, 1.0]


def test_a_negative_speed_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        normalized_priors([1.0, -0.5])


def test_speeds_too_far_apart_for_a_share_still_rank() -> None:
    values = [1e-320, 1e-310, 1e300, 1e-315]
    assert normalized_priors(values)[:2] == [0.0, 0.0]
    assert preference(values) == [2, 1, 3, 0]


def test_equal_speeds_keep_their_order() -> None:
    assert preference([1.0, 2.0, 1.0, 2.0, math.nan]) == [1, 3, 4, 0, 2]
