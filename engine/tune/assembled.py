"""The assembled check: is the whole as fast, and as right, as the sum of its parts says?

The sum of isolated times is a biased reward: it knows neither the gap between two launches nor what a kernel finds in
L2. So the few best groupings are each put together, checked against a higher-precision reference, and timed as one CUDA
graph, with plain launches and with programmatic dependent launch; the fastest graph wins, and each of its kernels may
then change its schedule for one that is faster there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.events import Assembled
from engine.ir.plan import Grouping
from engine.tune.control import Stopped
from engine.tune.in_place import Whole, refine
from engine.tune.outer import GroupingResult
from engine.tune.problem import Problem
from engine.tune.settings import Settings
from engine.tune.workbench import Workbench
from engine.vocabulary import Schedule

DEPENDENT_LAUNCH_CAPABILITY = 90
"""Programmatic dependent launch exists from Hopper on (CUDA programming guide, section on that launch)."""


@dataclass(frozen=True, slots=True)
class Winner:
    """The grouping to use. `assembled_us` is None where no graph could be timed; `pdl` says which launches won, and
    `schedules` what it was built with, by structural key. `in_place` counts the kernels with another schedule than the
    one that is best by itself, with which the graph took `alone_us`."""

    result: GroupingResult
    assembled_us: float | None
    pdl: bool = False
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    in_place: int = 0
    alone_us: float | None = None


def check_assembled(bench: Workbench, problem: Problem, ranked: Sequence[GroupingResult]) -> Winner | None:
    """Assemble the finalists of `ranked` (fastest sum first), and refine the winner; None when nothing was tuned.

    Raises Stopped when a stop was asked for.
    """
    if not ranked or ranked[0].sum_us is None:
        return None
    best: Winner | None = None
    for item in finalists(ranked, bench.settings):
        best = _faster(best, _assembled(bench, problem, item, _alone(item)))
    if best is None or best.assembled_us is None:
        return best or Winner(ranked[0], None)
    return _refined(bench, problem, best, best.assembled_us)


def finalists(ranked: Sequence[GroupingResult], settings: Settings) -> list[GroupingResult]:
    """The groupings whose sums are too close to the best one's to tell them apart, at most `settings.finalists`."""
    bound = (ranked[0].sum_us or 0.0) * (1 + settings.near_share) if ranked else 0.0
    near = [item for item in ranked if item.sum_us is not None and item.sum_us <= bound]
    return near[: settings.finalists]


def _refined(bench: Workbench, problem: Problem, winner: Winner, us: float) -> Winner:
    """The winner, or what became of it with the schedules that are fastest in place: put together, checked and timed as
    the winner was, and used if it is faster."""
    item = winner.result
    winner = replace(winner, alone_us=us)
    if len(item.grouping.calls) < 2:
        return winner
    schedules = refine(bench, Whole(item.name, item.grouping, problem.graph, winner.pdl), winner.schedules)
    if schedules == winner.schedules:
        schedules |= bench.recorder.recorded_in_place(item.grouping, pdl=winner.pdl)
    counts = item.grouping.kernel_counts()
    changed = [counts[key][0].label for key in counts if schedules.get(key) != winner.schedules.get(key)]
    if not changed:
        return winner
    better = _assembled(bench, problem, item, schedules)
    if better is None or better.assembled_us is None or better.assembled_us >= us:
        bench.log(f"in the whole graph, runners-up of {', '.join(changed)} did not prove faster than {us:.2f} us")
        _assembled(bench, problem, item, winner.schedules)  # the grouping's row tells of the graph that is used
        return winner
    bench.log(
        f"in the whole graph, runners-up of {', '.join(changed)} are faster: {us:.2f} us becomes "
        f"{better.assembled_us:.2f} us"
    )
    return replace(better, in_place=len(changed), alone_us=us)


def _faster(best: Winner | None, other: Winner | None) -> Winner | None:
    if best is None or best.assembled_us is None:
        return other or best
    return other if other is not None and (other.assembled_us or math.inf) < best.assembled_us else best


def _assembled(
    bench: Workbench, problem: Problem, item: GroupingResult, schedules: Mapping[str, Schedule]
) -> Winner | None:
    """The grouping with these schedules, by the faster kind of launches; None where neither could be timed."""
    best: Winner | None = None
    for pdl in (False, True) if _dependent_launch_fits(bench, item.grouping) else (False,):
        bench.checkpoint()
        us = _assemble(bench, problem, item, schedules, pdl=pdl)
        if us is not None:
            best = _faster(best, Winner(item, us, pdl, schedules))
    return best


def _alone(item: GroupingResult) -> dict[str, Schedule]:
    """The best schedule of each kernel by itself."""
    return {result.kernel.key: result.schedule for result in item.kernels if result.schedule is not None}


def _dependent_launch_fits(bench: Workbench, grouping: Grouping) -> bool:
    """A single kernel has nobody to wait for, and a library's call none of the instructions."""
    generated = sum(call.kernel.family != "extern" for call in grouping.calls)
    return bench.device.target.capability >= DEPENDENT_LAUNCH_CAPABILITY and len(grouping.calls) > 1 and generated > 0


def _assemble(
    bench: Workbench, problem: Problem, item: GroupingResult, schedules: Mapping[str, Schedule], *, pdl: bool
) -> float | None:
    known = bench.recorder.known_assembled(item.grouping, schedules, pdl=pdl)
    result = known or bench.device.assemble(item.grouping, schedules, problem.graph, pdl=pdl)
    if pdl and result.timing is None and result.failure is None:
        return None  # a recording without dependent launches: that nothing is known of them is no event
    if result.failure is not None and bench.control.aborted:
        raise Stopped  # it failed of the abort
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
