"""The verdict on two kernels: against scipy where that knows the number, else against samples of a known truth."""

from __future__ import annotations

import math
import random
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from engine.measure.noise import (
    Verdict,
    apart,
    apart_margin,
    cohens_d,
    differences,
    holm,
    judged_apart,
    median_interval,
    noise_floor,
    welch,
)
from engine.vocabulary import Timing

TIMES = st.lists(st.floats(0.5, 1e4), min_size=2, max_size=30)


@settings(max_examples=60, deadline=None)
@given(TIMES, TIMES)
def test_welch_is_scipys(first: list[float], second: list[float]) -> None:
    found = welch(first, second)
    if max(first) - min(first) > 1e-6 and max(second) - min(second) > 1e-6:
        known = stats.ttest_ind(first, second, equal_var=False)
        assert found.p_value == pytest.approx(known.pvalue, rel=1e-6, abs=1e-12)
        assert found.degrees == pytest.approx(known.df, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(TIMES, TIMES)
def test_both_directions_say_the_same(first: list[float], second: list[float]) -> None:
    assert welch(first, second).p_value == welch(second, first).p_value
    assert cohens_d(first, second) == pytest.approx(-cohens_d(second, first))


def test_samples_without_spread_are_told_apart_by_their_means() -> None:
    assert welch([2.0, 2.0], [2.0, 2.0]).p_value == 1.0
    assert welch([2.0, 2.0], [1.0, 1.0]).p_value == 0.0
    assert cohens_d([2.0, 2.0], [1.0, 1.0]) == math.inf
    assert cohens_d([2.0, 2.0], [2.0, 2.0]) == 0.0


def test_one_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="two samples"):
        welch([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="two samples"):
        cohens_d([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="no samples"):
        median_interval([])


def test_holm_of_a_textbook_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()


@given(st.lists(st.floats(0.0, 1.0), max_size=12))
def test_holm_only_raises_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= a <= 1.0 for p, a in zip(p_values, adjusted, strict=True))
    assert all(
        adjusted[i] <= adjusted[j]
        for i in range(len(p_values))
        for j in range(len(p_values))
        if p_values[i] < p_values[j]
    )


@settings(max_examples=40, deadline=None)
@given(TIMES)
def test_the_interval_holds_the_median_and_repeats(samples: list[float]) -> None:
    interval = median_interval(samples)
    assert min(samples) <= interval.low <= interval.high <= max(samples)
    assert interval.low <= median(samples) <= interval.high
    assert interval == median_interval(samples)


def test_the_interval_of_95_percent_holds_the_true_median_about_as_often() -> None:
    draw = random.Random(1)
    held = 0
    for _ in range(200):
        interval = median_interval([draw.gauss(10.0, 1.0) for _ in range(25)])
        held += interval.low <= 10.0 <= interval.high
    assert held >= 175


def test_the_floor_of_a_quiet_machine_is_zero_and_grows_with_its_noise() -> None:
    assert noise_floor([5.0] * 10, [5.0] * 10).us == 0.0
    draw = random.Random(2)
    floors = [
        noise_floor(_windows(draw, 10.0, spread), _windows(draw, 10.0, spread)).share for spread in (0.001, 0.01, 0.1)
    ]
    assert floors == sorted(floors)
    assert floors[1] < 0.02
    shifted = noise_floor([10.0] * 10, [10.2] * 10)
    assert shifted.share == pytest.approx(0.02)
    assert shifted.us == pytest.approx(0.202, rel=1e-3)


def test_a_real_difference_is_found_and_names_its_side() -> None:
    draw = random.Random(3)
    processes = [[_windows(draw, us, 0.01) for us in (10.0, 9.0, 11.0, 10.0)] for _ in range(2)]
    faster, slower, equal = differences(processes, floor=0.005)
    assert faster.verdict is Verdict.FASTER
    assert faster.low < 0.9 < faster.high < 1.0
    assert faster.effect > 1.0
    assert slower.verdict is Verdict.SLOWER
    assert equal.verdict is Verdict.WITHIN_NOISE


def test_a_difference_inside_the_floor_is_noise_however_small_its_p_value() -> None:
    first = [10.0 + 1e-4 * (i % 3) for i in range(30)]
    second = [9.97 + 1e-4 * (i % 3) for i in range(30)]
    assert differences([[first, second]], floor=0.01)[0].p_value < 1e-10
    assert differences([[first, second]], floor=0.01)[0].verdict is Verdict.WITHIN_NOISE
    assert differences([[first, second]], floor=0.001)[0].verdict is Verdict.FASTER


def test_a_win_that_another_process_does_not_repeat_is_noise() -> None:
    draw = random.Random(4)
    won = [_windows(draw, 10.0, 0.002), _windows(draw, 9.5, 0.002)]
    lost = [_windows(draw, 10.0, 0.002), _windows(draw, 10.4, 0.002)]
    assert differences([won], floor=0.002)[0].verdict is Verdict.FASTER
    together = differences([won, lost], floor=0.002)[0]
    assert together.verdict is Verdict.WITHIN_NOISE
    assert together.effect == 0.0


def test_equal_kernels_hardly_ever_win() -> None:
    """With twenty comparisons of equals a run, at most a few of a hundred runs claim any."""
    draw = random.Random(5)
    claims = 0
    for _ in range(40):
        processes = [[_windows(draw, 10.0, 0.01) for _ in range(6)] for _ in range(2)]
        claims += any(d.verdict is not Verdict.WITHIN_NOISE for d in differences(processes, floor=0.0))
    assert claims <= 2


@settings(max_examples=30, deadline=None)
@given(st.floats(0.25, 4.0), st.integers(0, 1000))
def test_a_ratio_does_not_depend_on_the_unit(scale: float, seed: int) -> None:
    draw = random.Random(seed)
    first, second = _windows(draw, 10.0, 0.02), _windows(draw, 9.9, 0.02)
    plain = differences([[first, second]], floor=0.001)[0]
    scaled = differences([[[scale * us for us in first], [scale * us for us in second]]], floor=0.001)[0]
    assert scaled.ratio == pytest.approx(plain.ratio)
    assert scaled.verdict is plain.verdict


def _windows(draw: random.Random, us: float, spread: float) -> list[float]:
    return [us * (1.0 + spread * draw.gauss(0.0, 1.0)) for _ in range(20)]


def test_times_taken_apart_differ_only_beyond_their_spread_and_the_floor() -> None:
    first = [10.0, 10.1, 9.9, 10.05, 9.95, 10.0, 10.02]
    slower = [value * 1.10 for value in first]
    assert apart(first, slower, 0.01).verdict is Verdict.SLOWER
    assert apart(slower, first, 0.01).verdict is Verdict.FASTER
    assert apart(first, slower, 0.15).verdict is Verdict.WITHIN_NOISE
    assert apart(first, [value * 1.001 for value in first], 0.0).verdict is Verdict.WITHIN_NOISE
    found = apart(first, slower, 0.01)
    assert found.low < found.ratio < found.high


def timing(us: float, wide: float = 0.0, samples: tuple[float, ...] = ()) -> Timing:
    return Timing(us, us * (1 - wide), us * (1 + wide), samples)


@given(
    st.floats(0.1, 1e6), st.floats(0.1, 1e6), st.floats(0.0, 0.2), st.floats(0.0, 0.2), st.none() | st.floats(0.0, 0.1)
)
def test_the_verdict_on_two_recorded_times_has_two_sides(
    a_us: float, b_us: float, a_wide: float, b_wide: float, floor: float | None
) -> None:
    there = judged_apart(timing(a_us, a_wide), timing(b_us, b_wide), floor)
    back = judged_apart(timing(b_us, b_wide), timing(a_us, a_wide), floor)
    swapped = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    assert swapped.get(there.verdict, there.verdict) is back.verdict or min(
        abs(there.low - 1), abs(there.high - 1)
    ) == pytest.approx(0, abs=1e-9)
    assert there.low <= b_us / a_us <= there.high
    if abs(b_us / a_us - 1) < apart_margin(floor) / 2:
        assert there.verdict is Verdict.WITHIN_NOISE


def test_a_recorded_time_is_judged_by_its_samples_else_by_its_interval() -> None:
    steady = tuple(10 * (1 + step / 20_000) for step in (-2, -1, 0, 1, 2))
    faster = tuple(us * 0.99 for us in steady)
    assert judged_apart(timing(10.0, 0.05), timing(9.9, 0.05), 0.002).verdict is Verdict.WITHIN_NOISE
    found = judged_apart(timing(10.0, 0.05, steady), timing(9.9, 0.05, faster), 0.002)
    assert found.verdict is Verdict.FASTER
    assert judged_apart(timing(10.0, 0.05, steady), timing(9.9, 0.05, faster[:2]), 0.002).verdict is (
        Verdict.WITHIN_NOISE
    )


def test_processes_differ_even_where_the_floor_is_lower_and_an_unknown_floor_is_no_floor_of_nothing() -> None:
    for floor, us, verdict in (
        (0.0, 9.98, Verdict.WITHIN_NOISE),
        (0.0, 9.96, Verdict.FASTER),
        (0.006, 9.96, Verdict.WITHIN_NOISE),
        (None, 9.92, Verdict.WITHIN_NOISE),
        (None, 9.89, Verdict.FASTER),
    ):
        assert judged_apart(timing(10.0), timing(us), floor).verdict is verdict, (floor, us)


@pytest.mark.parametrize("us", [0.0, -1.0, math.nan, math.inf])
def test_a_time_that_is_none_compares_with_none(us: float) -> None:
    with pytest.raises(ValueError, match="not above 0"):
        judged_apart(timing(1.0), timing(us), None)
