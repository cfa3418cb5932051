"""Which of a kernel's fastest candidates is used: they are timed in turns, twice where that would change the order.

Times that were taken minutes apart differ by clocks and heat, so the few fastest run in one process in random order.
What would overrule the deploy times there is confirmed in a fresh process, because a lucky memory layout lasts as long
as its process. The candidate with the lowest deploy time stays unless another one is faster beyond the noise in both.

A candidate with ptxas controls has to do more: it is always confirmed in fresh processes, its p-value is corrected for
all such candidates that the search tried, and the best one without controls is timed against itself beside it. Unless
it passes all of that, the best one without controls is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

from engine.codegen import acf_of
from engine.events import Compared
from engine.ir.kernel import Kernel
from engine.measure import Difference, PairedTimes, differences
from engine.tune.control import Stopped
from engine.tune.counting import pick_counted
from engine.tune.settings import CounterObjective, Objective
from engine.tune.workbench import Workbench
from engine.vocabulary import Measurement, Schedule, Verdict

FINALISTS = 4
NEAR_SHARE = 0.05
"""Deploy times this close to the lowest are too close to trust their order."""
PROCESSES_TO_OVERRULE = 2
WORTH_CONFIRMING = 0.01
"""A fresh process costs about 8 s on an H200's host: a share of the time below this is not worth them."""
LARGEST_EFFECT = 999.0
"""Samples without any spread have an infinite effect, which JSON can't say."""


def pick_finalist(
    bench: Workbench, kernel: Kernel, measured: Sequence[Measurement], tried: int = 0
) -> Measurement | None:
    """The deploy measurement to use; None when there is none that has a time. Raises Stopped, DeviceError.

    `tried` is how many candidates with ptxas controls the search answered.
    """
    objective = bench.settings.objective
    if isinstance(objective, CounterObjective):
        return pick_counted(bench, kernel, measured, objective)
    if objective is not Objective.TIME:
        return least(objective, measured)
    plain = _finalists([item for item in measured if not acf_of(item.schedule)])
    controlled = _challengers([item for item in measured if acf_of(item.schedule)], plain)
    finalists = plain + controlled
    if len(finalists) < 2:
        return finalists[0] if finalists else None
    keys = tuple(item.schedule.key for item in finalists)
    turns = _known(bench, kernel, keys) or _timed(bench, kernel, finalists, len(plain), tried)
    if turns is None:
        return _chosen_before(bench, kernel, measured) or finalists[0]
    chosen = _chosen(turns.found, turns.processes, len(plain), turns.control)
    bench.tell(
        Compared,
        kernel=kernel.key,
        schedules=keys,
        chosen=keys[chosen],
        processes=turns.processes,
        noise_share=turns.noise_share,
        **numbers_of(turns.found),
        cached=turns.cached,
        tried=tried,
        control_ratio=turns.control[0],
        control_verdict=turns.control[1],
    )
    bench.log(f"{kernel.label or kernel.key}: {_sentence(turns.found[: len(plain) - 1], chosen, turns.processes)}")
    if controlled:
        bench.log(f"{kernel.label or kernel.key}: {controls_sentence(turns.found, len(plain), chosen, tried)}")
    return finalists[chosen]


@dataclass(frozen=True, slots=True)
class _Turns:
    """How the others compare with the first. `control` is the first against itself: ratio and verdict, 0 and "" if not
    timed."""

    found: tuple[Difference, ...]
    processes: int
    noise_share: float
    control: tuple[float, str] = (0.0, "")
    cached: bool = False


def numbers_of(found: Sequence[Difference]) -> dict[str, Any]:
    """Differences as the events of comparisons tell them, by field."""
    return {
        "ratios": tuple(item.ratio for item in found),
        "lows": tuple(item.low for item in found),
        "highs": tuple(item.high for item in found),
        "p_values": tuple(item.p_value for item in found),
        "effects": tuple(max(-LARGEST_EFFECT, min(LARGEST_EFFECT, item.effect)) for item in found),
        "verdicts": tuple(str(item.verdict) for item in found),
    }


def least(objective: Objective, measured: Sequence[Measurement]) -> Measurement | None:
    """Of what was measured, the least by a count that the compiler states exactly: nothing has to be timed for it.

    Of candidates with equal counts one without ptxas controls is used.
    """
    best: Measurement | None = None
    for item in sorted(measured, key=lambda item: (bool(acf_of(item.schedule)), item.schedule.key)):
        value, known = objective.cost(item), None if best is None else objective.cost(best)
        fewer = value is not None and (known is None or int(value) < int(known))
        if fewer or (not acf_of(item.schedule) and objective.prefers(item, best)):
            best = item
    return best


def _challengers(controlled: Sequence[Measurement], plain: Sequence[Measurement]) -> list[Measurement]:
    """The few fastest with ptxas controls, as far as they beat the best without; all of the few where there is none."""
    bound = (plain[0].us or 0.0) if plain else math.inf
    timed = sorted((item for item in controlled if item.us is not None), key=lambda item: (item.us, item.schedule.key))
    return [item for item in timed if (item.us or 0.0) < bound][:FINALISTS]


