"""One run, read from top to bottom: search the groupings, tune their kernels, assemble the best, sum up."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager

from engine.events import RunFinished, RunStarted
from engine.measure import DeviceError
from engine.tune.assembled import Winner, check_assembled
from engine.tune.control import Stopped
from engine.tune.controlled import proved
from engine.tune.outer import OuterResult, search_groupings
from engine.tune.problem import Problem
from engine.tune.sharing import share_controls
from engine.tune.workbench import Workbench

COLLECT_AFTER = 50_000
"""New objects between two collections of garbage. Python's own number, 700, has them walk the search trees of a run
over and over, a tenth of the time of one that finds every answer in the database."""


def tune(bench: Workbench, problem: Problem) -> RunFinished:
    """Run the whole of section "one run" for a problem and return its summary; also after a stop.

    Raises DeviceError when the device is gone and StoreError when the database can't be written.
    """
    bench.tell(
        RunStarted,
        run=bench.run,
        target=problem.target,
        device=bench.device.name,
        gpu=bench.device.context.gpu,
        seed=bench.settings.seed,
        patience=bench.settings.patience,
        prior=bench.prior.version,
        database=bench.database,
    )
    bench.tell_ceilings(None)
    outer = OuterResult()
    winner: Winner | None = None
    try:
        problem = proved(bench, problem)
        search_groupings(bench, problem, outer)
        winner = check_assembled(bench, problem, outer.ranked())
        share_controls(bench, problem, [kernel for item in outer.ranked() for kernel in item.kernels])
        _learn(bench)
    except (Stopped, CancelledError, DeviceError) as ending:
        if not isinstance(ending, Stopped) and not bench.control.aborted:
            raise
        bench.log("stopped on request; everything measured so far is kept")
    bench.tell_acts()
    bench.report_health()
    bench.record_events()
    return _summary(bench, outer, winner)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Garbage is collected seldom while it lasts: around all that is done for one request, with its runs."""
    before = gc.get_threshold()
    gc.set_threshold(max(COLLECT_AFTER, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _learn(bench: Workbench) -> None:
    if bench.learner is not None:
        bench.learner.conclude(bench.tell_event, bench.log)


def _summary(bench: Workbench, outer: OuterResult, winner: Winner | None) -> RunFinished:
    """`best_us` is the best time of the costliest kernel; after a stop, of those that were measured."""
    ranked = outer.ranked()
    result = winner.result if winner is not None else (ranked[0] if ranked else None)
    tuned = [kernel.us for kernel in result.kernels] if result else list(bench.tally.best_us.values())
    search_share, idle_share = bench.shares()
    return RunFinished(
        at=time.time(),
        measured=bench.tally.measured,
        cached=bench.tally.cached,
        failed=bench.tally.failed,
        best_us=max((us for us in tuned if us is not None), default=None),
        sum_us=result.sum_us if result else None,
        assembled_us=winner.assembled_us if winner else None,
        in_place=winner.in_place if winner else 0,
        alone_us=winner.alone_us if winner else None,
        search_share=search_share,
        gpu_idle_share=idle_share,
        wall_s=bench.tally.wall_s,
    )
