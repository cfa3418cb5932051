"""Strategies over a recorded landscape: ours, and what measured best among others, written anew from descriptions.

Each takes a ledger and a seed and measures until the ledger says that it is spent. ILS, RF-EI and LFBO are not tuned
to any landscape; their settings are those of the descriptions they come from.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from engine.prior import Surrogate
from engine.prior.columns import KnobTable
from engine.prior.surrogate import log_expected_improvement
from engine.search import EnumeratedSpace, Path, Proposal, Search
from engine.tune.scoring import LearningSearch
from engine.vocabulary import KnobValue, Option, Schedule
from tests.bench.landscape import Landscape, Ledger

Strategy = Callable[[Ledger, int], None]
Rows = NDArray[np.int64]


class View(Enum):
    """Whose prediction a search starts from: `LEARNED` is a prior trained on the other kernels only."""

    NONE = "none"
    COLD = "cold"
    LEARNED = "learned"

    def of(self, land: Landscape) -> NDArray[np.float64] | None:
        return {View.NONE: None, View.COLD: land.predicted, View.LEARNED: land.learned}[self]


def ours(most_ahead: int = 32, view: View = View.COLD) -> Strategy:
    """The tree search steered by a surrogate, as a run walks it, from somebody's view of the kernel."""

    def run(ledger: Ledger, seed: int) -> None:
        land = ledger.landscape
        surrogate = Surrogate(land.candidates, view.of(land), seed)
        search = LearningSearch(EnumeratedSpace(land.candidates), surrogate, patience=ledger.budget)
        rows = {Schedule.of(knobs).key: row for row, knobs in enumerate(land.candidates)}
        ahead: deque[Proposal] = deque()
        while True:
            while len(ahead) < search.ahead(most_ahead) and (proposal := search.ask()) is not None:
                ahead.append(proposal)
            if not ahead:
                return
            first = ahead.popleft()
            us = ledger.measure(rows[Schedule.of(first.knobs).key])
            search.tell(first, None if us is None else 1 / us)

    return run


def tree_alone(view: View = View.COLD) -> Strategy:
    """The tree search in the order of a prediction, without a surrogate. It has no randomness.

    So that medians mean something, a seed gives the values of each knob another order: ties fall elsewhere.
    """

    def run(ledger: Ledger, seed: int) -> None:
        land = ledger.landscape
        random = np.random.default_rng(seed)
        renamed = {
            name: dict(zip(map(repr, values), random.permutation(len(values)).tolist(), strict=True))
            for name, values in land.table.values.items()
        }
        leaves: list[dict[str, KnobValue]] = [
            {name: renamed[name][repr(value)] for name, value in knobs.items()} for knobs in land.candidates
        ]
        rows = {Schedule.of(leaf).key: row for row, leaf in enumerate(leaves)}
        predicted = view.of(land)
        hidden = KnobTable(leaves)

        def score(path: Path, options: Sequence[Option]) -> Sequence[float]:
            if predicted is None:
                return [math.nan] * len(options)
            fixed = {name: value for option in path for name, value in option.knobs}
            allowed = hidden.agreeing(np.ones(len(leaves), dtype=np.bool_), fixed)
            return [math.exp(-predicted[hidden.agreeing(allowed, dict(o.knobs))].min()) for o in options]

        search = Search(EnumeratedSpace(leaves), score, patience=ledger.budget)
        while (proposal := search.ask()) is not None:
            us = ledger.measure(rows[Schedule.of(proposal.knobs).key])
            search.tell(proposal, None if us is None else 1 / us)

    return run


def at_random(ledger: Ledger, seed: int) -> None:
    for row in np.random.default_rng(seed).permutation(len(ledger.landscape)):
        ledger.measure(row)


def local_search(ledger: Ledger, seed: int) -> None:
    """First improvement over one-knob changes; kick the best by two changes; restart after 50 dry kicks."""
    land, random = ledger.landscape, np.random.default_rng(seed)
    while True:
        best = int(random.integers(len(land)))
        best_us = _climb(ledger, best, random)
        dry = 0
        while dry < 50:
            far = land.neighbours(best_us[0], 2)
            start = int(random.choice(far)) if len(far) else int(random.integers(len(land)))
            end = _climb(ledger, start, random)
            dry = 0 if end[1] < best_us[1] else dry + 1
            best_us = min(best_us, end, key=lambda item: item[1])
            if len(ledger.order) >= ledger.budget:
                ledger.measure(next((row for row in range(len(land)) if not ledger.seen(row)), 0))
                return


def _climb(ledger: Ledger, start: int, random: np.random.Generator) -> tuple[int, float]:
    """Where first improvements over one-knob changes lead from `start`, and its time (inf = failed)."""
    here, us = start, ledger.measure(start) or math.inf
    better = True
    while better:
        better = False
        for row in random.permutation(ledger.landscape.neighbours(here)):
            found = ledger.measure(row) or math.inf
            if found < us:
                here, us, better = int(row), found, True
                break
    return here, us


