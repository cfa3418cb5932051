"""Would other schedules of the same kernels be faster in the whole graph than those that won alone?

Alone, a kernel finds its operands in L2 and has the GPU to itself; in the graph it shares both with its neighbours.
So each kernel's closest runners-up take its place in the assembled graph, one at a time, the costliest kernel first,
and what makes the graph faster stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.ir.kernel import Kernel
from engine.tune.workbench import Workbench
from engine.vocabulary import Schedule

RUNNERS_UP = 4
"""A kernel; each costs one compiled source and one graph, about half a second."""
WITHIN = 0.08
"""Runners-up are at most this share slower alone: by about so much do sums and assembled graphs disagree."""
GAIN = 0.003
"""The share by which a graph has to be faster: ten times what a graph timed twice differs by on an H200."""

Schedules = Mapping[str, Schedule]


def refine(
    bench: Workbench,
    kernels: Mapping[str, tuple[Kernel, int]],
    schedules: Schedules,
    us: float,
    assembled_us: Callable[[Schedules], float | None],
) -> tuple[Schedules, float]:
    """The schedules that the graph is fastest with, and its time in us.

    `kernels` are those of the grouping with their counts, `schedules` those that `us` was measured with, and
    `assembled_us` times the graph with others: None where that failed or isn't known.
    """
    best, best_us = dict(schedules), us
    for key, (kernel, _) in sorted(kernels.items(), key=lambda item: -_cost(bench, item[1], best.get(item[0]))):
        for schedule in _runners_up(bench, kernel, best.get(key)):
            bench.checkpoint()
            tried_us = assembled_us({**best, key: schedule})
            if tried_us is not None and tried_us < best_us * (1.0 - GAIN):
                best[key], best_us = schedule, tried_us
    return best, best_us


def _cost(bench: Workbench, counted: tuple[Kernel, int], schedule: Schedule | None) -> float:
    kernel, count = counted
    return bench.recorder.timed(kernel).get(schedule, 0.0) * count if schedule is not None else 0.0


def _runners_up(bench: Workbench, kernel: Kernel, chosen: Schedule | None) -> list[Schedule]:
    """The fastest alone but the chosen one; equal times in the canonical order of their knobs."""
    if chosen is None:
        return []
    timed = bench.recorder.timed(kernel)
    bound = timed.get(chosen, 0.0) * (1.0 + WITHIN)
    others = sorted(
        (us, schedule.key, schedule) for schedule, us in timed.items() if schedule != chosen and us <= bound
    )
    return [schedule for _, _, schedule in others[:RUNNERS_UP]]
