"""Timing in turns, on a clock that drifts: each launch gets a window a round, and the drift favours none of them."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import Any

import pytest

from engine.runtime import TimingPlan, cuda_graph, time_in_turns

PLAN = TimingPlan(window_ms=1.0, windows=24, warmup_ms=4.0)


class Clock:
    """Time that runs slower and slower, as on a GPU that heats up: each replay costs its us times what has gone by."""

    def __init__(self) -> None:
        self.now_us = 0.0
        self.order: list[str] = []

    def spend(self, name: str, us: float) -> None:
        self.order.append(name)
        self.now_us += us * (1.0 + self.now_us / 2e6)


class Graph:
    def __init__(self, launch: Any, count: int) -> None:
        self._launch, self._count = launch, count

    def replay(self) -> None:
        self._launch(self._count)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()

    def window_us(work: Any, repeat: int) -> float:
        start = clock.now_us
        for _ in range(repeat):
            work()
        return clock.now_us - start

    monkeypatch.setattr(cuda_graph, "_window_us", window_us)
    monkeypatch.setattr(cuda_graph, "capture", Graph)
    return clock


def launch_of(clock: Clock, name: str, us: float) -> Any:
    return lambda count=1: clock.spend(name, us * count)


def test_a_drifting_clock_favours_nobody(clock: Clock) -> None:
    launches = [launch_of(clock, name, us) for name, us in (("a", 20.0), ("b", 20.2), ("c", 20.0))]
    a, b, c = time_in_turns(launches, PLAN, [20.0, 20.2, 20.0], seed=3)
    assert len(a) == len(b) == len(c) == PLAN.windows
    assert a[-1] > 1.03 * a[0]
    assert median(y / x for x, y in zip(a, b, strict=True)) == pytest.approx(1.01, abs=0.003)
    assert median(y / x for x, y in zip(a, c, strict=True)) == pytest.approx(1.0, abs=0.003)


def test_rounds_differ_in_their_order_and_a_seed_repeats_it(clock: Clock) -> None:
    launches = [launch_of(clock, name, 2e4) for name in "ab"]
    orders = []
    for seed in (1, 1, 2):
        clock.order.clear()
        time_in_turns(launches, PLAN, [2e4, 2e4], seed=seed)
        orders.append(tuple(clock.order))
    assert orders[0] == orders[1] != orders[2]


def test_slow_launches_get_fewer_rounds(clock: Clock) -> None:
    samples = time_in_turns([launch_of(clock, "a", 2e4), launch_of(clock, "b", 10.0)], PLAN, [2e4, 10.0], seed=0)
    assert {len(of_one) for of_one in samples} == {cuda_graph.SLOW_ROUNDS}


def test_rounds_take_the_places_by_turns(clock: Clock) -> None:
    launches = [launch_of(clock, name, us) for name, us in (("a", 20.0), ("b", 20.2))]
    moved = [launch_of(clock, name, us) for name, us in (("a there", 30.0), ("b there", 20.2))]
    a, b = time_in_turns(launches, replace(PLAN, windows=6), [20.0, 20.2], 3, [moved])
    assert [x > 1.3 * a[0] for x in a] == [False, True] * 3
    assert max(b) < 1.1 * min(b)
