from __future__ import annotations

from engine.grouping.body import write_body
from engine.grouping.partition import Facts
from engine.ir import GraphBuilder, TensorSpec
from tests.ir.graphs import contiguous, linear_gelu


def test_a_body_reads_buffers_and_holds_its_constants() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((4, 6), "float32"), "x")
    bent = b.add("exp", x)
    last = b.add("mul", b.view(bent, (6, 4), (1, 6)), b.constant(2.0))
    graph = b.build(last)
    body = write_body(Facts.of(graph), frozenset({len(graph.ops) - 1}))
    assert [op.kind for op in body.graph.ops] == ["input", "constant", "mul"]
    assert body.reads == ((1, TensorSpec((6, 4), "float32", (1, 6))),)
    assert body.outputs == (len(graph.ops) - 1,)


def test_one_buffer_read_in_one_way_is_one_input_and_labels_follow() -> None:
    graph = linear_gelu()
    facts = Facts.of(graph)
    body = write_body(facts, frozenset(i for i in range(len(graph.ops)) if facts.computes(i)))
    assert body.graph.labels == ("x", "w", "bias")
    assert [root for root, _ in body.reads] == [0, 1, 2]


def test_a_number_read_as_rows_keeps_its_rows_where_it_is_computed_again() -> None:
    b = GraphBuilder()
    w = b.input(contiguous((16, 8), "float32"), "w")
    zero = b.add("copy", b.constant(0.0))
    rows = b.view(zero, (2, 16), (0, 0))
    graph = b.build(b.add("matmul", rows, w))
    last = len(graph.ops) - 1
    body = write_body(Facts.of(graph), frozenset({last}), frozenset({zero})).graph
    (product,) = (op for op in body.ops if op.kind == "matmul")
    assert body.ops[product.inputs[0]].out.shape == (2, 16)
    assert [body.ops[i].kind for i in body.inputs] == ["input"]
