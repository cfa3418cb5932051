"""Which of a kernel's fastest candidates is used: they are timed in turns, twice where that would change the order.

Times that were taken minutes apart differ by clocks and heat, so the few fastest run in one process in random order.
What would overrule the deploy times there is confirmed in a fresh process, because a lucky memory layout lasts as long
as its process. The candidate with the lowest deploy time stays unless another one is faster beyond the noise in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import CancelledError

from engine.events import Compared
from engine.ir.kernel import Kernel
from engine.measure import Difference, PairedTimes, differences
from engine.tune.control import Stopped
from engine.tune.workbench import Workbench
from engine.vocabulary import Measurement, Schedule, Verdict

FINALISTS = 4
NEAR_SHARE = 0.05
"""Deploy times this close to the lowest are too close to trust their order."""
PROCESSES_TO_OVERRULE = 2
WORTH_CONFIRMING = 0.01
"""A fresh process costs about 8 s on an H200's host: a share of the time below this is not worth them."""
UNKNOWN_FLOOR = 0.01
"""The noise floor where none was measured: a difference below 1 % is not believed."""
LARGEST_EFFECT = 999.0
"""Samples without any spread have an infinite effect, which JSON can't say."""


def pick_finalist(bench: Workbench, kernel: Kernel, measured: Sequence[Measurement]) -> Measurement | None:
    """The deploy measurement to use; None when there is none that has a time. Raises Stopped, DeviceError."""
    finalists = _finalists(measured)
    if len(finalists) < 2:
        return finalists[0] if finalists else None
    keys = tuple(item.schedule.key for item in finalists)
    known = bench.recorder.compared(kernel)
    if known is not None and known.schedules != keys:
        known = None
    if known is not None:
        verdicts = tuple(map(Verdict, known.verdicts))
        numbers = zip(known.ratios, known.lows, known.highs, known.p_values, known.effects, verdicts, strict=True)
        found, processes, noise_share = tuple(Difference(*row) for row in numbers), known.processes, known.noise_share
    else:
        floor = bench.device.health().noise
        noise_share = floor.share if floor is not None else UNKNOWN_FLOOR
        windows = _timed_in_turns(bench, kernel, [item.schedule for item in finalists], noise_share)
        if not windows:
            return finalists[0]
        found, processes = differences(windows, noise_share), len(windows)
    chosen = _chosen(found, processes)
    bench.tell(
        Compared,
        kernel=kernel.key,
        schedules=keys,
        chosen=keys[chosen],
        processes=processes,
        noise_share=noise_share,
        ratios=tuple(item.ratio for item in found),
        lows=tuple(item.low for item in found),
        highs=tuple(item.high for item in found),
        p_values=tuple(item.p_value for item in found),
        effects=tuple(max(-LARGEST_EFFECT, min(LARGEST_EFFECT, item.effect)) for item in found),
        verdicts=tuple(str(item.verdict) for item in found),
        cached=known is not None,
    )
    bench.log(f"{kernel.label or kernel.key}: {_sentence(found, chosen, processes)}")
    return finalists[chosen]


def _finalists(measured: Sequence[Measurement]) -> list[Measurement]:
    """The fastest and those near it, fastest first; equal times in the order of their schedules."""
    timed = sorted((item for item in measured if item.us is not None), key=lambda item: (item.us, item.schedule.key))
    bound = (timed[0].us or 0.0) * (1.0 + NEAR_SHARE) if timed else 0.0
    return [item for item in timed if (item.us or 0.0) <= bound][:FINALISTS]


def _timed_in_turns(
    bench: Workbench, kernel: Kernel, schedules: Sequence[Schedule], floor: float
) -> list[tuple[tuple[float, ...], ...]]:
    """The windows of one process, and those of a fresh one where the first would overrule the order of deploy times by
    enough to be worth it; empty without any."""
    first = _compare(bench, kernel, schedules, fresh=False)
    if not first.windows:
        return []
    found = differences([first.windows], floor)
    if not any(item.verdict is Verdict.FASTER and item.ratio < 1.0 - WORTH_CONFIRMING for item in found):
        return [first.windows]
    second = _compare(bench, kernel, schedules, fresh=True)
    return [first.windows, second.windows] if second.windows else []


def _compare(bench: Workbench, kernel: Kernel, schedules: Sequence[Schedule], *, fresh: bool) -> PairedTimes:
    bench.checkpoint()
    try:
        times = bench.device.compare(kernel, schedules, fresh=fresh)
    except CancelledError:
        raise Stopped from None
    if times.failure is not None:
        cause = f"{times.failure.kind}: {times.failure.cause}"
        bench.log(f"{kernel.label or kernel.key}: its finalists could not be timed in turns ({cause})", "warning")
    return times


def _chosen(found: Sequence[Difference], processes: int) -> int:
    """The position of the candidate to use: the first, unless others are faster beyond the noise in two processes."""
    if processes < PROCESSES_TO_OVERRULE:
        return 0
    faster = [(item.ratio, at) for at, item in enumerate(found, start=1) if item.verdict is Verdict.FASTER]
    return min(faster)[1] if faster else 0


def _sentence(found: Sequence[Difference], chosen: int, processes: int) -> str:
    where = f"in {processes} process{'es' if processes > 1 else ''}"
    count = len(found) + 1
    if chosen:
        winner = found[chosen - 1]
        return (
            f"of {count} finalists timed in turns, number {chosen + 1} by deploy time is faster than the first: "
            f"{_ratio_text(1 / winner.ratio, 1 / winner.high, 1 / winner.low)} {where}"
        )
    tied = sum(item.verdict is Verdict.WITHIN_NOISE for item in found)
    if tied:
        verb = "is" if tied == 1 else "are"
        return f"of {count} finalists timed in turns, {tied} {verb} within noise of the best {where}"
    nearest = min(found, key=lambda item: item.ratio)
    if nearest.ratio < 1.0:
        return f"of {count} finalists timed in turns, none is faster than the best by enough to matter {where}"
    return (
        f"the best of {count} finalists timed in turns wins beyond the noise: "
        f"{_ratio_text(nearest.ratio, nearest.low, nearest.high)} over the next {where}"
    )


def _ratio_text(ratio: float, low: float, high: float) -> str:
    return f"{ratio:.3f}x ({low:.3f} to {high:.3f})"
