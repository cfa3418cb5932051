"""The numbers around a timing: quantiles, and how long a watchdog should wait."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.runtime import TimingPlan, cuda_graph, expected_ms, quantiles, time_in_turns, time_launches

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


FLUSH_US, GAP_US = 40.0, 1.0


class Stream:
    """A GPU whose clock moves by what is launched, in us: captured work is replayed, and events read the clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_us = 0.0
        self.cold = True
        monkeypatch.setattr(cuda_graph, "capture", self._capture)
        monkeypatch.setattr(cuda_graph, "_event", lambda: self.Event(self))

    class Event:
        def __init__(self, stream: Stream) -> None:
            self._stream = stream
            self.at_us = 0.0

        def record(self) -> None:
            self.at_us = self._stream.now_us

        def synchronize(self) -> None:
            return None

        def elapsed_time(self, end: Stream.Event) -> float:
            return (end.at_us - self.at_us) * 1e-3

    def _capture(self, launch: Any, count: int) -> Any:
        class Graph:
            def replay(self) -> None:
                for _ in range(count):
                    launch()

        return Graph()

    def flush(self) -> None:
        self.now_us += FLUSH_US + GAP_US
        self.cold = True

    def launch(self) -> None:
        self.now_us += (5.0 if self.cold else 2.0) + GAP_US
        self.cold = False


def test_a_cold_time_is_that_of_the_launch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(monkeypatch)
    warm = time_launches(stream.launch, PLAN, 3.0)
    plan = dataclasses.replace(PLAN, flush=stream.flush)
    cold = time_launches(stream.launch, plan, 3.0)
    assert len(cold) == len(warm) == PLAN.windows
    assert warm == pytest.approx((2.0 + GAP_US,) * 5)
    assert cold == pytest.approx((5.0 + GAP_US,) * 5)
    for of_one in time_in_turns([stream.launch, stream.launch], plan, (3.0, 3.0), 0):
        assert of_one == pytest.approx((5.0 + GAP_US,) * 5)


def test_cold_windows_are_given_longer() -> None:
    plan: Any = dataclasses.replace(PLAN, flush=lambda: None)  # type: ignore[arg-type]
    assert expected_ms(plan, 2.0) > 4 * expected_ms(PLAN, 2.0)