def _known(bench: Workbench, kernel: Kernel, keys: tuple[str, ...]) -> _Turns | None:
    """What an earlier run found of the same finalists."""
    known = bench.recorder.compared(kernel)
    if known is None or known.schedules != keys:
        return None
    verdicts = tuple(map(Verdict, known.verdicts))
    numbers = zip(known.ratios, known.lows, known.highs, known.p_values, known.effects, verdicts, strict=True)
    found = tuple(Difference(*row) for row in numbers)
    return _Turns(found, known.processes, known.noise_share, (known.control_ratio, known.control_verdict), True)


def _chosen_before(bench: Workbench, kernel: Kernel, measured: Sequence[Measurement]) -> Measurement | None:
    """What an earlier comparison of other finalists chose, if it is among `measured`: a replay can time none itself."""
    known = bench.recorder.compared(kernel)
    return next((item for item in measured if known is not None and item.schedule.key == known.chosen), None)


def _timed(bench: Workbench, kernel: Kernel, finalists: Sequence[Measurement], plain: int, tried: int) -> _Turns | None:
    """The finalists in turns, the first twice where some have controls; None where nothing could be timed."""
    schedules = [item.schedule for item in finalists]
    controlled = 0 < plain < len(finalists)
    windows = _timed_in_turns(bench, kernel, [*schedules, schedules[0]] if controlled else schedules, controlled)
    if not windows:
        return None
    share = bench.noise_share()
    found = differences(windows, share, tried + plain if controlled else 0)
    if not controlled:
        return _Turns(found, len(windows), share)
    return _Turns(found[:-1], len(windows), share, (found[-1].ratio, str(found[-1].verdict)))


def _finalists(measured: Sequence[Measurement]) -> list[Measurement]:
    """The fastest and those near it, fastest first; equal times in the order of their schedules."""
    timed = sorted((item for item in measured if item.us is not None), key=lambda item: (item.us, item.schedule.key))
    bound = (timed[0].us or 0.0) * (1.0 + NEAR_SHARE) if timed else 0.0
    return [item for item in timed if (item.us or 0.0) <= bound][:FINALISTS]


def _timed_in_turns(
    bench: Workbench, kernel: Kernel, schedules: Sequence[Schedule], controlled: bool
) -> list[tuple[tuple[float, ...], ...]]:
    """The windows of one process, and those of a fresh one where the first would overrule the order of deploy times by
    enough to be worth it, or in favour of controls at all; empty without any."""
    first = _compare(bench, kernel, schedules, fresh=controlled)
    if not first.windows:
        return []
    found = differences([first.windows], bench.noise_share())
    worth = 1.0 if controlled else 1.0 - WORTH_CONFIRMING
    if not any(item.verdict is Verdict.FASTER and item.ratio < worth for item in found):
        return [first.windows]
    second = _compare(bench, kernel, schedules, fresh=True)
    return [first.windows, second.windows] if second.windows else []


def _compare(bench: Workbench, kernel: Kernel, schedules: Sequence[Schedule], *, fresh: bool) -> PairedTimes:
    bench.checkpoint()
    try:
        bench.measuring.set()
        times = bench.device.compare(kernel, schedules, fresh=fresh)
    except CancelledError:
        raise Stopped from None
    if times.failure is not None:
        cause = f"{times.failure.kind}: {times.failure.cause}"
        bench.log(f"{kernel.label or kernel.key}: its finalists could not be timed in turns ({cause})", "warning")
    return times


def _chosen(found: Sequence[Difference], processes: int, plain: int, control: tuple[float, str]) -> int:
    """The position of the candidate to use: the first, unless others are faster beyond the noise in two processes.

    One with controls, from `plain` on, is used only if it beats the best without them too, while the first timed
    against itself does not differ.
    """
    if processes < PROCESSES_TO_OVERRULE:
        return 0
    faster = [(item.ratio, at) for at, item in enumerate(found, start=1) if item.verdict is Verdict.FASTER]
    without = min((item for item in faster if item[1] < plain), default=(1.0, 0))
    best = min(faster, default=without)
    sound = plain == 0 or control[1] == Verdict.WITHIN_NOISE
    if best[1] < plain or (sound and found[best[1] - 1].high < without[0]):
        return best[1]
    return without[1]


def controls_sentence(found: Sequence[Difference], plain: int, chosen: int, tried: int) -> str:
    """What came of the candidates with ptxas controls, for a person; `found` starts with the second finalist."""
    if chosen >= plain:
        winner = found[chosen - 1]
        return (
            f"ptxas controls win: {_ratio_text(1 / winner.ratio, 1 / winner.high, 1 / winner.low)} over the best "
            f"without (p {winner.p_value:.1e} corrected for {tried} tried, d {winner.effect:.1f})"
        )
    nearest = min(found[plain - 1 :], key=lambda item: item.ratio)
    return (
        f"no ptxas controls win: the best of {tried} tried is {1 / nearest.ratio:.3f}x the best without, "
        f"{nearest.verdict} (p {nearest.p_value:.1e} corrected, d {nearest.effect:.1f})"
    )


def _sentence(found: Sequence[Difference], chosen: int, processes: int) -> str:
    where = f"in {processes} process{'es' if processes > 1 else ''}"
    count = len(found) + 1
    if 0 < chosen < count:
        winner = found[chosen - 1]
        return (
            f"of {count} finalists timed in turns, number {chosen + 1} by deploy time is faster than the first: "
            f"{_ratio_text(1 / winner.ratio, 1 / winner.high, 1 / winner.low)} {where}"
        )
    if not found:
        return f"one finalist without ptxas controls {where}"
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
