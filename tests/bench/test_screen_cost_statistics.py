"""The statistics of `screen_cost` over arrivals that resemble those of an H200: do the intervals hold?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.bench.screen_cost_rounds import Arrival, Round
from tests.bench.screen_cost_statistics import (
    WINDOW,
    Interval,
    levels,
    order,
    pairs,
    plain,
    robust,
    signed_rank_cut,
    speeds,
    verdict,
)

SCHEDULES, TURNS, TRIALS = 285, 14, 24
FRAME_S = 0.25


def session(rng: np.random.Generator, *, stall_s: float = 0.0, share: float = 0.0) -> list[Round]:
    """The rounds of one call: the same schedules in another order each, slow stretches of the host that last from a
    third of a second to twenty and take a fiftieth of the time, a level of each round, a drift.

    With the screen, `stall_s` are lost at each frame, or every candidate takes `share` longer.
    """
    costs = 0.010 * rng.lognormal(0.0, 0.3, SCHEDULES)
    rounds, now = [], 0.0
    stretches = slow_stretches(rng, 400.0)
    start, end, by = stretches.pop(0)
    for number, on in enumerate(order(TURNS)):
        chosen = rng.permutation(SCHEDULES)
        level = rng.lognormal(0.0, 0.003) * (1 + 0.01 * number / (2 * TURNS)) * (1 + share * on)
        runs = costs[chosen] * rng.lognormal(0.0, 0.10, SCHEDULES) * level
        waits = 0.0025 * rng.lognormal(0.0, 0.4, SCHEDULES) * level
        began, arrivals, next_frame = now, [], now
        now += 0.8
        for schedule, run_s, wait_s in zip(chosen, runs, waits, strict=True):
            if now >= end and stretches:
                start, end, by = stretches.pop(0)
            factor = by if start <= now < end else 1.0
            now += (run_s + wait_s) * factor
            if on and now >= next_frame:
                now, next_frame = now + stall_s, now + FRAME_S
            arrivals.append(Arrival(now, ("k", str(schedule), "ranking"), run_s * factor))
        now += 1.0
        ruled = rng.normal(0.0, 0.002)
        medians = {("k", str(s), "ranking"): costs[s] * math.exp(ruled + rng.normal(0, 0.01)) for s in range(SCHEDULES)}
        rounds.append(Round(on, began, now, tuple(arrivals), medians))
    return rounds


def slow_stretches(rng: np.random.Generator, until_s: float) -> list[tuple[float, float, float]]:
    found, now = [], 0.0
    while (now := now + rng.exponential(40.0)) < until_s:
        lasts = min(20.0, 0.3 * (1 + rng.pareto(1.0)))
        found.append((now, now + lasts, rng.uniform(1.1, 2.0)))
        now += lasts
    return found


def throughput(rounds: list[Round], *, own: bool = False) -> Interval:
    return robust(pairs(rounds, [one.log for one in speeds(rounds, own=own)])).ratio()


def plainly(rounds: list[Round]) -> Interval:
    return plain(pairs(rounds, [math.log(one.rate) for one in rounds])).ratio()


def covered(found: list[Interval], truth: float) -> float:
    return sum(one.low <= truth <= one.high for one in found) / len(found)


def half(found: list[Interval]) -> float:
    return float(np.median([one.half for one in found]))


def test_without_an_effect_the_intervals_hold_one_and_are_narrow() -> None:
    rng = np.random.default_rng(0)
    sessions = [session(rng) for _ in range(TRIALS)]
    windows, own = ([throughput(one, own=own) for one in sessions] for own in (False, True))
    means = [plainly(one) for one in sessions]
    for name, found in (("windows", windows), ("own", own), ("plain", means)):
        print(f"\n{name}: covers {covered(found, 1.0):.0%}, half width {half(found):.2%}", end="")
    assert covered(windows, 1.0) >= 0.87
    assert covered(own, 1.0) >= 0.87
    assert half(windows) < 0.008
    assert half(own) < 0.005
    assert half(means) > 2 * half(windows)
    kept = speeds(sessions[0])
    assert all(one.windows == SCHEDULES // WINDOW for one in kept)
    assert 0 < sum(one.set_aside for one in kept) < 0.2 * sum(one.windows for one in kept)


@pytest.mark.parametrize(("stall_s", "share"), [(0.0075, 0.0), (0.0, 0.03)])
def test_an_effect_of_three_percent_is_seen_whether_it_is_even_or_comes_with_each_frame(
    stall_s: float, share: float
) -> None:
    rng = np.random.default_rng(1)
    found = [throughput(session(rng, stall_s=stall_s, share=share)) for _ in range(10)]
    assert np.median([one.value for one in found]) == pytest.approx(1 / 1.03, abs=0.004)
    assert sum("DIFFER" in verdict(one) for one in found) >= 9
    assert covered(found, 1 / 1.03) >= 0.75


def test_kernel_times_are_compared_round_by_round() -> None:
    rng = np.random.default_rng(2)
    found = []
    for _ in range(10):
        rounds = session(rng)
        figures, schedules = levels(rounds, "ranking")
        assert schedules == SCHEDULES
        found.append(robust(pairs(rounds, figures)).ratio())
    assert covered(found, 1.0) >= 0.75
    assert np.median([one.half for one in found]) < 0.005


def test_a_regime_that_nobody_timed_has_no_figure() -> None:
    rounds = session(np.random.default_rng(3))[:2]
    figures, schedules = levels(rounds, "deploy")
    assert schedules == 0
    assert math.isnan(robust(pairs(rounds, figures)).value)


@pytest.mark.parametrize(("count", "cut"), [(5, 0), (6, 1), (8, 4), (10, 9), (12, 14), (20, 53)])
def test_the_cut_is_that_of_the_tables_of_the_signed_rank_sum(count: int, cut: int) -> None:
    assert signed_rank_cut(count) == cut


def test_below_six_pairs_there_are_no_bounds() -> None:
    assert robust([0.01] * 5) == Interval(0.01, -math.inf, math.inf)
    assert "wider" in verdict(robust([0.001] * 5).ratio())
    assert str(robust([0.0] * 5).ratio()) == "1.0000 [0.0000, inf]"
    assert verdict(robust([0.001] * 6).ratio()) == "agree within 1 %"


def test_a_pair_is_on_less_off_whichever_came_first() -> None:
    rounds = session(np.random.default_rng(4))
    assert pairs(rounds, [float(one.on) for one in rounds]) == [1.0] * TURNS
    assert pairs(rounds[:5], [0.1] * 5) == [0.0] * 2


def test_one_spoilt_pair_of_twelve_does_not_move_the_robust_interval_far() -> None:
    rng = np.random.default_rng(5)
    clean = rng.normal(0.0, 0.004, 12)
    spoilt = np.append(clean[:-1], -0.4)
    assert robust(spoilt.tolist()).half < 1.7 * robust(clean.tolist()).half
    assert plain(spoilt.tolist()).half > 5 * plain(clean.tolist()).half
