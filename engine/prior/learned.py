"""The prior that learns: gradient-boosted trees on ln(us) over features, where NaN means "not decided yet".

Trees answer within the range of what they were fitted to, so a candidate unlike all others never gets a wild promise.
The model is a value: refitting makes another one. It is fitted again from a reservoir's rows and never stored itself.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.prior.features import FeatureMatrix
from engine.prior.geometry import Column
from engine.prior.reservoir import aligned

LEAST_ROWS = 20
"""Fewer rows say no more than their mean."""
THREADS = 1
"""Of OpenMP: 100,000 rows take a few seconds on one, and beside compiles more of them wait for each other."""
ROUNDS = 200
RATE = 0.1
LEAVES = 31


@dataclass(frozen=True, slots=True)
class LearnedModel:
    """Implements `Prior`. `trees` is None where the rows were too few or too alike to split: the mean answers."""

    names: tuple[str, ...]
    mean: float
    rows: int
    digest: str
    trees: Any = None

    @property
    def version(self) -> str:
        return f"learned-1-{self.rows}-{self.digest}"

    def predict(self, matrix: FeatureMatrix) -> Column:
        """See `Prior`: ln(us), one a row; finite. Columns are matched by name."""
        if self.trees is None or not len(matrix):
            return np.full(len(matrix), self.mean)
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=THREADS, user_api="openmp"):
            told = self.trees.predict(_finite(aligned(matrix, self.names)))
        predicted: Column = np.asarray(told, dtype=np.float64)
        return predicted

    def refit(self, matrix: FeatureMatrix, log_us: Column) -> LearnedModel:
        """The model of these rows alone; itself if none has a finite label (every candidate failed)."""
        return fit(matrix, log_us) or self


def fit(matrix: FeatureMatrix, log_us: Column) -> LearnedModel | None:
    """A model of the rows whose label is finite, or None if there are none. Equal rows make equal models."""
    usable = np.isfinite(log_us)
    if not usable.any():
        return None
    values, labels = _finite(matrix.values[usable]), np.asarray(log_us[usable], dtype=np.float64)
    digest = hashlib.sha256(np.ascontiguousarray(values).tobytes() + labels.tobytes()).hexdigest()[:8]
    mean, rows = float(labels.mean()), len(labels)
    values[:, np.isnan(values).all(axis=0)] = 0.0  # scikit-learn can't bin a column without a number
    varies = not np.array_equal(values, np.broadcast_to(values[0], values.shape), equal_nan=True) and np.ptp(labels) > 0
    if rows < LEAST_ROWS or not varies:
        return LearnedModel(matrix.names, mean, rows, digest)
    from sklearn.ensemble import HistGradientBoostingRegressor  # half a second that a run without it must not wait
    from threadpoolctl import threadpool_limits

    trees = HistGradientBoostingRegressor(
        max_iter=ROUNDS, learning_rate=RATE, max_leaf_nodes=LEAVES, early_stopping=False, random_state=0
    )
    with threadpool_limits(limits=THREADS, user_api="openmp"):
        trees.fit(values, labels)
    return LearnedModel(matrix.names, mean, rows, digest, trees)


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Without infinities, which scikit-learn refuses: they are as unknown as NaN."""
    return np.where(np.isinf(values), np.nan, values)
