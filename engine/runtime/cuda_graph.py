"""How long a launch takes on the GPU: replays of a CUDA graph between two events, in repeated windows.

A graph holds many launches, so that the gap the host leaves between them is not what is timed. The data stays where
the launches before left it: L2 is warm.

With a `Flush` it is cold. Writes that fill the L2 stand before each launch in the same graph, and each window is
timed beside one of writes alone, whose time is taken off. Events around each launch would need no subtraction, but a
graph's event nodes add some us to every launch, and differently to short and to long ones; what is taken off here holds
as many gaps between kernels as a warm time does, so that cold and warm times mean the same.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import torch

from engine.runtime.flush import Flush

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

    Warming up ends once two windows in a row differ by less than `steady` (a fraction), or after `warmup_ms`. With a
    `flush` the L2 is cold before each launch.
    """

    window_ms: float
    windows: int
    warmup_ms: float
    steady: float = 0.02
    flush: Flush | None = None


COLD_WINDOWS_LONGER = 4.0
"""A cold window is so much longer: the writes before each launch take some 50 us on an H200, and it is a difference of
two windows."""
LEAST_US = 1e-3
"""What a launch takes whose window is as short as that of the writes alone; no gate lets it pass."""


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
    slow = work.replay_us > SLOW * _window_of(plan)
    windows = min(plan.windows, SLOW_WINDOWS) if slow else plan.windows
    return tuple(work.window_us() for _ in range(windows))


def time_in_turns(
    launches: Sequence[Callable[[], None]],
    plan: TimingPlan,
    estimates_us: Sequence[float],
    seed: int,
    elsewhere: Sequence[Sequence[Callable[[], None]]] = (),
) -> tuple[tuple[float, ...], ...]:
    """Per-launch times in us of several launches, up to `plan.windows` each: the i-th of all were taken in one round.

    Each round runs all of them in an order of its own, so that neither a drifting clock nor who ran before favours one.
    `elsewhere` are the same launches with their data in other places, once or more: rounds take the places by turns,
    as where data lies moves a time by up to two percent for as long as it lies there.
    """
    places = [[_sized(launch, plan, us) for launch, us in zip(launches, estimates_us, strict=True)]]
    for work in places[0]:
        _warm_up(work.graph, work.replays, plan)
    for moved in elsewhere:
        places.append([_moved(work, launch, plan) for work, launch in zip(places[0], moved, strict=True)])
    works = places[0]
    draw = random.Random(seed)
    samples: list[list[float]] = [[] for _ in works]
    slow = any(work.replay_us > SLOW * _window_of(plan) for work in works)
    for number in range(min(plan.windows, SLOW_ROUNDS) if slow else plan.windows):
        works = places[number % len(places)]
        for index in draw.sample(range(len(works)), len(works)):
            works[index].graph.replay()  # whose data L2 holds now
            samples[index].append(works[index].window_us())
    return tuple(tuple(of_one) for of_one in samples)


@dataclass(frozen=True, slots=True)
class _Work:
    """A captured graph of `per_graph` launches, and how many replays fill a window.

    `beside` is the graph of the flushes alone, where there are any between the launches.
    """

    graph: torch.cuda.CUDAGraph
    per_graph: int
    replays: int
    replay_us: float
    beside: torch.cuda.CUDAGraph | None = None

    def window_us(self) -> float:
        """One sample: the time of one launch in us, averaged over a window."""
        spent_us = _window_us(self.graph.replay, self.replays)
        if self.beside is not None:
            spent_us -= _window_us(self.beside.replay, self.replays)
        return max(spent_us / (self.replays * self.per_graph), LEAST_US)


def _sized(launch: Callable[[], None], plan: TimingPlan, estimate_us: float) -> _Work:
    if plan.flush is not None:
        return _sized_cold(launch, plan, plan.flush, estimate_us)
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


def _sized_cold(launch: Callable[[], None], plan: TimingPlan, flush: Flush, estimate_us: float) -> _Work:
    """Pairs of a flush and a launch, as many as fill a longer window, in one replay where that can be."""
    flush()
    pair_us = estimate_us + probe_us(flush)
    window_us = _window_of(plan)
    per_graph = _clamp(window_us / max(pair_us, 0.1), LAUNCHES_A_GRAPH)
    graph, beside = capture(_pair(flush, launch), per_graph), capture(flush, per_graph)
    graph.replay()
    beside.replay()
    replay_us = _window_us(graph.replay, 1)
    return _Work(graph, per_graph, _clamp(window_us / max(replay_us, 0.1), 10_000), replay_us, beside)


def _moved(work: _Work, launch: Callable[[], None], plan: TimingPlan) -> _Work:
    """The same work for a launch whose data lies elsewhere. It runs once first, so that nothing loads in capture."""
    launch()
    once = launch if plan.flush is None else _pair(plan.flush, launch)
    return replace(work, graph=capture(once, work.per_graph))


def _pair(flush: Flush, launch: Callable[[], None]) -> Callable[[], None]:
    def pair() -> None:
        flush()
        launch()

    return pair


def _window_of(plan: TimingPlan) -> float:
    """How long a window should be, in us."""
    return plan.window_ms * 1e3 * (COLD_WINDOWS_LONGER if plan.flush is not None else 1.0)


def expected_ms(plan: TimingPlan, estimate_us: float) -> float:
    """About how long `time_launches` keeps the GPU busy, in ms: what a watchdog should expect."""
    longer = 2.0 if plan.flush is not None else 1.0
    window_ms = longer * max(_window_of(plan), estimate_us) / 1e3
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
