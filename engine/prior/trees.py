"""Gradient-boosted regression trees as plain arrays: grown by scikit-learn, kept and asked without it.

A fitted model has to outlive its process, since a run repeats its path only under the very model that steered it, and
opening someone's file must not run code. So the grown trees become six arrays, which an npz file holds; asking them
is numpy alone, which also spares a run the half second that scikit-learn takes to load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Places = NDArray[np.int32]

THREADS = 1
"""Of OpenMP: 100,000 rows take a few seconds on one, and beside compiles more of them wait for each other."""
ROUNDS = 150
RATE = 0.08
LEAVES = 15
LEAST_LEAF = 40
RIDGE = 1.0
ARRAYS = ("feature", "threshold", "low", "high", "unknown_low", "value", "gain", "roots")


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Node arrays of all trees, one after the other; `roots` is where each begins.

    `feature` is -1 at a leaf. A row goes `low` where its value is at most `threshold`, and where the value is NaN and
    `unknown_low` says so, else `high`; both are places in these arrays. `value` counts at leaves, `gain` at splits.
    `columns` is how many columns a row has, `base` what every answer starts from.
    """

    columns: int
    base: float
    feature: Places
    threshold: Numbers
    low: Places
    high: Places
    unknown_low: NDArray[np.bool_]
    value: Numbers
    gain: Numbers
    roots: Places

    def predict(self, values: Numbers) -> Numbers:
        """One answer a row of `values`, float64 [n, columns] with NaN for what is unknown; finite for every row."""
        answers = np.full(len(values), self.base)
        if not len(values):
            return answers
        goes_low = self._low_for_all(np.asfortranarray(values))
        columns = list(np.ascontiguousarray(values.T))
        unknown = [bool(np.isnan(column).any()) for column in columns]
        everything = np.arange(len(values))
        feature, threshold, unknown_low = self.feature.tolist(), self.threshold.tolist(), self.unknown_low.tolist()
        lows, highs = self.low.tolist(), self.high.tolist()
        for root in self.roots.tolist():
            waiting = [(root, everything)]
            while waiting:
                node, rows = waiting.pop()
                while feature[node] >= 0 and goes_low[node] is not None:
                    node = lows[node] if goes_low[node] else highs[node]
                if feature[node] < 0:
                    answers[rows] += self.value[node]
                    continue
                asked = columns[feature[node]].take(rows)
                low = asked <= threshold[node]
                if unknown_low[node] and unknown[feature[node]]:
                    low |= np.isnan(asked)
                for child, share in ((lows[node], rows[low]), (highs[node], rows[~low])):
                    if len(share):
                        waiting.append((child, share))
        return answers

    def _low_for_all(self, columns: Numbers) -> list[bool | None]:
        """For each node whether all rows go low there, None where they may part: most columns say the same of all
        schedules of a kernel, so that most splits need no array."""
        first = columns[0]
        constant = ((columns == first) | (np.isnan(columns) & np.isnan(first))).all(axis=0)
        at = np.maximum(self.feature, 0)
        low = (first[at] <= self.threshold) | (self.unknown_low & np.isnan(first[at]))
        return [way if same else None for way, same in zip(low.tolist(), constant[at].tolist(), strict=True)]

    def importance(self) -> Numbers:
        """Share of the whole gain that splits on each column brought: [columns], sum 1 (all 0 without a split)."""
        splits = self.feature >= 0
        gains: Numbers = np.zeros(self.columns)
        np.add.at(gains, self.feature[splits], self.gain[splits])
        total = float(gains.sum())
        return gains / total if total > 0 else gains

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What `from_arrays` takes back."""
        return {name: getattr(self, name) for name in ARRAYS}

    @classmethod
    def from_arrays(cls, columns: int, base: float, arrays: Mapping[str, NDArray[Any]]) -> Trees:
        """Raises ValueError for arrays that are no trees; KeyError if one is missing."""
        place, number = np.int32, np.float64
        trees = cls(
            columns,
            base,
            *(np.asarray(arrays["feature"], place), np.asarray(arrays["threshold"], number)),
            *(np.asarray(arrays["low"], place), np.asarray(arrays["high"], place)),
            np.asarray(arrays["unknown_low"], np.bool_),
            *(np.asarray(arrays["value"], number), np.asarray(arrays["gain"], number)),
            np.asarray(arrays["roots"], place),
        )
        trees._check()
        return trees

    def _check(self) -> None:
        count = len(self.feature)
        nodes = (self.feature, self.threshold, self.low, self.high, self.unknown_low, self.value, self.gain)
        if any(array.shape != (count,) for array in nodes) or self.roots.ndim != 1:
            raise ValueError("arrays of trees differ in length")
        if not (np.isfinite(self.base) and np.isfinite(self.value).all()):
            raise ValueError("a tree's answer is not finite")
        places = np.arange(count)
        splits = self.feature >= 0
        inside = (self.feature < self.columns).all() and ((self.roots >= 0) & (self.roots < count)).all()
        children = np.concatenate([self.low[splits], self.high[splits]])
        later = children > np.concatenate([places[splits], places[splits]])  # so that every descent ends
        if not (inside and (children < count).all() and later.all()):
            raise ValueError("a tree points outside of itself")


def grow(values: Numbers, labels: Numbers, weights: Numbers) -> Trees:
    """Trees fitted to `labels` [n] of `values` [n, f]; NaN is an answer of its own, infinities are as unknown.

    Equal arrays grow equal trees. Each column must hold a number in some row.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor  # half a second that a run without it must not wait
    from threadpoolctl import threadpool_limits

    grower = HistGradientBoostingRegressor(
        max_iter=ROUNDS,
        learning_rate=RATE,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=min(LEAST_LEAF, max(2, len(labels) // 10)),
        l2_regularization=RIDGE,
        early_stopping=False,
        random_state=0,
    )
    with threadpool_limits(limits=THREADS, user_api="openmp"):
        grower.fit(values, labels, sample_weight=weights)
    grown = [round_[0].nodes for round_ in grower._predictors]
    starts = np.cumsum([0, *(len(nodes) for nodes in grown)])
    nodes = np.concatenate(grown)
    shift = np.repeat(starts[:-1], [len(tree) for tree in grown])
    leaf = nodes["is_leaf"].astype(bool)
    return Trees.from_arrays(
        values.shape[1],
        float(np.ravel(grower._baseline_prediction)[0]),
        {
            "feature": np.where(leaf, -1, nodes["feature_idx"].astype(np.int64)),
            "threshold": np.where(leaf, 0.0, nodes["num_threshold"]),
            "low": np.where(leaf, 0, nodes["left"] + shift),
            "high": np.where(leaf, 0, nodes["right"] + shift),
            "unknown_low": nodes["missing_go_to_left"].astype(bool),
            "value": np.where(leaf, nodes["value"], 0.0),
            "gain": np.where(leaf, 0.0, np.maximum(nodes["gain"], 0.0)),
            "roots": starts[:-1],
        },
    )
