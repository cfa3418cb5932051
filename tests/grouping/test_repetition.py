"""Equal layers are found whatever stands around them, and left out only where nothing else needs them."""

from __future__ import annotations

import random

import pytest

from engine.grouping import GroupingSpace, grouping_space
from engine.grouping.repetition import shortened
from engine.grouping.space import RepeatedSpace
from engine.ir import Graph, GraphBuilder, GraphError, verify
from engine.ir.verify_plan import verify_grouping
from tests.grouping.rewritable import contiguous, linear, stacked
from tests.grouping.test_space import assert_same_function, walk
from tests.ir.graphs import add_rms_norm, feed_forward, linear_gelu


def layers(count: int, change: str = "") -> Graph:
    """Layers of a norm and two matmuls, with a `change` that not all of them share or that looks back at one."""
    b = GraphBuilder()
    first = h = b.input(contiguous((6, 32), "bfloat16"), "x")
    kept = []
    for number in range(count):
        odd = change == "one is different" and number == count // 2
        normed = add_rms_norm(
            b, h, b.input(contiguous((32,), "bfloat16"), weight=number != 4 or change != "one is fed")
        )
        inner = b.add("gelu" if odd else "relu", linear(b, normed, 40))
        h = b.add("add", linear(b, inner, 32), first if change == "all read the start" else h)
        kept.append(h)
    seen = kept if change == "each is returned" else [kept[3], h] if change == "one is returned" else [h]
    if change == "the end reads one":
        seen = [b.add("add", h, kept[4])]
    return b.build(*seen)


@pytest.mark.parametrize(("count", "left"), [(3, 3), (5, 4), (12, 4), (28, 4)])
def test_a_few_layers_stand_for_many(count: int, left: int) -> None:
    short = shortened(layers(count))
    matmuls = sum(op.kind == "matmul" for op in (short.graph if short else layers(count)).ops)
    assert matmuls == 2 * left
    if short is not None:
        assert verify(short.graph)
        assert len(short.graph.inputs) == 1 + 3 * left
        assert len(short.graph.weights) == 3 * left
        assert (short.kept, short.left_out) == (left, count - left)


def test_what_all_layers_read_is_no_reason_against_it() -> None:
    short = shortened(layers(12, "all read the start"))
    assert short is not None
    assert verify(short.graph)


@pytest.mark.parametrize("change", ["each is returned", "one is returned", "the end reads one"])
def test_a_layer_that_others_need_is_not_left_out(change: str) -> None:
    assert shortened(layers(12, change)) is None


@pytest.mark.parametrize("graph", [linear_gelu(), feed_forward(2), layers(1)], ids=["linear", "two", "one"])
def test_a_graph_without_repeats_is_walked_as_it_is(graph: Graph) -> None:
    assert shortened(graph) is None
    assert not isinstance(grouping_space(graph), RepeatedSpace)


@pytest.mark.parametrize("change", ["", "one is different", "one is fed", "all read the start"])
@pytest.mark.parametrize("seed", range(4))
def test_every_path_of_the_short_graph_is_a_plan_of_the_whole(change: str, seed: int) -> None:
    graph = layers(9, change)
    space = grouping_space(graph)
    path = walk(space, random.Random(seed))
    plan = space.grouping(path)
    verify_grouping(plan)
    assert plan.decisions == path
    assert_same_function(graph, plan)


@pytest.mark.parametrize("seed", range(6))
def test_equal_layers_get_the_plan_that_a_walk_of_all_gives(seed: int) -> None:
    space, whole = grouping_space(stacked(8)), GroupingSpace(stacked(8))
    assert isinstance(space, RepeatedSpace)
    path = walk(space, random.Random(seed))
    assert space.grouping(path) == whole.grouping(path)
    assert space.kernel_counts(path) == whole.kernel_counts(path)
    assert [space.fork(path[:n]) for n in range(len(path))] == [whole.fork(path[:n]) for n in range(len(path))]


def test_an_unfinished_path_is_no_plan_and_a_foreign_one_no_path() -> None:
    space = grouping_space(stacked(8))
    with pytest.raises(GraphError, match="leaves NORM_SCALE_0 open"):
        space.grouping(())
    with pytest.raises(GraphError, match="answers no question"):
        space.answers(walk(grouping_space(linear_gelu()), 0))
