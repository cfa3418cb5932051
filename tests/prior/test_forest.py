from __future__ import annotations

import numpy as np
import pytest

from engine.prior.forest import Columns, Forest, Numbers


def rows(count: int, seed: int = 0) -> tuple[Columns, Numbers]:
    """Rows whose label is a step in the first of three columns."""
    columns = np.random.default_rng(seed).integers(0, 6, (count, 3)).astype(np.float32)
    return columns, np.where(columns[:, 0] > 2, 5.0, 1.0)


def test_every_tree_answers_every_row_with_the_mean_of_a_leaf() -> None:
    columns, labels = rows(40)
    asked, wanted = rows(200, seed=1)
    answers = Forest.grow(columns, labels, trees=7, seed=0).ask(asked)
    assert answers.told.shape == answers.leaves.shape == (7, 200)
    assert (answers.told.mean(axis=0) == wanted).all()
    for told, leaves in zip(answers.told, answers.leaves, strict=True):
        assert all(len(set(told[leaves == leaf])) == 1 for leaf in set(leaves))


def test_trees_differ_and_the_same_seed_grows_the_same_ones() -> None:
    columns, _ = rows(40)
    labels = np.random.default_rng(2).normal(size=40)
    first, again, other = (Forest.grow(columns, labels, trees=5, seed=seed).ask(columns).told for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()
    assert (first.std(axis=0) > 0).any()


def test_a_leaf_holds_at_least_so_many_rows() -> None:
    columns, _ = rows(40)
    labels = np.arange(40.0)
    deep, shallow = (Forest.grow(columns, labels, trees=3, seed=0, least_leaf=few).ask(columns) for few in (1, 15))
    assert max(len(set(leaves)) for leaves in shallow.leaves) <= 40 // 15
    assert min(len(set(leaves)) for leaves in deep.leaves) > 40 // 15


@pytest.mark.parametrize("labels", [[2.5], [2.5, 2.5, 2.5]], ids=["one row", "constant"])
def test_what_holds_nothing_to_split_answers_its_mean(labels: list[float]) -> None:
    forest = Forest.grow(np.ones((len(labels), 1), np.float32), np.array(labels), trees=2, seed=2**33)
    assert (forest.ask(np.array([[0.0], [9.0]], np.float32)).told == 2.5).all()
