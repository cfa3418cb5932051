"""Is one kernel faster than another, or does the clock only say so? Statistics of repeated windows, and the verdict.

A difference counts when it shows in every process that took it, beyond what one kernel timed against itself differs by.
A small p-value alone proves little: windows of one process share its memory layout and its clocks, so they agree with
each other more than with the next process.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.vocabulary import Timing, Verdict

SIGNIFICANT = 0.05
NOTABLE_EFFECT = 0.2
"""Cohen's d below this is a small effect that no one would notice (Cohen, 1988)."""
BOOTSTRAP_DRAWS = 1000
PROCESS_SPREAD = 0.003
"""The share by which the ratio of another process differs at least: on an H200, three fresh processes differed by 0.1
to 0.3 % on a memory-bound kernel whose windows agreed within 0.03 %."""
UNKNOWN_FLOOR = 0.01
"""The noise floor where none was measured: a difference below 1 % is not believed."""
LEAST_SAMPLES = 3
"""Below this a timing is judged by its interval: a test of two windows says nothing."""

Pairs = Sequence[tuple[Sequence[float], Sequence[float]]]
"""The windows (us) of the first candidate and of another, a process each."""


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Welch:
    """Welch's t statistic, its degrees of freedom (Welch-Satterthwaite) and its two-sided p-value."""

    t: float
    degrees: float
    p_value: float


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """What one kernel timed against itself differs by: `share` of its time, and the same in us."""

    share: float
    us: float


@dataclass(frozen=True, slots=True)
class Difference:
    """A candidate against the first of its comparison. `ratio` is its time over the first's: below 1 is faster.

    [low, high] is where the ratio of another process is expected. `p_value` is corrected for the number compared,
    and, like `effect` (Cohen's d, positive when faster), that of the process least in favour of a difference.
    """

    ratio: float
    low: float
    high: float
    p_value: float
    effect: float
    verdict: Verdict


def welch(first: Sequence[float], second: Sequence[float]) -> Welch:
    """Welch's unequal-variances t-test of two means. Raises ValueError below two samples each (Welch, 1947)."""
    if min(len(first), len(second)) < 2:
        raise ValueError("a t-test needs two samples on each side")
    a, b = np.asarray(first, float), np.asarray(second, float)
    difference = float(a.mean() - b.mean())
    error_a, error_b = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    error = error_a + error_b
    if error == 0.0:
        return Welch(math.copysign(math.inf, difference) if difference else 0.0, math.inf, 0.0 if difference else 1.0)
    # Shares of the error, whose squares can't underflow.
    share_a, share_b = error_a / error, error_b / error
    degrees = 1.0 / (share_a**2 / (len(a) - 1) + share_b**2 / (len(b) - 1))
    t = difference / math.sqrt(error)
    return Welch(t, degrees, _two_sided(t, degrees))


def cohens_d(first: Sequence[float], second: Sequence[float]) -> float:
    """(mean of first - mean of second) / pooled standard deviation: positive when the second is faster.

    Raises ValueError below two samples each.
    """
    if min(len(first), len(second)) < 2:
        raise ValueError("an effect size needs two samples on each side")
    a, b = np.asarray(first, float), np.asarray(second, float)
    difference = float(a.mean() - b.mean())
    squares = (len(a) - 1) * float(a.var(ddof=1)) + (len(b) - 1) * float(b.var(ddof=1))
    pooled = math.sqrt(squares / (len(a) + len(b) - 2))
    if pooled == 0.0:
        return math.copysign(math.inf, difference) if difference else 0.0
    return difference / pooled


