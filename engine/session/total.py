"""One summary of several runs."""

from __future__ import annotations

from collections.abc import Sequence

from engine.events import RunFinished


def total(summaries: Sequence[RunFinished]) -> RunFinished:
    """One summary of runs made one after the other: counts, sums and wall times add up."""
    if len(summaries) == 1:
        return summaries[0]
    wall = sum(item.wall_s for item in summaries) or 1e-9
    return RunFinished(
        at=summaries[-1].at,
        measured=sum(item.measured for item in summaries),
        cached=sum(item.cached for item in summaries),
        failed=sum(item.failed for item in summaries),
        best_us=max((item.best_us for item in summaries if item.best_us is not None), default=None),
        sum_us=_sum_us([item.sum_us for item in summaries]),
        assembled_us=_sum_us([item.assembled_us for item in summaries]),
        search_share=sum(item.search_share * item.wall_s for item in summaries) / wall,
        gpu_idle_share=sum(item.gpu_idle_share * item.wall_s for item in summaries) / wall,
        wall_s=wall,
        in_place=sum(item.in_place for item in summaries),
        alone_us=_sum_us([item.alone_us for item in summaries]),
    )


def _sum_us(times: Sequence[float | None]) -> float | None:
    """None where one isn't known."""
    return None if None in times else sum(us for us in times if us is not None)
