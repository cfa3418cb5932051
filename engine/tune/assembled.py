"""The assembled check: is the whole as fast, and as right, as the sum of its parts says?

The sum of isolated times is a biased reward, so the few best groupings are each put together, checked against a
higher-precision reference, timed as one CUDA graph, and the fastest assembled graph wins.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.events import Assembled
from engine.tune.outer import GroupingResult
from engine.tune.problem import Problem
from engine.tune.workbench import Workbench
from engine.vocabulary import Schedule

FINALISTS = 3
NEAR = 1.10
"""Sums this close to the best (10 %, the bias seen on one transformer layer) are assembled too."""


@dataclass(frozen=True, slots=True)
class Winner:
    """The grouping to use. `assembled_us` is None where the assembled graph could not be timed."""

    result: GroupingResult
    assembled_us: float | None


def check_assembled(bench: Workbench, problem: Problem, ranked: list[GroupingResult]) -> Winner | None:
    """Assemble the finalists of `ranked` (fastest sum first) and pick the winner; None when nothing was tuned."""
    if not ranked or ranked[0].sum_us is None:
        return None
    bound = ranked[0].sum_us * NEAR
    finalists = [item for item in ranked[:FINALISTS] if item.sum_us is not None and item.sum_us <= bound]
    best: Winner | None = None
    for item in finalists:
        bench.checkpoint()
        assembled_us = _assemble(bench, problem, item)
        if assembled_us is not None and (best is None or assembled_us < (best.assembled_us or 0.0)):
            best = Winner(item, assembled_us)
    return best or Winner(ranked[0], None)


def _assemble(bench: Workbench, problem: Problem, item: GroupingResult) -> float | None:
    schedules: dict[str, Schedule] = {
        result.kernel.key: result.schedule for result in item.kernels if result.schedule is not None
    }
    known = bench.recorder.known_assembled(item.grouping, schedules)
    result = known or bench.device.assemble(item.grouping, schedules, problem.graph)
    sum_us = item.sum_us or 0.0
    bench.recorder.assembled(item.name, result, schedules)
    bench.tell(
        Assembled,
        grouping=item.name,
        sum_us=sum_us,
        assembled_us=result.timing.median_us if result.timing else None,
        error=result.error,
        reason=result.failure.cause if result.failure else "" if result.timing else "not recorded",
    )
    return result.timing.median_us if result.timing else None
