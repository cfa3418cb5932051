"""Values from positions, values read from other places, and calls of ATen ops: which kernels they become."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codegen import declined_because, illegal_because, is_generated, offered_schedules, render
from engine.grouping import grouping_space
from engine.ir import Graph, GraphBuilder, GraphError, TensorSpec
from engine.ir.extern import arguments_to_json
from engine.ir.verify_plan import verify_grouping, verify_kernel
from engine.vocabulary import Target
from tests.codegen.moving_bodies import POINTWISE_MOVES, ROWWISE_MOVES, add_rotary, rotated, tensor
from tests.grouping.test_space import all_paths, assert_same_function, families, labels, walk
from tests.ir.graphs import add_rms_norm, add_softmax


def assert_every_path_is_generated(graph: Graph, most: int = 40) -> None:
    space = grouping_space(graph)
    paths = all_paths(space)
    for path in paths[:: max(1, len(paths) // most)]:
        plan = verify_grouping(space.grouping(path))
        for call in plan.calls:
            assert declined_because(verify_kernel(call.kernel)) is None
        assert_same_function(graph, plan)


BODIES = POINTWISE_MOVES | ROWWISE_MOVES


@pytest.mark.parametrize("name", sorted(set(BODIES) - {"counted"}))
def test_every_path_through_a_body_with_moves_is_generated(name: str) -> None:
    assert_every_path_is_generated(BODIES[name]())


def test_rotary_is_one_kernel_from_its_own_input() -> None:
    plan = grouping_space(POINTWISE_MOVES["rotary"]()).grouping(())
    assert families(plan) == ["pointwise"]
    assert len(plan.calls[0].arguments) == 3


def test_positions_are_computed_by_each_of_their_readers() -> None:
    b = GraphBuilder()
    x = tensor(b, (6, 6))
    seen = b.add("ge", b.iota(6, 0, 2), b.iota(6, 1, 2))
    first = b.add("matmul", b.add("where", seen, x, b.constant(0.0)), x)
    second = b.add("matmul", b.add("where", seen, first, b.constant(1.0)), x)
    graph = b.build(second)
    plan = grouping_space(graph).grouping(walk(grouping_space(graph), 1))
    assert families(plan) == ["pointwise", "contraction", "pointwise", "contraction"]
    assert [sum(op.kind == "iota" for op in call.kernel.body.ops) for call in plan.calls] == [2, 0, 2, 0]
    assert_every_path_is_generated(graph)


def test_positions_that_are_returned_are_a_kernel_and_a_long_chain_of_them_too() -> None:
    b = GraphBuilder()
    plan = grouping_space(b.build(b.add("mul", b.iota(6), b.constant(2, "int64")), b.iota(6))).grouping(())
    assert set(families(plan)) == {"pointwise"}
    b = GraphBuilder()
    value = b.iota(6)
    for step in range(20):
        value = b.add("add", value, b.constant(step + 1, "int64"))
    graph = b.build(b.add("matmul", tensor(b, (4, 6)), b.add("mul", tensor(b, (6, 6)), value)))
    assert_every_path_is_generated(graph)


def test_what_moves_elements_reads_memory_so_it_starts_a_kernel() -> None:
    b = GraphBuilder()
    x = b.add("relu", tensor(b, (4, 8)))
    graph = b.build(b.add("mul", b.add("roll", x, axis=1, shift=3), x))
    plan = grouping_space(graph).grouping(walk(grouping_space(graph), 0))
    assert labels(plan) == ["relu", "roll+mul"]
    assert_every_path_is_generated(graph)


def test_a_chain_that_only_a_move_reads_may_be_recomputed_in_it() -> None:
    b = GraphBuilder()
    x = tensor(b, (4, 8))
    low, high = (b.view(x, (4, 4), (8, 1), offset) for offset in (0, 4))
    graph = b.build(b.add("cat", b.add("neg", high), low, axis=1))
    space = grouping_space(graph)
    assert families(space.grouping(walk(space, 0))) == ["pointwise"]
    assert families(space.grouping(walk(space, 1))) == ["pointwise", "pointwise"]
    assert_every_path_is_generated(graph)


def test_norm_and_rotary_are_one_kernel_or_two() -> None:
    b = GraphBuilder()
    y = add_rms_norm(b, tensor(b, (3, 4, 8), "bfloat16"), tensor(b, (8,), "bfloat16"))
    graph = b.build(add_rotary(b, y, tensor(b, (4, 8), "bfloat16"), tensor(b, (4, 8), "bfloat16")))
    space = grouping_space(graph)
    assert families(space.grouping(walk(space, 0))) == ["rowwise"]
    assert_every_path_is_generated(graph)


def test_a_roll_along_other_axes_than_the_row_stays_behind_its_norm() -> None:
    b = GraphBuilder()
    y = add_rms_norm(b, tensor(b, (4, 8), "bfloat16"), tensor(b, (8,), "bfloat16"))
    graph = b.build(b.add("add", b.add("roll", y, axis=0, shift=1), y))
    space = grouping_space(graph)
    assert families(space.grouping(walk(space, 0))) == ["rowwise", "pointwise"]
    assert_every_path_is_generated(graph)


def test_a_roll_of_a_product_stays_behind_it() -> None:
    b = GraphBuilder()
    y = b.add("matmul", tensor(b, (4, 8)), tensor(b, (8, 8)))
    graph = b.build(rotated(b, y))
    space = grouping_space(graph)
    assert families(space.grouping(walk(space, 0))) == ["contraction", "pointwise"]
    assert_every_path_is_generated(graph)


def cumulative() -> Graph:
    b = GraphBuilder()
    x = b.add("relu", tensor(b, (4, 8)))
    arguments = arguments_to_json([{"tensor": 0}, 1], {})
    done = b.extern("aten.cumsum.default", (x,), arguments, TensorSpec.contiguous((4, 8), "float32"))
    return b.build(add_softmax(b, b.add("exp", done)))


def test_an_aten_op_is_a_kernel_of_its_own_with_one_schedule_and_no_text() -> None:
    space = grouping_space(cumulative())
    for choose in (0, 1, random.Random(2)):
        plan = verify_grouping(space.grouping(walk(space, choose)))
        (call,) = [c for c in plan.calls if c.kernel.family == "extern"]
        assert call.kernel.label == "cumsum"
        assert len(verify_kernel(call.kernel).body.ops) == 2
        assert all(declined_because(c.kernel) is None for c in plan.calls)
        assert [is_generated(c.kernel) for c in plan.calls].count(False) == 1
        (schedule,) = offered_schedules(call.kernel, Target())
        assert illegal_because(call.kernel, schedule, Target()) is None
        with pytest.raises(ValueError, match=r"aten\.cumsum\.default"):
            render(call.kernel, schedule)


@st.composite
def moving_graphs(draw: st.DrawFn) -> Graph:
    """Chains of pointwise ops, rolls, joins, gathers, norms and products over one shape."""
    b = GraphBuilder()
    values = [tensor(b, (4, 6)) for _ in range(2)]
    index = b.input(TensorSpec.contiguous((4,), "int64"))
    for _ in range(draw(st.integers(1, 7))):
        x, y = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        kind = draw(st.sampled_from(("add", "roll", "cat", "gather", "mask", "softmax", "matmul", "rotated", "turned")))
        if kind == "add":
            values.append(b.add("add", b.add("tanh", x), y))
        elif kind == "roll":
            axis = draw(st.integers(0, 1))
            values.append(b.add("roll", x, axis=axis, shift=draw(st.integers(0, 3))))
        elif kind == "cat":
            left, right = b.view(x, (4, 2), (6, 1)), b.view(y, (4, 4), (6, 1), 1)
            values.append(b.add("cat", b.add("neg", left), right, axis=1))
        elif kind == "gather":
            values.append(b.add("gather", x, index))
        elif kind == "mask":
            seen = b.add("le", b.iota(6, 1, 2), b.add("add", b.iota(4, 0, 2), b.constant(1, "int64")))
            values.append(b.add("where", seen, x, b.constant(0.5)))
        elif kind == "softmax":
            values.append(add_softmax(b, x))
        elif kind == "matmul":
            values.append(b.add("matmul", b.view(x, (4, 4), (6, 1)), y))
        elif kind == "rotated":
            values.append(rotated(b, x))
        else:
            values.append(b.add("abs", b.view(b.add("exp", x), (4, 6), (1, 4))))
    return b.build(*draw(st.lists(st.sampled_from(values[2:]), min_size=1, max_size=3, unique=True)))


@settings(max_examples=60, deadline=None)
@given(moving_graphs(), st.integers(0, 2**32))
def test_every_grouping_of_moves_computes_the_graph_and_is_generated(graph: Graph, seed: int) -> None:
    space = grouping_space(graph)
    for choose in (0, 1, random.Random(seed)):
        plan = verify_grouping(space.grouping(walk(space, choose)))
        for call in plan.calls:
            assert declined_because(verify_kernel(call.kernel)) is None
        assert_same_function(graph, plan)


def test_a_reduction_of_other_axes_is_still_refused() -> None:
    b = GraphBuilder()
    with pytest.raises(GraphError, match="over the last axes"):
        grouping_space(b.build(b.add("sum", tensor(b, (4, 8)), axes=(0,)))).grouping(())
