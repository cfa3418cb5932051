"""Norm and rotation before an attention: inside its kernel where that is legal and not too much work, or before it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codegen import declined_because
from engine.grouping import grouping_space
from engine.ir import Graph, GraphBuilder, TensorSpec
from engine.ir.plan import Grouping
from engine.ir.verify_plan import verify_grouping, verify_kernel
from engine.vocabulary import Option
from tests.codegen.attention_bodies import add_softmax
from tests.codegen.attention_prologue_bodies import PROLOGUES, QWEN3_LAYER, Heads
from tests.grouping.test_space import all_paths, assert_same_function, families

KNOB = "FUSE_ATTENTION_PROLOGUE"


def walked(graph: Graph, **answers: str) -> tuple[Grouping, list[str]]:
    """The plan of the first options, but at knobs named in `answers` (with or without a number); and what was asked."""
    space = grouping_space(graph)
    path: tuple[Option, ...] = ()
    asked: list[str] = []
    while (fork := space.fork(path)) is not None:
        asked.append(fork.name)
        wanted = [v for name, v in answers.items() if fork.name == name or fork.name.rsplit("_", 1)[0] == name]
        options = {str(option.knobs[0][1]): option for option in fork.options}
        path = (*path, options[wanted[0]] if wanted else fork.options[0])
    return space.grouping(path), asked


def questions(graph: Graph) -> int:
    return sum(name.startswith(KNOB) for name in walked(graph)[1])


def checked(graph: Graph, plan: Grouping) -> None:
    verify_grouping(plan)
    for call in plan.calls:
        assert declined_because(verify_kernel(call.kernel)) is None
    assert_same_function(graph, plan)


@pytest.mark.parametrize("name", sorted(PROLOGUES))
def test_queries_and_keys_are_computed_inside_or_before(name: str) -> None:
    graph = PROLOGUES[name]()
    inside, asked = walked(graph)
    before, _ = walked(graph, **{KNOB: "apart"})
    if any(knob.startswith(KNOB) for knob in asked):
        assert len(inside.calls) < len(before.calls)
        assert families(inside)[-1] == families(before)[-1] == "attention"
    checked(graph, inside)
    checked(graph, before)


def test_a_short_layer_is_one_kernel_from_its_projections_to_its_heads() -> None:
    graph = QWEN3_LAYER.body()
    plan, asked = walked(graph)
    assert families(plan) == ["attention"]
    assert [name for name in asked if name.startswith(KNOB)] == [f"{KNOB}_0", f"{KNOB}_1"]
    for number in (0, 1):
        before, _ = walked(graph, **{f"{KNOB}_{number}": "apart"})
        assert families(before) == ["pointwise", "rowwise", "attention"]


@pytest.mark.parametrize(
    ("tokens", "group", "asked"),
    [(64, 8, 2), (128, 4, 2), (128, 8, 1), (256, 2, 2), (257, 2, 1), (512, 1, 2), (4096, 2, 1)],
)
def test_keys_that_would_be_computed_too_often_are_computed_before(tokens: int, group: int, asked: int) -> None:
    assert questions(Heads(group, tokens, tokens, 16, "bfloat16", group=group).body()) == asked


def test_one_query_asks_for_long_keys_too() -> None:
    assert questions(Heads(8, 1, 4096, 16, "bfloat16", group=8).body()) == 2


def with_heads(between: str) -> Graph:
    """Attention whose keys are relu(k), and something about the keys that no kernel can hold with them."""
    b = GraphBuilder()
    q, k, v = (b.input(TensorSpec.contiguous((2, 8, 16), "float32")) for _ in range(3))
    keys = b.add("relu", k)
    if between == "softmax of tokens":
        keys = b.add("div", keys, b.add("amax", keys, axes=(2,)))
        keys = b.add(
            "add", keys, b.view(b.add("sum", b.view(k, (2, 16, 8), (128, 1, 16)), axes=(2,)), (2, 1, 16), (16, 16, 1))
        )
    rows = b.view(keys, (2, 8, 16), (16, 32, 1)) if between == "heads between tokens" else keys
    if between == "rolled tokens":
        rows = b.add("roll", keys, axis=1, shift=3)
    strides = b.spec(rows).strides
    scores = b.add("matmul", q, b.view(rows, (2, 16, 8), (strides[0], strides[2], strides[1])))
    values = b.add("abs", k) if between == "shared memory" else k if between == "keys are values" else v
    out = b.add("matmul", add_softmax(b, scores, "float32"), values)
    return b.build(out, *([keys] if between == "returned" else []))


@pytest.mark.parametrize(
    ("between", "asked"),
    [
        ("", 1),
        ("heads between tokens", 1),
        ("shared memory", 1),
        ("softmax of tokens", 1),
        ("rolled tokens", 0),
        ("returned", 0),
        ("keys are values", 0),
    ],
)
def test_only_what_keeps_to_its_head_and_nobody_else_needs_may_go_inside(between: str, asked: int) -> None:
    graph = with_heads(between)
    assert questions(graph) == asked
    checked(graph, walked(graph)[0])


def test_every_path_computes_a_small_layer() -> None:
    graph = Heads(4, 6, 6, 8, "float32", group=2, batch=2).body()
    space = grouping_space(graph)
    paths = all_paths(space)
    assert len(paths) > 4
    for path in paths[:: max(1, len(paths) // 25)]:
        checked(graph, space.grouping(path))


def test_layers_share_one_question_an_operand() -> None:
    b = GraphBuilder()
    x = b.input(TensorSpec.contiguous((2, 8, 16), "float32"))
    weight = b.input(TensorSpec.contiguous((2, 16, 16), "float32"))
    for _ in range(3):
        q, k = b.add("relu", b.add("matmul", x, weight)), b.add("abs", b.add("matmul", x, weight))
        scores = b.add("matmul", q, b.view(k, (2, 16, 8), (128, 1, 16)))
        x = b.add("matmul", add_softmax(b, scores, "float32"), x)
    graph = b.build(x)
    plan, asked = walked(graph)
    assert [name for name in asked if name.startswith(KNOB)] == [f"{KNOB}_0", f"{KNOB}_1"]
    assert sorted(n for k, n in plan.kernel_counts().values() if k.family == "attention") == [3]
    checked(graph, plan)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from((1, 2, 8)),
    st.integers(1, 2),
    st.integers(1, 9),
    st.integers(0, 5),
    st.integers(1, 9),
    st.sampled_from(("", "rms", "largest")),
    st.booleans(),
    st.booleans(),
    st.sampled_from((0, 4)),
    st.booleans(),
)
def test_layers_of_any_shape_compute_the_graph_either_way(
    group: int, batch: int, rows: int, more: int, half: int, norm: str, rotary: bool, flat: bool, gap: int, added: bool
) -> None:
    made = Heads(
        2 * group, rows, rows + more, 2 * half, "float32", batch, group,
        norm=norm, rotary=rotary, flat=flat, gap=gap, causal=not added, added=added, window=rows,
    )  # fmt: skip
    graph = made.body()
    for answer in ("fused", "apart"):
        checked(graph, walked(graph, **{KNOB: answer})[0])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_heads_that_are_read_in_another_order_than_computed(data: st.DataObject) -> None:
    """Axes of the computed value and of its view cut the heads in different places, or permute and repeat them."""
    depth = data.draw(st.sampled_from((2, 6)))
    computed, viewed = (data.draw(st.permutations((2, 2, 3, 2))) for _ in range(2))
    cut = data.draw(st.integers(0, 4))
    shape = (math.prod(computed[:cut]), math.prod(computed[cut:]), depth)
    order = data.draw(st.permutations(range(4)))
    strides = [depth * math.prod(viewed[i + 1 :]) for i in range(4)]
    repeats = data.draw(st.sampled_from((1, 2)))
    lead = (repeats, *(viewed[i] for i in order))
    steps = (0, *(strides[i] for i in order), 1)
    b = GraphBuilder()
    x = b.input(TensorSpec.contiguous(shape, "float32"))
    scale = b.input(TensorSpec.contiguous((1, shape[1], 1), "float32"))
    heads = b.add("div", b.add("mul", x, scale), b.add("amax", b.add("abs", x), axes=(2,)))
    other = b.input(TensorSpec.contiguous((*lead[:-1], 5, depth), "float32"))
    values = b.input(TensorSpec.contiguous((*lead[:-1], 5, depth), "float32"))
    query = b.view(heads, (*lead, depth), steps)
    turned = b.spec(other).strides
    keys = b.view(other, (*lead[:-1], depth, 5), (*turned[:-2], turned[-1], turned[-2]))
    graph = b.build(b.add("matmul", add_softmax(b, b.add("matmul", query, keys), "float32"), values))
    checked(graph, walked(graph)[0])
