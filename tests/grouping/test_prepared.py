"""What depends on weights alone is computed once and by no kernel, unless that would cost memory or leave nothing."""

from __future__ import annotations

from engine.grouping import grouping_space
from engine.grouping.prepared import fixed_values, take_out_prepared
from engine.ir import Graph, GraphBuilder
from engine.ir.plan import Grouping
from tests.grouping.rewritable import contiguous, linear
from tests.grouping.test_space import assert_same_function, labels, walk


def plan_of(graph: Graph) -> Grouping:
    space = grouping_space(graph)
    return space.grouping(walk(space, 0))


def test_a_value_of_weights_alone_is_a_buffer_and_no_kernel() -> None:
    b = GraphBuilder()
    x, w = b.input(contiguous((4, 8), "float32"), "x"), b.input(contiguous((8,), "float32"), "w", weight=True)
    one = b.add("add", b.add("exp", w), b.constant(1.0))
    graph = b.build(b.add("mul", x, one), b.add("add", x, b.view(one, (4, 8), (0, 1))))
    plan = plan_of(graph)
    (step,) = plan.prepared
    assert labels(plan) == ["mul", "add"]
    assert (step.arguments[0].buffer, step.results) == (1, (2,))
    assert plan.input_specs() == graph.input_specs()
    assert_same_function(graph, plan)


def test_the_same_graph_without_weights_prepares_nothing() -> None:
    b = GraphBuilder()
    x, w = b.input(contiguous((4, 8), "float32")), b.input(contiguous((8,), "float32"))
    graph = b.build(b.add("mul", x, b.add("exp", w)))
    assert take_out_prepared(graph).graph is graph
    assert plan_of(graph).prepared == ()


def test_reductions_products_and_rows_of_weights_are_prepared() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((4, 8), "float32"))
    v, w = (b.input(contiguous((8, 8), "float32"), weight=True) for _ in range(2))
    product = b.add("matmul", v, w)
    rows = b.add("gather", product, b.iota(4))
    graph = b.build(b.add("add", b.add("mul", x, rows), b.add("sum", v, axes=(0,))))
    plan = plan_of(graph)
    assert labels(plan) == ["mul+add"]
    assert len(plan.prepared) == 2
    assert_same_function(graph, plan)


def test_a_matrix_that_is_wider_than_its_weight_stays_with_its_reader() -> None:
    b = GraphBuilder()
    x, w = b.input(contiguous((8, 16), "bfloat16")), b.input(contiguous((32, 16), "int8"), weight=True)
    wide = b.add("mul", b.add("cast", w, dtype="bfloat16"), b.constant(0.5, "bfloat16"))
    plan = plan_of(b.build(b.add("matmul", x, b.view(wide, (16, 32), (1, 16)))))
    assert plan.prepared == ()
    assert labels(plan) == ["mul+matmul"]


def test_a_vector_may_be_wider_than_its_weight() -> None:
    b = GraphBuilder()
    x, w = b.input(contiguous((8, 16), "float32")), b.input(contiguous((16,), "bfloat16"), weight=True)
    graph = b.build(b.add("mul", x, b.add("add", b.add("cast", w, dtype="float32"), b.constant(1.0))))
    assert len(plan_of(graph).prepared) == 1
    assert_same_function(graph, plan_of(graph))


def test_a_prepared_value_may_be_returned() -> None:
    b = GraphBuilder()
    x, w = b.input(contiguous((8,), "float32")), b.input(contiguous((8,), "float32"), weight=True)
    bent = b.add("exp", w)
    graph = b.build(bent, b.add("add", x, bent), b.view(bent, (4, 2), (1, 4)))
    plan = plan_of(graph)
    assert labels(plan) == ["add"]
    assert_same_function(graph, plan)


def test_a_program_of_weights_alone_keeps_its_kernels() -> None:
    b = GraphBuilder()
    w = b.input(contiguous((8, 4), "float32"), weight=True)
    plan = plan_of(b.build(b.add("exp", w)))
    assert (labels(plan), plan.prepared) == (["exp"], ())


def test_what_positions_and_constants_give_is_not_fixed_by_a_weight() -> None:
    b = GraphBuilder()
    x, w = b.input(contiguous((4,), "float32")), b.input(contiguous((4,), "float32"), weight=True)
    ramp = b.add("add", b.iota(4), b.constant(2, "int64"))
    scaled = b.add("mul", w, b.add("cast", ramp, dtype="float32"))
    graph = b.build(b.add("add", x, scaled))
    kinds = {graph.ops[i].kind for i in fixed_values(graph)}
    assert kinds == {"input", "mul"}
    assert len(plan_of(graph).prepared) == 1


def test_a_weight_that_is_only_viewed_is_read_where_it_is() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((4, 16), "float32"))
    plan = plan_of(b.build(linear(b, x, 8)))
    assert plan.prepared == ()
    assert {view.buffer for view in plan.calls[0].arguments} == {0, 1}