def forest_improvement(ledger: Ledger, seed: int) -> None:
    """20 at random, then the largest expected improvement by a forest of 30 trees; refit each time, from 150 on every
    second."""
    land, random = ledger.landscape, np.random.default_rng(seed)
    columns = land.table.codes.astype(np.float32)
    for row in random.permutation(len(land))[:20]:
        ledger.measure(row)
    mean, spread = np.zeros(len(land)), np.ones(len(land))
    while True:
        rows, times = _answered(ledger)
        if len(rows) < 2:
            ledger.measure(random.choice(_unseen(ledger)))
            continue
        if len(ledger.order) < 150 or len(ledger.order) % 2 == 0:
            forest = RandomForestRegressor(30, random_state=seed).fit(columns[rows], times)
            told = np.array([tree.predict(columns, check_input=False) for tree in forest.estimators_])
            mean, spread = told.mean(axis=0), told.std(axis=0) + 1e-4
        unseen = _unseen(ledger)
        worth = log_expected_improvement(float(times.min()), mean[unseen], spread[unseen])
        ledger.measure(unseen[int(np.argmax(worth))])


def likelihood_free(ledger: Ledger, seed: int) -> None:
    """30 at random; a forest tells the best tenth from the rest; the two best copies each offer 300 neighbours, of
    which the tenth that it likes best, made unlike each other by a penalty, is measured; at a standstill, the next
    best points start."""
    land, random = ledger.landscape, np.random.default_rng(seed)
    columns = land.table.codes.astype(np.float32)
    for row in random.permutation(len(land))[:30]:
        ledger.measure(row)
    used: set[int] = set()
    while True:
        rows, times = _answered(ledger)
        ranked = [int(row) for row in rows[np.argsort(times, kind="stable")]]
        starts = [row for row in ranked if row not in used][:2] or [int(random.choice(_unseen(ledger)))]
        used.update(starts)
        for copy in starts:
            _improve_copy(ledger, columns, copy, random, seed)


def _improve_copy(
    ledger: Ledger, columns: NDArray[np.float32], copy: int, random: np.random.Generator, seed: int
) -> None:
    here, us = copy, ledger.measure(copy) or math.inf
    while True:
        near = [row for row in _shuffled_neighbours(ledger, here, random)[:300] if not ledger.seen(row)]
        if not near:
            return
        rows, times = _answered(ledger)
        good = times <= np.quantile(times, 0.1) if len(times) else np.zeros(0, dtype=np.bool_)
        picks = near[: max(1, len(near) // 10)]
        if len(rows) > 2 and good.any() and not good.all():
            forest = RandomForestClassifier(100, random_state=seed, min_samples_leaf=1)
            forest.fit(columns[rows], good, sample_weight=np.where(good, _gain(times), 1.0))
            picks = _unlike(forest, columns[near], np.array(near), max(1, len(near) // 10))
        found = [(ledger.measure(row) or math.inf, row) for row in picks]
        if min(found)[0] >= us:
            return
        us, here = min(found)


def _gain(times: NDArray[np.float64]) -> NDArray[np.float64]:
    gain = np.quantile(times, 0.1) - times
    top = gain.max()
    return np.maximum(gain / top if top > 0 else np.ones(len(times)), 0.05)


def _unlike(forest: RandomForestClassifier, columns: NDArray[np.float32], rows: Rows, count: int) -> list[int]:
    """The likeliest, each next one marked down by the share of trees in which it sits in a chosen one's leaf."""
    likely = forest.predict_proba(columns)[:, list(forest.classes_).index(True)]
    leaves = forest.apply(columns)
    chosen: list[int] = []
    for _ in range(count):
        alike = np.array([(leaves == leaves[one]).mean(axis=1) for one in chosen]).sum(axis=0) if chosen else 0.0
        marked = likely - 0.5 * alike
        marked[chosen] = -np.inf
        chosen.append(int(np.argmax(marked)))
    return [int(rows[one]) for one in chosen]


def _shuffled_neighbours(ledger: Ledger, here: int, random: np.random.Generator) -> list[int]:
    land = ledger.landscape
    near, far = land.neighbours(here), land.neighbours(here, 2)
    return [int(row) for row in (*random.permutation(near), *random.permutation(far))]


def _answered(ledger: Ledger) -> tuple[Rows, NDArray[np.float64]]:
    """Rows that were timed, and ln of their times."""
    rows = np.array(ledger.order, dtype=np.int64)
    rows = rows[~np.isnan(ledger.landscape.us[rows])]
    return rows, np.log(ledger.landscape.us[rows])


def _unseen(ledger: Ledger) -> Rows:
    return np.array([row for row in range(len(ledger.landscape)) if not ledger.seen(row)], dtype=np.int64)
