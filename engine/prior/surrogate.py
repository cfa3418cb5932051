"""What a kernel's own measurements say of the candidates not tried yet: a model that corrects the prior as it learns.

A random forest on the logarithm of the time (Breiman 2001) predicts mean and spread of every open candidate, from its
knobs and from what the prior predicted. A candidate's worth is its expected improvement over the best time
(Jones et al. 1998), times the share of trees of a second forest that expect it to work. Every other candidate is
chosen among those that change a single knob of one of the best few, knob by knob in turn: a forest that has seen a
knob's value fail elsewhere would not try it where it works, and a climb alone ends in the first basin. When answers
stay dry, every fourth is drawn from all that is open, because a forest is sure of its opinion about places it has
never seen.

With several candidates in flight, what is like one of them waits for its answer.

Tried on twelve kernels recorded on an H200, 5 to 8 seeds each. Behind: climbing a third of the time, even draws among
the first candidates, 20 answers in a learned prior's order before the first fit, not telling the forest what a learned
prior predicted, and a few trees regrown after each answer or three instead of all of them now and then. Level: twice
as many fits, even draws after 10 dry answers; withholding the cold prior's predictions (20 seeds: 93 instead of 92 %
end within 5 %, to 5 % it takes 5.4 instead of 5.2). None cures a wide layer_norm, where the cold prior begins in a
poor basin: at the default patience 5 to 15 % of the seeds end within 5 % of its best, most of the others 9 % above.

Tried on two recorded landscapes of Kernel Tuner, 12 to 40 seeds each. Behind on both: climbing by expected improvement
alone. Behind on the hard one only, level or ahead on the easy one: the forest without climbing, extremely randomized
trees, a Gaussian process, a lower confidence bound, a first window balanced over knob values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.prior.columns import KnobTable
from engine.prior.forest import Forest
from engine.vocabulary import KnobValue, Option, knobs_text

Knobs = Mapping[str, KnobValue]
Column = NDArray[np.float64]
Mask = NDArray[np.bool_]
_Asked = tuple[tuple[tuple[str, KnobValue], ...], tuple[tuple[tuple[str, KnobValue], ...], ...]]

START = 10
"""Answers before the first fit: fewer points in a dozen dimensions show a forest chance."""
DRY = 20
"""Answers without a new best after which some candidates are drawn evenly."""
REFIT = 3
"""Answers between two fits, at least."""
REFIT_SHARE = 4
"""Beside a prior, a fit also waits for one new answer to so many old ones, because it costs more with each."""
TREES = 30
TREES_BESIDE_PRIOR = 20
"""Level with 30, and a third cheaper; where nothing else knows the kernel, fewer than 30 need more measurements."""
CLIMBED = 10
"""How many of the best candidates have their neighbourhood climbed."""
SHARPNESS = 8.0
"""The power of a worth that becomes a speed: high, so that a descent goes where the worth is highest."""
LEAST_SPREAD = 1e-4
LEAST_CHANCE = 1e-6
"""Of working, where every tree expects a failure: such a candidate comes last, and is not left out for good."""
_OUTSIDE = 1e6


class Surrogate:
    """A scorer of one kernel's options that learns from answers; it knows its candidates and nothing else.

    `candidates` are the full assignments of the space, `predicted` what a prior expects of each (ln us), if there is
    one. `seed` orders the first candidates where no prior does, and grows the forests: same seed, same answers, same
    speeds. Not thread-safe.
    """

    guided: bool
    """Whether a prior orders the candidates before anything is known of them."""

    EXPLORATION = 1e6
    """The exploration constant for a search that it steers: worth already weighs what is known against what isn't,
    so the search's own term for known rewards must not count a second time."""

    def __init__(self, candidates: Sequence[Knobs], predicted: Sequence[float] | None = None, seed: int = 0) -> None:
        keys = [knobs_text(knobs) for knobs in candidates]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        self._table = KnobTable([candidates[i] for i in order])
        self._rows = {keys[i]: row for row, i in enumerate(order)}
        self._seed = seed
        self._open: Mask = np.ones(len(order), dtype=np.bool_)
        self._log_us: Column = np.full(len(order), np.nan)
        self._failed: Mask = np.zeros(len(order), dtype=np.bool_)
        self._columns = self._table.columns()
        self._answers = 0
        self._taken = 0
        self._fitted_at = 0
        self._dry = 0
        self._drawn: Column = np.random.default_rng(seed).permutation(len(order)) / max(len(order), 1)
        if predicted is None:
            self._first = self._drawn
        else:
            prior = np.array([predicted[i] for i in order], dtype=np.float64)
            self._first = -prior
            self._columns = np.column_stack([self._columns, prior.astype(np.float32)])
        self.guided = predicted is not None
        self._trees = TREES_BESIDE_PRIOR if self.guided else TREES
        self._mean: Column = np.zeros(len(order))
        self._spread: Column = np.ones(len(order))
        self._log_works: Column = np.zeros(len(order))
        self._worth: Column | None = None
        self._completing: dict[_Asked, list[NDArray[np.int64]]] = {}
        self._leaves: NDArray[np.int32] | None = None
        self._log_apart: Column = np.zeros(len(order))

    def begin(self, knobs: Knobs) -> None:
        """A candidate is being measured: it is worth nothing to propose it again."""
        row = self._rows.get(knobs_text(knobs))
        if row is not None and self._open[row]:
            self._open[row] = False
            self._taken += 1
            self._keep_apart([row])
            self._worth = None

    def release(self, knobs: Knobs) -> None:
        """A candidate that was begun is given back unanswered."""
        row = self._rows.get(knobs_text(knobs))
        if row is not None and self._under_way()[row]:
            self._open[row] = True
            self._worth = None

    def learn(self, knobs: Knobs, us: float | None) -> None:
        """A candidate's time (> 0), or None if it failed. Raises ValueError on a time that is none."""
        if us is not None and not (math.isfinite(us) and us > 0):
            raise ValueError(f"a time must be finite and above 0, not {us}; a failed candidate has None")
        self.begin(knobs)
        row = self._rows.get(knobs_text(knobs))
        if row is None:
            return
        self._answers += 1
        best = us is not None and not bool((self._log_us <= math.log(us)).any())
        self._dry = 0 if best else self._dry + 1
        self._failed[row] = us is None
        self._log_us[row] = np.nan if us is None else math.log(us)
        self._worth = None

    def speeds(self, fixed: Knobs, options: Sequence[Option]) -> list[float]:
        """One number an option, the best sibling having 1: the worth of its best open completion after `fixed`.

        NaN where no open candidate completes it. Before the first fit it is the prior's order, or the seed's.
        """
        worth = self._open_worth()
        best = [_highest(worth[rows]) for rows in self._completions(fixed, options)]
        top = max((value for value in best if not math.isnan(value)), default=math.nan)
        sharpness = SHARPNESS if self._fitted_at or not self.guided else 1.0
        return [math.nan if math.isnan(value) else math.exp(sharpness * (value - top)) for value in best]

    def _completions(self, fixed: Knobs, options: Sequence[Option]) -> list[NDArray[np.int64]]:
        """The rows of the candidates that complete each option after `fixed`, open or not; kept, as a search asks for
        them again and again."""
        key = (tuple(fixed.items()), tuple([option.knobs for option in options]))
        known = self._completing.get(key)
        if known is None:
            allowed = self._table.agreeing(np.ones_like(self._open), fixed)
            asked = [self._table.agreeing(allowed, dict(option.knobs)) for option in options]
            known = self._completing[key] = [np.flatnonzero(rows) for rows in asked]
        return known

    def _open_worth(self) -> Column:
        """The logarithm of every candidate's worth, -inf where it is not open."""
        if self._worth is None:
            self._worth = np.where(self._open, self._judge(), -np.inf)
        return self._worth

    def _judge(self) -> Column:
        known = ~np.isnan(self._log_us)
        if self._answers < START or known.sum() < 2:
            return self._first
        if not self._fitted_at or self._answers - self._fitted_at >= self._interval():
            self._fit(known)
        if self._dry >= DRY and self._taken % 4 == 0:
            return self._drawn + self._log_works
        best = float(self._log_us[known].min())
        worth = log_expected_improvement(best, self._mean, self._spread) + self._log_works + self._log_apart
        if self._taken % 2:
            climbed = self._neighbours(known)
            if climbed.any():
                worth = worth - np.where(climbed, 0.0, _OUTSIDE)
        return worth

    def _interval(self) -> int:
        """Answers until the next fit."""
        return max(REFIT, self._answers // REFIT_SHARE) if self.guided else REFIT

    def _fit(self, known: Mask) -> None:
        grown = Forest.grow(self._columns[known], self._log_us[known], trees=self._trees, seed=self._seed)
        answers = grown.ask(self._columns)
        self._mean, self._spread = answers.told.mean(axis=0), answers.told.std(axis=0) + LEAST_SPREAD
        self._leaves = answers.leaves.astype(np.int32)
        if self._failed.any():
            answered = known | self._failed
            worked = known[answered].astype(np.float64)
            verdict = Forest.grow(self._columns[answered], worked, trees=self._trees, seed=self._seed, least_leaf=2)
            self._log_works = np.log(np.maximum(verdict.ask(self._columns).told.mean(axis=0), LEAST_CHANCE))
        self._log_apart = np.zeros(len(self._open))
        self._keep_apart(np.flatnonzero(self._under_way()))
        self._fitted_at = self._answers

    def _under_way(self) -> Mask:
        """Candidates that were begun and not answered."""
        under_way: Mask = ~self._open & np.isnan(self._log_us) & ~self._failed
        return under_way

    def _keep_apart(self, rows: Iterable[int]) -> None:
        """Lower the worth of what is like a candidate in flight, by the share of trees that hold both in one leaf.

        The answer under way will tell of them too.
        """
        leaves = self._leaves
        if leaves is None:
            return
        most = np.zeros(len(self._open), dtype=np.int64)
        for row in rows:
            alike = (leaves == leaves[:, row, None]).view(np.uint8)
            most = np.maximum(most, np.add.reduce(alike, axis=0, dtype=np.uint8))  # of fewer than 256 trees
        apart = np.log(np.maximum(1.0 - most / len(leaves), LEAST_CHANCE))
        self._log_apart = np.minimum(self._log_apart, apart)

    def _neighbours(self, known: Mask) -> Mask:
        """Open candidates that change the one knob of one of the best candidates whose turn it is.

        A knob's turn comes after as many others as its changes were tried there already, and a place later for each
        better candidate: at the best one every knob is changed once before any is changed twice.
        """
        codes = self._table.codes
        rows = np.flatnonzero(known)
        ranked = rows[np.argsort(self._log_us[rows], kind="stable")][:CLIMBED]
        near: Mask = np.zeros(len(self._open), dtype=np.bool_)
        earliest = math.inf
        for rank, row in enumerate(ranked):
            if rank > earliest:
                break
            differs = codes != codes[row]
            single = differs.sum(axis=1) == 1
            tried = differs[single & ~self._open].sum(axis=0)
            for knob in np.flatnonzero(differs[single & self._open].any(axis=0)):
                turn = rank + int(tried[knob])
                if turn < earliest:
                    earliest, near = turn, np.zeros_like(near)
                if turn == earliest:
                    near |= single & differs[:, knob]
        return near & self._open


def log_expected_improvement(best: float, mean: Column, spread: Column) -> Column:
    """ln of E[max(best - X, 0)] for normal X (Jones, Schonlau, Welch 1998), finite however unlikely a gain is."""
    from scipy.special import ndtr  # comes with scikit-learn, and is loaded after it

    u = (best - mean) / spread
    density = np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi)
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.log(u * ndtr(u) + density)
        far = -0.5 * u * u - 0.5 * math.log(2 * math.pi) - 2 * np.log(np.abs(u))
    chosen: Column = np.log(spread) + np.where(u > -5, near, far)
    return chosen


def _highest(values: Column) -> float:
    """NaN where nothing is open."""
    highest = float(values.max(initial=-math.inf))
    return math.nan if highest == -math.inf else highest
