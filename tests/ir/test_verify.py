from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given

from engine.ir import Graph, GraphBuilder, GraphError, Op, TensorSpec, verify
from engine.ir.graph import Attribute
from engine.ir.shapes import OpError
from engine.ir.verify import MAX_ELEMENTS
from tests.ir.graphs import contiguous, linear_gelu, random_graphs

F32 = contiguous((4, 6), "float32")


def one_op(op: Op, *specs: TensorSpec) -> Graph:
    inputs = tuple(Op("input", (), spec) for spec in specs)
    return Graph((*inputs, op), tuple(range(len(inputs))), (len(inputs),))


@given(random_graphs())
def test_what_a_builder_makes_verifies(graph: Graph) -> None:
    assert verify(graph) is graph


@pytest.mark.parametrize(
    ("graph", "sentence"),
    [
        (one_op(Op("system", (0,), F32), F32), "unknown kind"),
        (one_op(Op("add", (0,), F32), F32), "takes 2 inputs"),
        (one_op(Op("exp", (1,), F32), F32), "doesn't come before"),
        (one_op(Op("exp", (-1,), F32), F32), "doesn't come before"),
        (one_op(Op("exp", (True,), F32), F32, F32), "doesn't come before"),
        (one_op(Op("exp", (0,), contiguous((4, 7), "float32")), F32), "its inputs give"),
        (one_op(Op("add", (0, 1), F32), F32, contiguous((4, 5), "float32")), "don't broadcast"),
        (one_op(Op("exp", (0,), replace(F32, dtype="float8")), F32), "unknown dtype"),
        (one_op(Op("exp", (0,), replace(F32, shape=(-4, 6))), F32), "whole numbers"),
        (one_op(Op("exp", (0,), replace(F32, strides=(6,))), F32), "one stride an axis"),
        (one_op(Op("exp", (0,), replace(F32, strides=(1, 4))), F32), "isn't contiguous"),
        (one_op(Op("exp", (0,), TensorSpec((1,) * 13, "float32", (1,) * 13)), F32), "at most 12 axes"),
        (one_op(Op("exp", (0,), F32), replace(F32, strides=(2**40, 1))), "elements"),
        (one_op(Op("exp", (0,), F32), replace(F32, offset=MAX_ELEMENTS)), "elements"),
        (one_op(Op("lt", (0, 0), F32), F32), "gives bool"),
        (one_op(Op("where", (0, 0, 0), F32), F32), "condition of dtype"),
        (one_op(Op("view", (0,), contiguous((5, 6), "float32")), F32), "past the end"),
        (one_op(Op("view", (0,), contiguous((4, 6), "int32")), F32), "views float32 as int32"),
        (one_op(Op("exp", (0,), F32, (("axes", (1,)),)), F32), "attributes"),
        (one_op(Op("sum", (0,), contiguous((4, 1), "float32")), F32), "attributes"),
        (one_op(Op("sum", (0,), contiguous((4, 1), "float32"), (("axes", (1, 0)),)), F32), "axes"),
        (one_op(Op("sum", (0,), contiguous((4, 1), "float32"), (("axes", (2,)),)), F32), "axes"),
        (one_op(Op("constant", (), contiguous((), "float32"), (("value", "rm"),))), "attributes"),
        (one_op(Op("constant", (), F32, (("value", 1.0),))), "constant with axes"),
    ],
)
def test_a_bad_op_is_one_sentence_that_names_it(graph: Graph, sentence: str) -> None:
    with pytest.raises(OpError, match=sentence) as raised:
        verify(graph)
    error = raised.value
    assert str(error) == f"op {error.index} ({error.kind}): {error.cause}"
    assert error.kind == graph.ops[error.index].kind
    assert re.search(sentence, error.cause)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("left", "right", "attributes"),
    [
        (F32, F32, (("allow_tf32", False),)),
        (contiguous((6,), "float32"), contiguous((6, 4), "float32"), (("allow_tf32", False),)),
        (contiguous((2, 4, 6), "float32"), contiguous((3, 6, 4), "float32"), (("allow_tf32", False),)),
        (F32, contiguous((6, 4), "float16"), (("allow_tf32", False),)),
        (contiguous((4, 6), "int32"), contiguous((6, 4), "int32"), (("allow_tf32", False),)),
        (F32, contiguous((6, 4), "float32"), (("allow_tf32", 1),)),
        (F32, contiguous((6, 4), "float32"), ()),
    ],
)
def test_matmuls_that_are_refused(
    left: TensorSpec, right: TensorSpec, attributes: tuple[tuple[str, Attribute], ...]
) -> None:
    with pytest.raises(GraphError, match=r"op 2 \(matmul\)"):
        verify(one_op(Op("matmul", (0, 1), contiguous((4, 4), "float32"), attributes), left, right))


def test_a_view_of_a_view_is_held_to_the_storage() -> None:
    b = GraphBuilder()
    x = b.input(F32)
    part = Op("view", (x,), contiguous((2, 6), "float32"))
    whole = Op("view", (1,), contiguous((4, 6), "float32"))
    assert verify(Graph((Op("input", (), F32), part, whole), (0,), (2,)))
    beyond = Op("view", (1,), TensorSpec((4, 6), "float32", (6, 1), 1))
    with pytest.raises(GraphError, match="past the end"):
        verify(Graph((Op("input", (), F32), part, beyond), (0,), (2,)))


def test_a_constant_has_no_storage_to_view() -> None:
    constant = Op("constant", (), contiguous((), "float32"), (("value", 1.0),))
    view = Op("view", (1,), contiguous((1,), "float32"))
    with pytest.raises(GraphError, match="views a constant"):
        verify(Graph((Op("input", (), F32), constant, view), (0,), (2,)))


@pytest.mark.parametrize(
    "change",
    [
        {"outputs": ()},
        {"outputs": (99,)},
        {"inputs": (0, 1)},
        {"inputs": (0, 1, 2, 2)},
        {"labels": ("x",)},
        {"labels": ("x", "w", "a\nb")},
        {"labels": ("x", "w", "b" * 1000)},
        {"ops": ()},
    ],
)
def test_bad_ends_are_refused(change: dict[str, tuple[object, ...]]) -> None:
    with pytest.raises(GraphError):
        verify(replace(linear_gelu(), **change))


@pytest.mark.parametrize("weights", [(1,), (0, 0), (-1,), (True,)])
def test_weights_are_positions_of_inputs(weights: tuple[int, ...]) -> None:
    graph = Graph((Op("input", (), F32), Op("exp", (0,), F32)), (0,), (1,))
    assert verify(replace(graph, weights=(0,))).weights == (0,)
    with pytest.raises(GraphError, match="weights are positions"):
        verify(replace(graph, weights=weights))
