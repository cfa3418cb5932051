"""Values of positions: what torch gives for the same ops, on small axes and through views."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.ir import Graph, GraphBuilder, TensorSpec
from engine.ir.positions import MOST_ELEMENTS, position_values
from engine.runtime import evaluate


def chunks(b: GraphBuilder) -> int:
    """Keys of the query's own chunk of 8."""
    row, column = (b.add("floor", b.add("div", b.iota(20, axis, 2), b.constant(8, "int64"))) for axis in (0, 1))
    return b.add("eq", row, column)


def prefix(b: GraphBuilder) -> int:
    """All of the first 5 keys, and those up to the query."""
    row, column = b.iota(20, 0, 2), b.iota(20, 1, 2)
    return b.add("logical_or", b.add("lt", column, b.constant(5, "int64")), b.add("le", column, row))


def halves(b: GraphBuilder) -> int:
    """Positions of which bfloat16 holds only every other one, shown to more axes by views."""
    row = b.view(b.iota(600), (1, 600, 1), (600, 1, 0))
    near = b.add("cast", row, dtype="bfloat16")
    far = b.add("mul", near, b.constant(3.0, "bfloat16"), dtype="bfloat16")
    return b.add("sub", far, b.view(far, (4, 600, 1), (0, 1, 1)), dtype="bfloat16")


def turned(b: GraphBuilder) -> int:
    """Every third position of a table, turned."""
    table = b.add("add", b.add("mul", b.iota(6, 0, 2), b.constant(10, "int64")), b.iota(9, 1, 2))
    return b.view(table, (3, 5), (3, 9), 10)


@pytest.mark.parametrize("build", [chunks, prefix, halves, turned])
def test_values_are_those_of_torch(build: object) -> None:
    assert callable(build)
    b = GraphBuilder()
    index = build(b)
    graph = Graph(b.built(index).ops, (), b.built(index).outputs)
    found = position_values(graph, graph.outputs[0])
    assert found is not None
    (wanted,) = evaluate(graph, [], None)
    assert np.array_equal(np.broadcast_to(found, wanted.shape), wanted.to(torch.float64).numpy())


def test_an_axis_that_changes_nothing_stays_one_long() -> None:
    b = GraphBuilder()
    row = b.view(b.iota(64, 0, 2), (1024, 64, 1), (0, 1, 1))
    graph = b.built(b.add("lt", row, b.iota(64, 2, 3)))
    found = position_values(graph, graph.outputs[0])
    assert found is not None
    assert found.shape == (1, 64, 64)


def test_what_depends_on_an_input_or_is_too_large_has_no_value() -> None:
    b = GraphBuilder()
    limit = b.input(TensorSpec.contiguous((4, 1), "int64"))
    graph = b.build(b.add("lt", b.iota(4, 1, 2), limit))
    assert position_values(graph, graph.outputs[0]) is None
    large = GraphBuilder()
    extent = MOST_ELEMENTS // 1024
    graph = large.built(large.add("lt", large.iota(extent, 0, 2), large.iota(extent, 1, 2)))
    assert position_values(graph, graph.outputs[0]) is None
    value = large.iota(6)
    for _ in range(4000):
        value = large.add("add", value, value)
    graph = large.built(value)
    assert position_values(graph, graph.outputs[0]) is None
