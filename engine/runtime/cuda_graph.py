"""How long a launch takes on the GPU: replays of a CUDA graph between two events, in repeated windows.

A graph holds many launches, so that the gap the host leaves between them is not what is timed. The data stays where
the launches before left it: L2 is warm.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch

LAUNCHES_A_GRAPH = 300
"""More makes capturing slow (about 10 us a launch on the host) for nothing: the gap between two replays, some us, is
below 1 % of what so many launches of 2 us take."""
ROUGH_LAUNCHES = 16
SLOW, SLOW_WINDOWS, SLOW_ROUNDS = 8, 3, 6
"""A candidate so slow that one launch is 8 windows long is no contender: three samples say enough. Where such are timed
in turns, all of them are slow, and six rounds carry a test."""


@dataclass(frozen=True, slots=True)
class TimingPlan:
    """How much GPU time a candidate gets, in ms. A window is one sample; `steady` is when warming up may end.

    Warming up ends once two windows in a row differ by less than `steady` (a fraction), or after `warmup_ms`.
    """

    window_ms: float
    windows: int
    warmup_ms: float
    steady: float = 0.02


def capture(launch: Callable[[], None], count: int) -> torch.cuda.CUDAGraph:
    """`count` launches in a row as one CUDA graph. The launch must have run once, so that nothing loads in capture.

    torch.cuda.graph would collect garbage and empty the allocator's cache first, which costs more than the timing.
    """
    graph = torch.cuda.CUDAGraph()
    make: Any = torch.cuda.Stream
    stream: torch.cuda.Stream = make()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        try:
            for _ in range(count):
                launch()
        finally:
            graph.capture_end()
    return graph


def replayed(launch: Callable[[], None]) -> Callable[[], None]:
    """A call that replays one captured `launch`. The launch must have run once."""
    return capture(launch, 1).replay


def probe_us(launch: Callable[[], None]) -> float:
    """Time of one launch in us between two events, host overhead included: an upper bound good for sizing windows."""
    return _window_us(launch, 1)


def time_launches(launch: Callable[[], None], plan: TimingPlan, estimate_us: float) -> tuple[float, ...]:
    """Per-launch times in us, one a window. `estimate_us` is what one launch is thought to take (see `probe_us`)."""
    work = _sized(launch, plan, estimate_us)
    _warm_up(work.graph, work.replays, plan)
    slow = work.replay_us > SLOW * plan.window_ms * 1e3
    windows = min(plan.windows, SLOW_WINDOWS) if slow else plan.windows
    return tuple(work.window_us() for _ in range(windows))


def time_in_turns(
    launches: Sequence[Callable[[], None]], plan: TimingPlan, estimates_us: Sequence[float], seed: int
) -> tuple[tuple[float, ...], ...]:
    """Per-launch times in us of several launches, up to `plan.windows` each: the i-th of all were taken in one round.

    Each round runs all of them in an order of its own, so that neither a drifting clock nor who ran before favours one.
    """
    works = [_sized(launch, plan, us) for launch, us in zip(launches, estimates_us, strict=True)]
    for work in works:
        _warm_up(work.graph, work.replays, plan)
    draw = random.Random(seed)
    samples: list[list[float]] = [[] for _ in works]
    slow = any(work.replay_us > SLOW * plan.window_ms * 1e3 for work in works)
    for _ in range(min(plan.windows, SLOW_ROUNDS) if slow else plan.windows):
        for index in draw.sample(range(len(works)), len(works)):
            works[index].graph.replay()  # whose data L2 holds now
            samples[index].append(works[index].window_us())
    return tuple(tuple(of_one) for of_one in samples)


@dataclass(frozen=True, slots=True)
class _Work:
    """A captured graph of `per_graph` launches, and how many replays fill a window."""

    graph: torch.cuda.CUDAGraph
    per_graph: int
    replays: int
    replay_us: float

    def window_us(self) -> float:
        """One sample: the time of one launch in us, averaged over a window."""
        return _window_us(self.graph.replay, self.replays) / (self.replays * self.per_graph)


def _sized(launch: Callable[[], None], plan: TimingPlan, estimate_us: float) -> _Work:
    window_us = plan.window_ms * 1e3
    if estimate_us * ROUGH_LAUNCHES < window_us:
        rough = capture(launch, ROUGH_LAUNCHES)
        rough.replay()
        estimate_us = _window_us(rough.replay, 2) / (2 * ROUGH_LAUNCHES)
    per_graph = _clamp(window_us / max(estimate_us, 0.1), LAUNCHES_A_GRAPH)
    graph = capture(launch, per_graph)
    graph.replay()
    replay_us = _window_us(graph.replay, 1)
    return _Work(graph, per_graph, _clamp(window_us / max(replay_us, 0.1), 10_000), replay_us)


def expected_ms(plan: TimingPlan, estimate_us: float) -> float:
    """About how long `time_launches` keeps the GPU busy, in ms: what a watchdog should expect."""
    window_ms = max(plan.window_ms, estimate_us / 1e3)
    return window_ms * (plan.windows + 4) + plan.warmup_ms


def _warm_up(graph: torch.cuda.CUDAGraph, replays: int, plan: TimingPlan) -> None:
    """Clocks of an idle GPU are low; they rise within some ms of work."""
    spent_us, before = 0.0, math.inf
    while spent_us < plan.warmup_ms * 1e3:
        now = _window_us(graph.replay, replays)
        spent_us += max(now, 1.0)
        if abs(now - before) <= plan.steady * now:
            return
        before = now


def _window_us(work: Callable[[], None], repeat: int) -> float:
    start, end = _event(), _event()
    start.record()
    for _ in range(repeat):
        work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e3


def _event() -> torch.cuda.Event:
    make: Any = torch.cuda.Event
    event: torch.cuda.Event = make(enable_timing=True)
    return event


def _clamp(count: float, most: int) -> int:
    return max(1, min(most, math.ceil(count)))


def quantiles(samples: tuple[float, ...]) -> tuple[float, float, float]:
    """Median, 10th and 90th percentile by nearest rank."""
    ranked = sorted(samples)
    last = len(ranked) - 1
    return median(ranked), ranked[round(0.1 * last)], ranked[round(0.9 * last)]
