"""When the sums of a norm may come from the kernel that makes its rows, and what that leaves."""

from __future__ import annotations

import pytest

from engine.grouping import grouping_space
from engine.grouping.norm_scale import NormScale
from engine.grouping.rewriting import Chosen
from engine.grouping.row_stats import RowStats
from engine.ir import Graph, GraphBuilder
from engine.ir.plan import Grouping
from tests.grouping.rewritable import contiguous, linear, norm_and_linears, norm_of_product
from tests.grouping.test_space import assert_same_function


def scaled(graph: Graph) -> Graph:
    """With the scale of every norm behind its matmuls."""
    return NormScale().rewritten(graph, [Chosen(site, site.answers[1]) for site in NormScale().sites(graph)])


def plan_with(graph: Graph, *changed: str) -> Grouping:
    """The last answers to the knobs that `changed` begin, the first ones to all others."""
    space = grouping_space(graph)
    path = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[-1 if fork.name.startswith(changed) else 0])
    return space.grouping(path)


@pytest.mark.parametrize("graph", [norm_of_product(), norm_of_product(1, 4096), norm_of_product(shown=True)])
def test_rows_that_a_matmul_makes_are_offered_once_the_scale_has_moved(graph: Graph) -> None:
    assert RowStats().sites(graph) == ()
    assert [site.answers for site in RowStats().sites(scaled(graph))] == [("apart", "producer")]


def shown_scale() -> Graph:
    """A norm whose scale is returned."""
    b = GraphBuilder()
    x = b.input(contiguous((4, 64), "float32"))
    h = linear(b, x, 64)
    mean = b.add("mean", b.add("mul", h, h), axes=(1,))
    scale = b.add("rsqrt", b.add("add", mean, b.constant(1e-6)))
    return b.build(linear(b, b.add("mul", h, scale), 8), scale)


@pytest.mark.parametrize(
    "graph",
    [norm_and_linears(), norm_of_product(depth=48), norm_of_product(depth=32), norm_of_product(1, 8192), shown_scale()],
    ids=["rows of no matmul", "no whole groups", "one group", "more than a load", "the scale is returned"],
)
def test_other_rows_are_not_asked(graph: Graph) -> None:
    moved = scaled(graph)
    assert moved != graph
    assert RowStats().sites(moved) == ()


def test_no_kernel_is_left_of_the_norm() -> None:
    graph = norm_of_product(5, 64)
    plan = plan_with(graph, "NORM_SCALE", "ROW_STATS")
    assert [call.kernel.family for call in plan.calls] == ["contraction"] * 3
    first = plan.calls[0].kernel.body.output_specs()
    assert [(spec.shape, spec.dtype) for spec in first] == [((1, 5, 64), "bfloat16"), ((1, 5, 2, 1), "float32")]
    assert_same_function(graph, plan)


def test_the_sums_may_be_a_kernel_after_all() -> None:
    graph = norm_of_product(5, 64)
    plan = plan_with(graph, "NORM_SCALE", "ROW_STATS", "FUSE")
    assert len(plan.calls) > 5
    assert_same_function(graph, plan)
