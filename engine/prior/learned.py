"""The prior that learns: what the cold model errs by, as gradient-boosted trees over features (NaN = not decided yet).

The trees answer the logarithm of a ratio, within the range of the ratios they were fitted to. So a kernel unlike all
others keeps the cold model's view of it up to a factor that was seen before, and is never promised a wild time.
Slow candidates weigh less by the square of their time over the kernel's best, because a search asks about the fast end;
kernels weigh alike however many rows they have. On twelve recorded kernels of an H200, each predicted from the other
eleven, the rank correlation is 0.86 (cold model: 0.59) and the winner is 11th of up to 3,000 by the geometric mean
(21st). Behind on the same test: equal weights, labels centred by kernel, no facts of kernel and chip among the columns.
The model is a value: refitting makes another one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.prior.cold import ColdModel
from engine.prior.features import FeatureMatrix
from engine.prior.geometry import Column
from engine.prior.reservoir import aligned
from engine.prior.trees import Trees, grow

LEAST_ROWS = 20
"""Fewer rows say no more than their mean."""
FAST_END = 2.0
"""The power of (the kernel's best time / a row's time) that a row weighs."""
WIDEST = 5.0
"""The largest logarithm of a ratio to the cold model that is learned; farther off is a broken row, not a slow one."""


@dataclass(frozen=True, slots=True)
class LearnedModel:
    """Implements `Prior`. `trees` is None where the rows were too few or too alike to split: the mean answers.

    With a `cold` model, mean and trees correct what it predicts; without one they are all there is.
    """

    names: tuple[str, ...]
    mean: float
    rows: int
    digest: str
    trees: Trees | None = None
    cold: ColdModel | None = None

    @property
    def version(self) -> str:
        return f"learned-2-{self.rows}-{self.digest}"

    def predict(self, matrix: FeatureMatrix) -> Column:
        """See `Prior`: ln(us), one a row; finite. Columns are matched by name."""
        base = self.cold.predict(matrix) if self.cold is not None else np.zeros(len(matrix))
        if self.trees is None or not len(matrix):
            return base + self.mean
        return base + self.trees.predict(_finite(aligned(matrix, self.names)))

    def refit(self, matrix: FeatureMatrix, log_us: Column) -> LearnedModel:
        """The model of these rows alone; itself if none has a finite label (every candidate failed)."""
        return fit(matrix, log_us, cold=self.cold) or self

    def importance(self) -> tuple[tuple[str, float], ...]:
        """Columns by the share of the trees' gain that they bring (sum 1), the largest first; unused ones left out."""
        if self.trees is None:
            return ()
        shares = zip(self.names, self.trees.importance().tolist(), strict=True)
        return tuple(sorted(((name, share) for name, share in shares if share > 0), key=lambda item: -item[1]))


def fit(
    matrix: FeatureMatrix,
    log_us: Column,
    groups: NDArray[np.str_] | None = None,
    cold: ColdModel | None = None,
) -> LearnedModel | None:
    """A model of the rows whose label is finite, or None if there are none.

    `groups` names each row's kernel; without it all rows weigh alike. Equal rows make equal models, in whatever order.
    """
    usable = np.isfinite(log_us)
    if not usable.any():
        return None
    owners = np.zeros(int(usable.sum()), dtype="U1") if groups is None else groups[usable]
    values = _finite(matrix.values[usable])
    order = np.lexsort((log_us[usable], *values.T[::-1], owners))
    values, labels, owners = values[order], np.asarray(log_us[usable][order], dtype=np.float64), owners[order]
    weights = np.ones(len(labels)) if groups is None else _weights(labels, owners)
    if cold is not None:
        labels = np.clip(labels - cold.predict(FeatureMatrix(values, matrix.names)), -WIDEST, WIDEST)
    parts = (np.ascontiguousarray(values).tobytes(), labels.tobytes(), weights.tobytes(), repr(cold).encode())
    digest = hashlib.sha256(b"".join(parts)).hexdigest()[:8]
    mean, rows = float(np.average(labels, weights=weights)), len(labels)
    values[:, np.isnan(values).all(axis=0)] = 0.0  # scikit-learn can't bin a column without a number
    varies = not np.array_equal(values, np.broadcast_to(values[0], values.shape), equal_nan=True) and np.ptp(labels) > 0
    if rows < LEAST_ROWS or not varies:
        return LearnedModel(matrix.names, mean, rows, digest, None, cold)
    return LearnedModel(matrix.names, mean, rows, digest, grow(values, labels, weights), cold)


def _weights(labels: Column, owners: NDArray[np.str_]) -> Column:
    """One number a row, 1 on average."""
    _, kernel = np.unique(owners, return_inverse=True)
    best = np.full(int(kernel.max()) + 1, np.inf)
    np.minimum.at(best, kernel, labels)
    raw = np.exp(FAST_END * (best[kernel] - labels))
    shares: Column = raw / np.bincount(kernel, weights=raw)[kernel]
    weights: Column = shares / float(shares.mean())
    return weights


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Without infinities, which scikit-learn refuses: they are as unknown as NaN."""
    return np.where(np.isinf(values), np.nan, values)
