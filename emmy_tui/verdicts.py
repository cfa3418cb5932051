"""The verdict on two kept times, by the statistics that a tuning run judges its finalists with.

Two runs, two candidates and a pin beside the best are told apart by one function, `engine.measure.judged_apart`: by
the samples where both times kept some, else by their intervals, and never closer than the noise floor that the machine
measured or than what two processes differ by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from emmy_tui import format as fmt
from emmy_tui.comparison import Comparison, Pair, Side, Verdict
from engine.measure import judged_apart
from engine.store import Candidate, Store
from engine.store.run_results import BestTime
from engine.vocabulary import Regime, Schedule, Timing
from engine.vocabulary import Verdict as Judgement

_VERDICTS = {
    Judgement.FASTER: Verdict.A_FASTER,
    Judgement.SLOWER: Verdict.B_FASTER,
    Judgement.WITHIN_NOISE: Verdict.NOISE,
}


def judged_pairs(comparison: Comparison, store_a: Store, store_b: Store) -> Comparison:
    """The comparison with the verdict and the interval of each two times.

    The noise floor is the higher one of what the two runs measured.
    """
    sides = ((store_a, comparison.a), (store_b, comparison.b))
    known = [share for store, side in sides if (share := store.noise_share(side.run.id)) is not None]
    floor = max(known, default=None)
    pairs = tuple(_judged(pair, store_a, comparison.a, store_b, comparison.b, floor) for pair in comparison.pairs)
    return replace(comparison, pairs=pairs)


def _judged(pair: Pair, store_a: Store, a: Side, store_b: Store, b: Side, floor: float | None) -> Pair:
    if pair.ratio is None or pair.regime is None or pair.a is None or pair.b is None:
        return pair
    if pair.a == pair.b and a.run.context_key == b.run.context_key:  # the second run was served the first one's
        return replace(pair, verdict=Verdict.SHARED)
    mine = _kept(store_a, a, pair.kernel, pair.regime, pair.a)
    other = _kept(store_b, b, pair.kernel, pair.regime, pair.b)
    return judged(pair, mine, other, floor)


def judged(pair: Pair, mine: Timing, other: Timing, floor: float | None) -> Pair:
    """The pair of two times with its verdict; one of a time that is not above 0 stays as it is."""
    try:
        found = judged_apart(other, mine, floor)
    except ValueError:
        return pair
    same = pair.a == pair.b or pair.ratio == 1
    return replace(pair, low=found.low, high=found.high, verdict=Verdict.SAME if same else _VERDICTS[found.verdict])


def timing_of(best: BestTime) -> Timing:
    """A best time as it was told, without samples; without an interval it is one of no width."""
    low, high = (best.us if us is None else us for us in (best.low_us, best.high_us))
    return Timing(best.us, low, high)


def _kept(store: Store, side: Side, kernel: str, regime: Regime, best: BestTime) -> Timing:
    """The row behind a best time, with its samples; the time as it was told where the row holds another one."""
    row = store.fastest_of(kernel, Schedule.of(best.schedule), side.run.context_key, regime)
    if row is None or abs(row.median_us - best.us) > 1e-6 * best.us:
        return timing_of(best)
    return row


def read_verdict(first: Candidate, second: Candidate) -> Callable[[Store], str]:
    """The question that a desk answers: which of two candidates is faster, by the regime that both have a time in."""

    def question(store: Store) -> str:
        if first.context != second.context:
            return "They were measured in two contexts, whose times are never compared."
        if first.kernel != second.kernel:
            return "They are two kernels, whose times are never compared."
        deployed = first.deploy_us is not None and second.deploy_us is not None
        regime, where = (Regime.DEPLOY, "deploy") if deployed else (Regime.RANKING, "ranking")
        a, b = (store.fastest_of(row.kernel, Schedule.of(row.schedule), row.context, regime) for row in (first, second))
        if a is None or b is None:
            return "One of them has no time, so there is nothing to compare."
        return sentence(a, b, store.context_noise_share(first.context), f"in the {where} regime")

    return question


def sentence(a: Timing, b: Timing, floor: float | None, where: str) -> str:
    """What two times of one regime say, with where another process would find B's time over A's."""
    try:
        found = judged_apart(a, b, floor)
    except ValueError:
        return f"One of the times {where} is not above 0, so there is nothing to compare."
    low, high = fmt.ratios((found.low, found.high), apart=found.verdict is not Judgement.WITHIN_NOISE)
    span = f"B takes {low} to {high} of A's time"
    if found.verdict is Judgement.WITHIN_NOISE:
        return f"Within noise {where}: {span}."
    name, share = ("B", found.ratio) if found.verdict is Judgement.FASTER else ("A", 1 / found.ratio)
    return f"{name} is faster by {(1 - share) * 100:.1f} % {where}: {span}."
