"""Trees as arrays answer as a walk node by node does."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.prior.trees import Numbers, Trees, grow

COLUMNS = 6


def walked(trees: Trees, row: Numbers) -> float:
    """The answer of one row, by the definition."""
    answer = trees.base
    for root in trees.roots.tolist():
        node = root
        while (feature := int(trees.feature[node])) >= 0:
            value = float(row[feature])
            low = bool(trees.unknown_low[node]) if math.isnan(value) else value <= trees.threshold[node]
            node = int((trees.low if low else trees.high)[node])
        answer += float(trees.value[node])
    return answer


def grown() -> Trees:
    random = np.random.default_rng(0)
    values = random.integers(0, 5, (600, COLUMNS)).astype(np.float64)
    values[random.random(values.shape) < 0.1] = np.nan
    labels = np.nan_to_num(values[:, 0]) * np.nan_to_num(values[:, 1]) + np.isnan(values[:, 2])
    return grow(values, labels, np.ones(len(labels)))


TREES = grown()


@given(st.sets(st.integers(0, COLUMNS - 1)), st.integers(0, 2**32 - 1))
def test_columns_that_say_the_same_of_all_rows_change_no_answer(constant: set[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.integers(0, 5, (12, COLUMNS)).astype(np.float64)
    values[random.random(values.shape) < 0.2] = np.nan
    for column in constant:
        values[:, column] = values[0, column]
    assert TREES.predict(values).tolist() == [walked(TREES, row) for row in values]


def test_no_rows_have_no_answers() -> None:
    assert TREES.predict(np.empty((0, COLUMNS))).shape == (0,)
