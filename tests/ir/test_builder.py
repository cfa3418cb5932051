from __future__ import annotations

import pytest

from engine.ir import GraphBuilder, GraphError
from tests.ir.graphs import contiguous


def test_results_follow_from_inputs() -> None:
    b = GraphBuilder()
    x, row = b.input(contiguous((2, 4, 6), "bfloat16")), b.input(contiguous((6,), "float32"))
    w = b.input(contiguous((6, 3), "bfloat16"))
    assert b.spec(b.add("add", x, row)) == contiguous((2, 4, 6), "float32")
    assert b.spec(b.add("mul", x, b.constant(2.0))) == contiguous((2, 4, 6), "bfloat16")
    assert b.spec(b.add("matmul", x, w)) == contiguous((2, 4, 3), "bfloat16")
    assert b.spec(b.add("lt", x, x)).dtype == "bool"
    assert b.spec(b.add("amax", x, axes=(1, 2))).shape == (2, 1, 1)
    assert b.spec(b.reduce_and_drop("sum", x, (0, 2))).shape == (4,)
    assert b.spec(b.add("exp", b.input(contiguous((4,), "int64")))).dtype == "float32"


def test_equal_ops_are_one_and_inputs_are_not() -> None:
    b = GraphBuilder()
    x, y = (b.input(contiguous((4,), "float32")) for _ in range(2))
    assert b.add("exp", x) == b.add("exp", x)
    assert b.add("exp", x) != b.add("exp", y)
    assert b.constant(1.0) != b.constant(2.0)


def test_a_view_that_changes_nothing_is_none() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((4, 6), "float32"))
    assert b.view(x, (4, 6), (6, 1)) == x
    assert b.op(b.view(x, (6, 4), (1, 6))).kind == "view"


def test_building_keeps_inputs_and_leaves_out_what_no_output_needs() -> None:
    b = GraphBuilder()
    x, _ = (b.input(contiguous((4,), "float32"), name) for name in ("x", "unused"))
    b.add("log", x)
    graph = b.build(b.add("exp", x))
    assert [op.kind for op in graph.ops] == ["input", "input", "exp"]
    assert graph.labels == ("x", "unused")


def test_what_does_not_fit_is_an_error() -> None:
    b = GraphBuilder()
    x, y = b.input(contiguous((4, 6), "float32")), b.input(contiguous((5,), "float32"))
    with pytest.raises(GraphError, match="don't broadcast"):
        b.add("add", x, y)
    with pytest.raises(GraphError, match="matmul of shapes"):
        b.add("matmul", x, x)
    with pytest.raises(GraphError, match="needs the dtype"):
        b.add("cast", x)
    with pytest.raises(GraphError, match="no reduction"):
        b.reduce_and_drop("exp", x, (0,))
    with pytest.raises(GraphError, match="at least one output"):
        b.build()


def test_values_that_python_calls_equal_are_constants_of_their_own() -> None:
    b = GraphBuilder()
    values = (1, 1.0, True, 0.0, -0.0)
    assert len({b.constant(value) for value in values}) == len(values)
    assert b.constant(1.0) == b.constant(1.0)
