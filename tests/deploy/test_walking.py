"""Forks that nobody tuned: an answer whose kernel can't be built on the chip is taken only where there is no other."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from engine.capture import capture
from engine.codegen import unbuildable_because
from engine.deploy import deployment
from engine.deploy.walking import walk_forks
from engine.ir.graph import Graph
from engine.ir.plan import Program
from engine.prior import UNBUILDABLE_US, ColdModel
from engine.store import Store
from engine.vocabulary import Target


def attention(length: int, width: int) -> str:
    operand = f"torch.randn(1, 2, {length}, {width})"
    return f"F.scaled_dot_product_attention({operand}, {operand}, {operand})"


@pytest.fixture(scope="module")
def one() -> Graph:
    return capture(attention(33, 256)).graph


@pytest.fixture(scope="module")
def two() -> Graph:
    """Two forks with an answer that can't be built, of which no second one repeats the first."""
    return capture(f"torch.add({attention(33, 256)}.sum(), {attention(20, 256)}.sum())").graph


@pytest.mark.parametrize("name", ["one", "two"])
def test_what_cant_be_built_is_taken_apart(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    graph: Graph = request.getfixturevalue(name)
    with Store.open(tmp_path / "empty.db") as store:
        grouping, steps = walk_forks(graph, store, "", Target(), ColdModel())
        chosen = deployment(Program(graph, name), store, "", Target(), ColdModel())
    assert "attention" not in {kernel.family for kernel, _ in grouping.kernel_counts().values()}
    assert all(unbuildable_because(kernel, Target()) is None for kernel, _ in grouping.kernel_counts().values())
    assert chosen.grouping == grouping
    for step in (step for step in steps if step.fork.startswith("FUSE_ATTENTION")):
        assert step.answer == "apart"
        assert (step.runner_up, step.runner_up_us) == ("", None)
    assert steps[-1].us is not None
    assert steps[-1].us < UNBUILDABLE_US


def test_a_time_that_stands_on_an_open_fork_is_none(two: Graph, tmp_path: Path) -> None:
    with Store.open(tmp_path / "empty.db") as store:
        _, steps = walk_forks(two, store, "", Target(), ColdModel())
    us = [step.us for step in steps]
    assert us[0] is None  # the second attention is fused, as its first answer is, until it is asked about
    assert all(one is not None and math.isfinite(one) for one in us[1:])
