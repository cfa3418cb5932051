"""The assembled check: is the whole as fast, and as right, as the sum of its parts says?

The sum of isolated times is a biased reward: it knows neither the gap between two launches nor what a kernel finds in
L2. So the few best groupings are each put together, checked against a higher-precision reference, and timed as one CUDA
graph, with plain launches and with programmatic dependent launch; the fastest graph wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.events import Assembled
from engine.ir.plan import Grouping
from engine.tune.outer import GroupingResult
from engine.tune.problem import Problem
from engine.tune.settings import Settings
from engine.tune.workbench import Workbench
from engine.vocabulary import Schedule

DEPENDENT_LAUNCH_CAPABILITY = 90
"""Programmatic dependent launch exists from Hopper on (CUDA programming guide, section on that launch)."""


@dataclass(frozen=True, slots=True)
class Winner:
    """The grouping to use. `assembled_us` is None where no graph could be timed; `pdl` says which launches won."""

    result: GroupingResult
    assembled_us: float | None
    pdl: bool = False


def check_assembled(bench: Workbench, problem: Problem, ranked: Sequence[GroupingResult]) -> Winner | None:
    """Assemble the finalists of `ranked` (fastest sum first) and pick the winner; None when nothing was tuned."""
    if not ranked or ranked[0].sum_us is None:
        return None
    best: Winner | None = None
    for item in finalists(ranked, bench.settings):
        for pdl in (False, True) if _dependent_launch_fits(bench, item.grouping) else (False,):
            bench.checkpoint()
            us = _assemble(bench, problem, item, pdl=pdl)
            if us is not None and (best is None or best.assembled_us is None or us < best.assembled_us):
                best = Winner(item, us, pdl)
    return best or Winner(ranked[0], None)


def finalists(ranked: Sequence[GroupingResult], settings: Settings) -> list[GroupingResult]:
    """The groupings whose sums are too close to the best one's to tell them apart, at most `settings.finalists`."""
    bound = (ranked[0].sum_us or 0.0) * (1 + settings.near_share) if ranked else 0.0
    near = [item for item in ranked if item.sum_us is not None and item.sum_us <= bound]
    return near[: settings.finalists]


def _dependent_launch_fits(bench: Workbench, grouping: Grouping) -> bool:
    """A single kernel has nobody to wait for, and a library's call none of the instructions."""
    generated = sum(call.kernel.family != "extern" for call in grouping.calls)
    return bench.device.target.capability >= DEPENDENT_LAUNCH_CAPABILITY and len(grouping.calls) > 1 and generated > 0


def _assemble(bench: Workbench, problem: Problem, item: GroupingResult, *, pdl: bool) -> float | None:
    schedules: Mapping[str, Schedule] = {
        result.kernel.key: result.schedule for result in item.kernels if result.schedule is not None
    }
    known = bench.recorder.known_assembled(item.grouping, schedules, pdl=pdl)
    result = known or bench.device.assemble(item.grouping, schedules, problem.graph, pdl=pdl)
    if pdl and result.timing is None and result.failure is None:
        return None  # a recording without dependent launches: that nothing is known of them is no event
    bench.recorder.assembled(item.name, result, schedules, pdl=pdl)
    us = result.timing.median_us if result.timing else None
    bench.tell(
        Assembled,
        grouping=item.name,
        sum_us=item.sum_us or 0.0,
        assembled_us=us,
        error=result.error,
        reason=result.failure.cause if result.failure else "" if result.timing else "not recorded",
        pdl=pdl,
    )
    return us
