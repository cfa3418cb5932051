from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.grouping import GroupingSpace, grouping_space
from engine.ir import Graph, GraphBuilder, GraphError
from engine.ir.json_form import grouping_from_json, grouping_to_json
from engine.ir.plan import Grouping
from engine.ir.verify_plan import verify_grouping, verify_kernel
from engine.vocabulary import Option
from tests.ir.evaluate import evaluate, random_storages, run_plan
from tests.ir.graphs import add_softmax, contiguous, feed_forward, linear_gelu, random_graphs, softmax

Path = tuple[Option, ...]


def walk(space: GroupingSpace, choose: random.Random | int) -> Path:
    """A finished path: always the option at one position, or a random one."""
    path: Path = ()
    while (fork := space.fork(path)) is not None:
        position = choose if isinstance(choose, int) else choose.randrange(len(fork.options))
        path = (*path, fork.options[position])
    return path


def all_paths(space: GroupingSpace) -> list[Path]:
    found, open_paths = [], [()]
    while open_paths:
        path = open_paths.pop()
        fork = space.fork(path)
        if fork is None:
            found.append(path)
        else:
            open_paths += [(*path, option) for option in fork.options]
    return found


def families(plan: Grouping) -> list[str]:
    return [call.kernel.family for call in plan.calls]


def labels(plan: Grouping) -> list[str]:
    return [call.kernel.label for call in plan.calls]


def assert_same_function(graph: Graph, plan: Grouping) -> None:
    storages = random_storages(graph)
    for expected, found in zip(evaluate(graph, storages), run_plan(plan, storages), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@settings(max_examples=120, deadline=None)
@given(random_graphs(), st.integers(0, 2**32))
def test_every_grouping_computes_the_graph(graph: Graph, seed: int) -> None:
    space = grouping_space(graph)
    for choose in (0, 1, random.Random(seed)):
        plan = space.grouping(walk(space, choose))
        verify_grouping(plan)
        for call in plan.calls:
            verify_kernel(call.kernel)
        assert_same_function(graph, plan)


@pytest.mark.parametrize("graph", [linear_gelu(), softmax(), feed_forward()], ids=["linear", "softmax", "layer"])
def test_every_path_ends_in_a_grouping_of_its_own_that_computes_the_graph(graph: Graph) -> None:
    space = grouping_space(graph)
    paths = all_paths(space)
    plans = {grouping_to_json(replace(space.grouping(path), decisions=())) for path in paths}
    assert len(plans) == len(paths) > 1
    for text in plans:
        assert_same_function(graph, grouping_from_json(text))


def test_a_lone_matmul_asks_nothing() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((8, 8), "float32"))
    space = grouping_space(b.build(b.add("matmul", x, x)))
    assert space.fork(()) is None
    plan = space.grouping(())
    assert labels(plan) == ["matmul"]
    assert plan.decisions == ()


def test_an_epilogue_is_one_question_for_a_chain() -> None:
    space = grouping_space(linear_gelu())
    fork = space.fork(())
    assert fork is not None
    assert [str(option) for option in fork.options] == ["FUSE_EPILOGUE_0=fused", "FUSE_EPILOGUE_0=apart"]
    fused, apart = (space.grouping((option,)) for option in fork.options)
    assert labels(fused) == ["matmul+add+gelu"]
    assert labels(apart) == ["matmul", "add+gelu"]
    assert apart.decisions == (fork.options[1],)


def test_a_softmax_is_one_kernel_or_its_parts() -> None:
    space = grouping_space(softmax())
    assert labels(space.grouping(walk(space, 0))) == ["softmax"]
    assert labels(space.grouping(walk(space, 1))) == ["amax", "sub+exp", "sum", "div"]


def test_a_layer_fuses_into_five_kernels_and_reuses_none_of_its_weights() -> None:
    space = grouping_space(feed_forward())
    plan = space.grouping(walk(space, 0))
    assert labels(plan) == ["matmul+add", "rms_norm", "matmul", "matmul+silu+mul", "matmul+add"]


def test_equal_layers_ask_each_question_once() -> None:
    one, three = (grouping_space(feed_forward(layers)) for layers in (1, 3))
    for choose in (0, 1):
        short, long = walk(one, choose), walk(three, choose)
        assert len(long) <= len(short) + 1
        counts = three.grouping(long).kernel_counts()
        assert max(count for _, count in counts.values()) >= 3


def test_a_short_chain_on_an_operand_may_be_recomputed_even_through_a_transpose() -> None:
    b = GraphBuilder()
    x, w = b.input(contiguous((8, 16), "bfloat16")), b.input(contiguous((32, 16), "int8"))
    wide = b.add("mul", b.add("cast", w, dtype="bfloat16"), b.constant(0.5, "bfloat16"))
    graph = b.build(b.add("matmul", x, b.view(wide, (16, 32), (1, 16))))
    space = grouping_space(graph)
    fused, apart = (space.grouping(walk(space, position)) for position in (0, 1))
    assert labels(fused) == ["mul+matmul"]
    assert labels(apart) == ["mul", "matmul"]
    assert fused.calls[0].arguments[1].spec.strides == (1, 16)
    for plan in (fused, apart):
        assert_same_function(graph, plan)


def test_an_operand_that_others_read_is_not_recomputed() -> None:
    b = GraphBuilder()
    x, w = b.input(contiguous((8, 8), "float32")), b.input(contiguous((8, 8), "float32"))
    bent = b.add("relu", x)
    space = grouping_space(b.build(b.add("matmul", bent, w), bent))
    assert space.fork(()) is None
    assert families(space.grouping(())) == ["pointwise", "contraction"]


def test_a_rowwise_kernel_may_store_its_prologue_for_others() -> None:
    b = GraphBuilder()
    x, y = (b.input(contiguous((8, 16), "float32")) for _ in range(2))
    total = b.add("add", x, y)
    space = grouping_space(b.build(total, add_softmax(b, total)))
    plan = space.grouping(walk(space, 0))
    assert families(plan) == ["rowwise"]
    assert len(plan.calls[0].results) == 2


def test_a_dropped_axis_at_the_output_costs_no_kernel() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((8, 16), "float32"))
    plan = grouping_space(b.build(b.reduce_and_drop("sum", x, (1,)))).grouping(())
    assert families(plan) == ["rowwise"]
    assert plan.outputs[0].spec.shape == (8,)


def test_outputs_may_be_inputs_and_constants() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((8, 16), "float32"))
    graph = b.build(x, b.constant(3.0), b.view(x, (16, 8), (1, 16)))
    plan = grouping_space(graph).grouping(())
    assert_same_function(graph, plan)


def test_two_spaces_of_one_graph_answer_alike() -> None:
    graph = feed_forward()
    first, second = grouping_space(graph), grouping_space(graph)
    path = walk(first, random.Random(3))
    assert second.grouping(path) == first.grouping(path)


def test_what_is_no_path_is_refused() -> None:
    space = grouping_space(linear_gelu())
    with pytest.raises(GraphError, match="answers no question"):
        space.fork((Option((("FUSE_EPILOGUE_9", "fused"),)),))
    with pytest.raises(GraphError, match="FUSE_EPILOGUE_0 open"):
        space.grouping(())


def test_a_reduction_over_other_than_last_axes_is_refused_in_words() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((8, 16), "float32"))
    space = grouping_space(b.build(b.add("sum", x, axes=(0,))))
    with pytest.raises(GraphError, match="over the last axes"):
        space.grouping(())
