"""The numbers around a timing: quantiles, and how long a watchdog should wait."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.runtime import TimingPlan, expected_ms, quantiles

PLAN = TimingPlan(window_ms=1.0, windows=5, warmup_ms=10.0)


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=50))
def test_quantiles_are_ordered_samples(samples: list[float]) -> None:
    median, low, high = quantiles(tuple(samples))
    assert min(samples) <= low <= median <= high <= max(samples)


def test_quantiles_leave_an_outlier_out() -> None:
    assert quantiles((1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 100.0)) == (5.5, 2.0, 9.0)


def test_a_slow_kernel_is_given_longer() -> None:
    assert expected_ms(PLAN, 2.0) < 25
    assert expected_ms(PLAN, 1e6) > 5_000
