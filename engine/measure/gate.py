"""What may pass as a result: outputs as exact as eager's in the same dtype, and times that the chip can reach.

Pure numbers. A deviation is measured against a float64 reference; eager's own deviation on the same inputs, times a
factor, is the limit, but never less than what rounding to the output's dtype costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.vocabulary import Failure, FailureKind, Target

Pairs = Sequence[tuple[float, float]]
"""(norm, worst element) of each output."""

FACTOR = 4.0
"""A different order of summation moves the error by less than this; TF32 in place of IEEE fp32 moves it 1000-fold."""

FLOPS_MARGIN = 1.3
"""Above the measured peak: a short burst runs at higher clocks than a long product does."""

L2_SPEEDUP = 5.0
"""Replays over warm data move bytes faster than memory can, up to about this many times (L2 against HBM)."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """`norm` is |out - ref| / |ref|; `worst` is max |out - ref| / (|ref| + rms(ref))."""

    norm: float
    worst: float


FLOORS: dict[str, Deviation] = {
    "float64": Deviation(1e-12, 1e-11),
    "float32": Deviation(2e-6, 2e-5),
    "float16": Deviation(7e-4, 3e-3),
    "bfloat16": Deviation(5e-3, 2e-2),
}
"""A few times the deviation of one rounding to the dtype (norm: 2^-p / sqrt(3), p the bits of its significand)."""

EXACT = Deviation(0.0, 0.0)


def tolerance(eager: Deviation, dtype: str) -> Deviation:
    """The limit for an output of `dtype` where eager deviates by `eager`; integers and bools have no floor."""
    floor = FLOORS.get(dtype, EXACT)
    return Deviation(_limit(eager.norm, floor.norm), _limit(eager.worst, floor.worst))


def wrong_result(found: Sequence[Deviation], limits: Sequence[Deviation]) -> Failure | None:
    """A failure unless every output is within its limit. NaN never passes."""
    for got, limit in zip(found, limits, strict=True):
        if got.norm <= limit.norm and got.worst <= limit.worst:
            continue
        if math.isnan(got.norm) or math.isnan(got.worst):
            cause = "NaN or infinity where the reference has none, or the other way round (or never written)"
        elif got.norm > limit.norm:
            cause = f"relative error {got.norm:.1e}, limit {limit.norm:.1e}"
        else:
            cause = f"worst element off by {got.worst:.1e} of its size, limit {limit.worst:.1e}"
        return Failure(FailureKind.WRONG_RESULT, cause)
    return None


def less_exact_than_eager(
    found: Pairs, eager: Pairs, dtypes: Sequence[str], rounding: Callable[[], Pairs] | None = None
) -> Failure | None:
    """A failure unless every output is as exact as eager's in its dtype: (norm, worst) of each, and torch's names.

    `rounding` gives what rounding the inputs moves each output by, which stands for eager's deviation where it is more.
    It widens limits, so it is asked only where eager's own don't let the outputs pass.
    """
    failure = _beyond(found, eager, dtypes)
    if failure is None or rounding is None or any(math.isnan(one) for pair in found for one in pair):
        return failure
    wider = [(_worse(a, c), _worse(b, d)) for (a, b), (c, d) in zip(eager, rounding(), strict=True)]
    return _beyond(found, wider, dtypes)


def _beyond(found: Pairs, eager: Pairs, dtypes: Sequence[str]) -> Failure | None:
    limits = [
        tolerance(Deviation(*pair), dtype.removeprefix("torch.")) for pair, dtype in zip(eager, dtypes, strict=True)
    ]
    return wrong_result([Deviation(*pair) for pair in found], limits)


def _worse(eager: float, moved: float) -> float:
    """The larger deviation; where eager's is NaN the floor is the limit."""
    return eager if math.isnan(eager) else max(eager, moved)


def largest_norm(found: Sequence[tuple[float, float]]) -> float:
    """The one error that is recorded: the largest relative norm of all outputs; NaN wins."""
    norms = [norm for norm, _ in found]
    return math.nan if any(math.isnan(norm) for norm in norms) else max(norms, default=0.0)


def impossible_time(us: float, flops: int, bytes_moved: int, target: Target) -> Failure | None:
    """A failure if `us` is not a positive time, or means more FLOP/s or bytes/s than the chip can reach."""
    if not (math.isfinite(us) and us > 0):
        return Failure(FailureKind.IMPOSSIBLE_TIME, "the measured time is not a positive number")
    seconds = us * 1e-6
    peak = FLOPS_MARGIN * max(target.peak_bf16, target.peak_tf32, target.peak_fp32)
    if flops / seconds > peak:
        return Failure(FailureKind.IMPOSSIBLE_TIME, f"more than the {peak / 1e12:.0f} TFLOP/s that the chip can reach")
    bandwidth = L2_SPEEDUP * target.memory_bandwidth
    if bytes_moved / seconds > bandwidth:
        return Failure(FailureKind.IMPOSSIBLE_TIME, f"more than the {bandwidth / 1e12:.1f} TB/s that the L2 can reach")
    return None


def _limit(eager: float, floor: float) -> float:
    return floor if math.isnan(eager) else max(FACTOR * eager, floor)
