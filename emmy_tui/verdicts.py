"""The verdict on two kept times, by the statistics that a tuning run judges its finalists with.

Loaded on the desk's thread, since it brings numpy along. Times whose samples are kept on both sides are judged by them;
others (results of another tuner, rows without samples) keep the verdict of their intervals.
"""

from __future__ import annotations

from dataclasses import replace

from emmy_tui.comparison import Comparison, Pair, Side, Verdict
from engine.measure import apart
from engine.store import Store
from engine.store.run_results import BestTime
from engine.vocabulary import Regime, Schedule
from engine.vocabulary import Verdict as Judgement

LEAST_SAMPLES = 3
_VERDICTS = {
    Judgement.FASTER: Verdict.A_FASTER,
    Judgement.SLOWER: Verdict.B_FASTER,
    Judgement.WITHIN_NOISE: Verdict.NOISE,
}


def by_samples(comparison: Comparison, store_a: Store, store_b: Store) -> Comparison:
    """The comparison with each verdict and interval taken from the samples, where both sides kept some.

    The noise floor is the higher one of what the two runs measured.
    """
    sides = ((store_a, comparison.a), (store_b, comparison.b))
    floor = max((store.noise_share(side.run.id) or 0.0) for store, side in sides)
    pairs = tuple(_judged(pair, store_a, comparison.a, store_b, comparison.b, floor) for pair in comparison.pairs)
    return replace(comparison, pairs=pairs)


def _judged(pair: Pair, store_a: Store, a: Side, store_b: Store, b: Side, floor: float) -> Pair:
    if pair.ratio is None or pair.regime is None or pair.verdict is Verdict.SAME or pair.a is None or pair.b is None:
        return pair
    mine = _samples(store_a, a, pair.kernel, pair.regime, pair.a)
    other = _samples(store_b, b, pair.kernel, pair.regime, pair.b)
    if min(len(mine), len(other)) < LEAST_SAMPLES:
        return pair
    found = apart(other, mine, floor)
    return replace(pair, low=found.low, high=found.high, verdict=_VERDICTS[found.verdict])


def _samples(store: Store, side: Side, kernel: str, regime: Regime, best: BestTime) -> tuple[float, ...]:
    """The windows of the row behind a best time; none where the row holds another time."""
    read = store.deploy if regime is Regime.DEPLOY else store.ranking
    row = read(kernel, Schedule.of(best.schedule), side.run.context_key)
    if row is None or row.timing is None or abs(row.timing.median_us - best.us) > 1e-6 * best.us:
        return ()
    return row.timing.samples