def holm(p_values: Sequence[float], tried: int = 0) -> tuple[float, ...]:
    """The p-values corrected for their number, in the order given (Holm, 1979): the chance of any false one is kept.

    `tried` is how many there would be with those that were left aside for looking worse; they count as larger ones.
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    count = max(tried, len(p_values))
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)


def median_interval(samples: Sequence[float], confidence: float = 0.95, seed: int = 0) -> Interval:
    """Bootstrap percentile interval of the median, the same for the same samples. Raises ValueError without samples."""
    if not samples:
        raise ValueError("no samples, no median")
    values = np.asarray(samples, float)
    draws = np.random.default_rng(seed).integers(0, len(values), (BOOTSTRAP_DRAWS, len(values)))
    medians = np.median(values[draws], axis=1)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(medians, (tail, 1.0 - tail), method="nearest")
    return Interval(float(low), float(high))


def noise_floor(first: Sequence[float], second: Sequence[float]) -> NoiseFloor:
    """From one kernel in both places of a paired comparison: windows in us, the i-th of each taken in round i.

    The floor is the far end of the interval of the median ratio. Raises ValueError for lengths that differ.
    """
    interval = median_interval(_ratios(first, second))
    share = max(abs(interval.low - 1.0), abs(interval.high - 1.0))
    return NoiseFloor(share, share * float(np.median([*first, *second])))


def differences(processes: Sequence[Sequence[Sequence[float]]], floor: float, tried: int = 0) -> tuple[Difference, ...]:
    """How each candidate but the first compares with the first, corrected for how many there are, or were `tried`.

    `processes[p][c][r]` is the window (us) of candidate c in round r of process p; `floor` is a share. The interval
    spans those of all processes and is wider by the floor or by what the processes differ by, whichever is more. Two
    processes may agree by chance on one candidate, so what they differ by is the most that any candidate shows.
    """
    pairs = [[(p[0], p[c]) for p in processes] for c in range(1, len(processes[0]))]
    margin = max([floor, PROCESS_SPREAD, *map(_spread, pairs)])
    rough = [_difference(of_candidate, margin) for of_candidate in pairs]
    corrected = holm([difference.p_value for difference in rough], tried)
    return tuple(_judged(difference, p_value) for difference, p_value in zip(rough, corrected, strict=True))


def apart(first: Sequence[float], second: Sequence[float], floor: float) -> Difference:
    """How the second's windows (us) compare with the first's where they were taken apart: in two runs, not in turns.

    The verdict is that of `differences`; the interval is that of a ratio of two medians, each with its own, wider by
    the floor (a share) or by what two processes differ by, whichever is more. Raises ValueError below two samples each.
    """
    mine, other = median_interval(first), median_interval(second)
    margin = 1.0 + apart_margin(floor)
    rough = Difference(
        ratio=float(np.median(second)) / float(np.median(first)),
        low=other.low / mine.high / margin,
        high=other.high / mine.low * margin,
        p_value=welch(first, second).p_value,
        effect=cohens_d(first, second),
        verdict=Verdict.WITHIN_NOISE,
    )
    return _judged(rough, rough.p_value)


def apart_margin(floor: float | None) -> float:
    """The share that two times taken apart must differ by, beyond their own intervals; `floor` None: not measured."""
    return max(UNKNOWN_FLOOR if floor is None else floor, PROCESS_SPREAD)


def judged_apart(first: Timing, second: Timing, floor: float | None) -> Difference:
    """How the second recorded time compares with the first: the one verdict on two times that are read, not taken.

    Kept samples are judged by `apart`; a time without enough of them by its interval, which is then its only witness
    (`p_value` is NaN and `effect` 0). `floor` is the share that the machine measured, None where it measured none.
    Raises ValueError for a time that is not above 0.
    """
    times = (first.low_us, first.median_us, first.high_us, second.low_us, second.median_us, second.high_us)
    if not all(0.0 < us < math.inf for us in times):
        raise ValueError("a time that is not above 0 compares with none")
    if min(len(first.samples), len(second.samples)) >= LEAST_SAMPLES:
        return apart(first.samples, second.samples, apart_margin(floor))
    margin = 1.0 + apart_margin(floor)
    ratio = second.median_us / first.median_us
    low = min(second.low_us / first.high_us, ratio) / margin
    high = max(second.high_us / first.low_us, ratio) * margin
    verdict = Verdict.FASTER if high < 1.0 else Verdict.SLOWER if low > 1.0 else Verdict.WITHIN_NOISE
    return Difference(ratio, low, high, math.nan, 0.0, verdict)


def _spread(pairs: Pairs) -> float:
    """The share by which the processes' median ratios differ."""
    middles = [float(np.median(_ratios(first, candidate))) for first, candidate in pairs]
    return max(middles) / min(middles) - 1.0


def _difference(pairs: Pairs, margin: float) -> Difference:
    """Uncorrected and without a verdict; the interval is wider by `margin`, a share."""
    ratios = [_ratios(first, candidate) for first, candidate in pairs]
    middles = [float(np.median(of_process)) for of_process in ratios]
    intervals = [median_interval(of_process) for of_process in ratios]
    effects = [cohens_d(first, candidate) for first, candidate in pairs]
    same_side = all(effect > 0 for effect in effects) or all(effect < 0 for effect in effects)
    return Difference(
        ratio=math.exp(sum(map(math.log, middles)) / len(middles)),
        low=min(interval.low for interval in intervals) / (1.0 + margin),
        high=max(interval.high for interval in intervals) * (1.0 + margin),
        p_value=max(welch(first, candidate).p_value for first, candidate in pairs),
        effect=min(effects, key=abs) if same_side else 0.0,
        verdict=Verdict.WITHIN_NOISE,
    )


def _judged(difference: Difference, p_value: float) -> Difference:
    verdict = Verdict.WITHIN_NOISE
    if p_value < SIGNIFICANT and difference.effect > NOTABLE_EFFECT and difference.high < 1.0:
        verdict = Verdict.FASTER
    elif p_value < SIGNIFICANT and difference.effect < -NOTABLE_EFFECT and difference.low > 1.0:
        verdict = Verdict.SLOWER
    d = difference
    return Difference(d.ratio, d.low, d.high, p_value, d.effect, verdict)


def _ratios(first: Sequence[float], second: Sequence[float]) -> list[float]:
    return [b / a for a, b in zip(first, second, strict=True)]


def _two_sided(t: float, degrees: float) -> float:
    """P(|T| > |t|) of Student's distribution: the regularized incomplete beta function at degrees/(degrees + t^2)."""
    return _incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b), from its continued fraction where that converges fast (DLMF 8.17.22), else by symmetry."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _incomplete_beta(b, a, 1.0 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    return min(1.0, front * _beta_fraction(a, b, x) / a)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of I_x(a, b) by Lentz's method."""
    tiny = 1e-300
    fraction, c, d = 1.0, 1.0, 0.0
    for i in range(400):
        m = i // 2
        if i == 0:
            numerator = 1.0
        elif i % 2 == 0:
            numerator = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            numerator = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1.0 + numerator * d
        d = 1.0 / (d if abs(d) > tiny else tiny)
        c = 1.0 + numerator / (c if abs(c) > tiny else tiny)
        fraction *= c * d
        if abs(c * d - 1.0) < 1e-14:
            break
    return fraction - 1.0
