"""What rounds with the screen and without it say of their difference, though the host has slow stretches.

A round's throughput is taken in windows of candidates: the seconds that a window's schedules take in all rounds over
those that they took, the logarithm of that, and of a round's windows the mean but for those far off. A window is longer
than a frame of the screen, so that each holds its share of what the screen does; single candidates would not, since a
frame falls on one in twenty of them, and a median of them would say nothing of it. What a screen did once in a round is
set aside as well: how many windows were, with the screen and without, is printed, and the plain rates hold all.

What follows one another in a round is not independent, so a round is one figure. Two neighbours, one with the screen
and one without, are a pair; which comes first turns round from pair to pair, so that a drift cancels. The estimate is
Hodges and Lehmann's over the pairs, with Wilcoxon's exact interval (Hollander, Wolfe, Chicken: Nonparametric
Statistical Methods, 3.2 and 3.3): a pair that a slow stretch spoilt is one among others. Below six pairs no such
interval of 95 % exists. Beside it stands the plain one: the mean over the pairs with Student's interval.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student
from scipy.stats import trim_mean

from tests.bench.screen_cost_rounds import Key, Round

Logs = npt.NDArray[np.float64]

WINDOW = 30
"""Candidates: of kernels that are compiled already 0.4 s on an H200, a frame or two."""
FAR = 3.0
"""Standard deviations of a round's windows from its median, taken over all rounds from their middle half."""
NORMAL_QUARTILE = 0.6745
LEAST_S = 1e-6
CUT = 0.25
"""On either side of what a result usually takes, in which the outer quarters don't count."""
AGREE = 0.01
DOUBT = 0.025
"""On either side of an interval of 95 %."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2

    def ratio(self) -> Interval:
        """Of a logarithm that of the ratio."""
        return Interval(math.exp(self.value), math.exp(self.low), math.exp(self.high))

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


def verdict(ratio: Interval) -> str:
    """What a ratio of on to off says of an agreement within 1 %."""
    if abs(ratio.value - 1) <= AGREE:
        sure = ratio.low >= 1 - AGREE and ratio.high <= 1 + AGREE
        return "agree within 1 %" + ("" if sure else ", and the interval is wider than that")
    return "not told apart" if ratio.low <= 1 <= ratio.high else "DIFFER by more than 1 %"


def order(turns: int) -> list[bool]:
    """Off and on, the pair turned round each time; True is on."""
    return [on for turn in range(turns) for on in ((False, True) if turn % 2 == 0 else (True, False))]


def pairs(rounds: Sequence[Round], figures: Sequence[float]) -> list[float]:
    """On less off of each two neighbours; what is left over at the end has no partner."""
    found = []
    for first in range(0, len(rounds) - 1, 2):
        on = first if rounds[first].on else first + 1
        assert rounds[first].on != rounds[first + 1].on
        found.append(figures[on] - figures[2 * first + 1 - on])
    return found


@dataclass(frozen=True, slots=True)
class Usual:
    """Seconds that a result takes until it arrives, after the one before, and those of its benchmark process."""

    whole_s: float
    run_s: float


def usual_seconds(rounds: Sequence[Round]) -> Mapping[Key, Usual]:
    """Of each result over all rounds, with the screen and without alike."""
    seconds: dict[Key, list[tuple[float, float]]] = defaultdict(list)
    for one in rounds:
        for before, arrival in pairwise(one.arrivals):
            seconds[arrival.key].append((arrival.at - before.at, arrival.run_s))
    return {key: Usual(*map(float, trim_mean(found, CUT, axis=0))) for key, found in seconds.items()}


@dataclass(frozen=True, slots=True)
class Speed:
    """The logarithm of a round's throughput over that of all rounds; how many windows it had, and were set aside."""

    log: float
    windows: int
    set_aside: int


def speeds(rounds: Sequence[Round], *, own: bool = False) -> list[Speed]:
    """Of each round the mean over its windows but for those far from its median.

    With `own` the benchmark process is reckoned with its usual seconds: what is left is how long it waits for the
    tuner's process, the screen's thread among that, and not how long that process, the GPU and the driver take.
    """
    usual = usual_seconds(rounds)
    each = [_windows(one, usual, own=own) for one in rounds]
    off = [np.abs(logs - np.median(logs)) for logs in each]
    far = FAR * float(np.median(np.concatenate(off))) / NORMAL_QUARTILE
    return [_speed(logs, away <= far) for logs, away in zip(each, off, strict=True)]


def _windows(one: Round, usual: Mapping[Key, Usual], *, own: bool) -> Logs:
    """The logarithms of what the candidates of each window usually take over what they took."""
    expected = [usual[arrival.key] for arrival in one.arrivals[1:]]
    seconds = np.diff([arrival.at for arrival in one.arrivals])
    if own:
        seconds += [a.run_s - b.run_s for a, b in zip(expected, one.arrivals[1:], strict=True)]
    starts = np.arange(max(1, len(seconds) // WINDOW)) * WINDOW  # the last window takes the rest
    taken = np.add.reduceat(seconds, starts)
    logs: Logs = np.log(np.add.reduceat([each.whole_s for each in expected], starts) / np.maximum(taken, LEAST_S))
    return logs


def _speed(logs: Logs, near: npt.NDArray[np.bool_]) -> Speed:
    log = float(logs[near].mean()) if near.any() else float(np.median(logs))
    return Speed(log, len(logs), int(len(logs) - near.sum()))


def levels(rounds: Sequence[Round], regime: str) -> tuple[list[float], int]:
    """The logarithm of each round's kernel times over those of all rounds, the median over the schedules that every
    round timed, and how many they are."""
    shared = [key for key in rounds[0].medians if key[2] == regime and all(key in one.medians for one in rounds)]
    if not shared:
        return [math.nan] * len(rounds), 0
    logs = np.log([[one.medians[key] for key in shared] for one in rounds])
    return [float(level) for level in np.median(logs - np.median(logs, axis=0), axis=1)], len(shared)


def robust(differences: Sequence[float]) -> Interval:
    """Hodges and Lehmann's estimate of the middle with Wilcoxon's interval; without bounds below six pairs."""
    each = np.asarray(differences)
    if not len(each) or not np.isfinite(each).all():
        return Interval(math.nan, math.nan, math.nan)
    rows, columns = np.triu_indices(len(each))
    means = np.sort((each[rows] + each[columns]) / 2)
    cut = signed_rank_cut(len(each))
    if cut == 0:
        return Interval(float(np.median(means)), -math.inf, math.inf)
    return Interval(float(np.median(means)), float(means[cut - 1]), float(means[-cut]))


def signed_rank_cut(count: int) -> int:
    """The largest c for which the signed-rank sum of `count` pairs is below c with a probability of DOUBT at most."""
    ways = np.zeros(count * (count + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, count + 1):
        ways[rank:] = ways[rank:] + ways[:-rank]
    chances = np.cumsum(ways) / 2.0**count
    return int(np.searchsorted(chances, DOUBT, side="right"))


def plain(differences: Sequence[float]) -> Interval:
    """The mean with Student's interval, which has no bounds for a single pair."""
    mean = statistics.mean(differences)
    if len(differences) < 2:
        return Interval(mean, -math.inf, math.inf)
    half = float(student.ppf(1 - DOUBT, len(differences) - 1)) * statistics.stdev(differences)
    half /= math.sqrt(len(differences))
    return Interval(mean, mean - half, mean + half)
