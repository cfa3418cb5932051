from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codegen import declined_because
from engine.grouping import grouping_space
from engine.ir import Graph, GraphBuilder
from engine.ir.verify_plan import verify_grouping, verify_kernel
from tests.codegen.attention_bodies import add_causal, add_softmax, attention
from tests.grouping.test_space import all_paths, assert_same_function, families, labels, walk
from tests.ir.graphs import contiguous

FUSED, APART = 0, 1


def asks_of_attention(graph: Graph) -> bool:
    fork = grouping_space(graph).fork(())
    return fork is not None and fork.name == "FUSE_ATTENTION_0"


def projected(between: Callable[[GraphBuilder, int], int] | None = None, *, also: str = "") -> Graph:
    """Projections of one input, two heads of attention, the heads side by side, and an output projection."""
    b = GraphBuilder()
    x = b.input(contiguous((10, 16), "float32"))
    weights = [b.input(contiguous((16, 16), "float32")) for _ in range(4)]
    heads = []
    for weight in weights[:3]:
        y = b.add("matmul", x, weight)
        heads.append(b.view(y, (2, 10, 8), (8, 16, 1)))
    turned = b.view(heads[1], (2, 8, 10), (8, 1, 16))
    scores = b.add("matmul", heads[0], turned)
    scaled = b.add("mul", scores, b.constant(0.3))
    logits = between(b, scaled) if between else add_causal(b, scaled)
    weighted = add_softmax(b, logits, "float32")
    out = b.add("matmul", weighted, heads[2])
    joined = b.add("copy", b.view(out, (10, 2, 8), (8, 80, 1)))
    y = b.add("matmul", b.view(joined, (10, 16), (16, 1)), weights[3])
    return b.build(y, *({"scores": (scores,), "weights": (weighted,), "values": (out,)}.get(also, ())))


def test_attention_is_one_kernel_or_its_parts() -> None:
    space = grouping_space(projected())
    fork = space.fork(())
    assert fork is not None
    assert [str(option) for option in fork.options] == ["FUSE_ATTENTION_0=fused", "FUSE_ATTENTION_0=apart"]
    fused = space.grouping(walk(space, FUSED))
    assert labels(fused) == ["matmul"] * 3 + ["attention", "matmul"]
    apart = space.grouping(walk_with(space, dict.fromkeys(("FUSE_ATTENTION", "FUSE_EPILOGUE"), APART)))
    assert "attention" not in families(apart)
    assert families(apart).count("contraction") == 6
    assert labels(apart)[-2:] == ["copy", "matmul"]


def test_every_path_computes_attention() -> None:
    graph = projected()
    space = grouping_space(graph)
    paths = all_paths(space)
    assert len(paths) > 10
    for path in paths[:: max(1, len(paths) // 40)]:
        plan = verify_grouping(space.grouping(path))
        for call in plan.calls:
            verify_kernel(call.kernel)
            assert declined_because(call.kernel) is None
        assert_same_function(graph, plan)


def test_apart_softmax_is_one_kernel_with_the_mask_computed_from_positions() -> None:
    space = grouping_space(projected())
    plan = space.grouping(walk_with(space, {"FUSE_ATTENTION": APART}))
    assert families(plan) == ["contraction"] * 4 + ["rowwise", "contraction", "pointwise", "contraction"]
    softmax = plan.calls[4].kernel.body
    assert len(softmax.inputs) == 1
    assert any(op.kind == "iota" for op in (*softmax.ops, *plan.calls[3].kernel.body.ops))


def walk_with(space: object, answers: dict[str, int]) -> tuple[object, ...]:
    """Fused everywhere but where `answers` says otherwise."""
    path: tuple[object, ...] = ()
    while (fork := space.fork(path)) is not None:  # type: ignore[attr-defined]
        path = (*path, fork.options[answers.get(fork.name.rsplit("_", 1)[0], FUSED)])
    return path


@pytest.mark.parametrize("also", ["scores", "weights"])
def test_scores_and_weights_that_others_need_are_stored_and_attention_is_not_offered(also: str) -> None:
    graph = projected(also=also)
    assert not asks_of_attention(graph)
    space = grouping_space(graph)
    assert_same_function(graph, space.grouping(walk(space, FUSED)))


def test_values_that_others_need_too_leave_the_copy_apart() -> None:
    graph = projected(also="values")
    space = grouping_space(graph)
    plan = space.grouping(walk_with(space, {}))  # type: ignore[arg-type]
    assert "attention" in families(plan)
    (call,) = [c for c in plan.calls if c.kernel.family == "attention"]
    assert call.kernel.body.ops[call.kernel.body.outputs[0]].kind == "matmul"
    assert_same_function(graph, plan)


def unequal_masks(b: GraphBuilder, scores: int) -> int:
    """The maximum is taken of other logits than the powers: no softmax of one thing."""
    masked, other = add_causal(b, scores), add_causal(b, scores, window=3)
    peak = b.add("amax", masked, axes=(2,))
    powers = b.add("exp", b.add("sub", other, peak))
    return b.add("div", powers, b.add("sum", powers, axes=(2,)))


def test_unequal_masks_are_no_attention() -> None:
    b = GraphBuilder()
    q, k, v = (b.input(contiguous((2, 8, 16), "float32")) for _ in range(3))
    scores = b.add("matmul", q, b.view(k, (2, 16, 8), (128, 1, 16)))
    assert not asks_of_attention(b.build(b.add("matmul", unequal_masks(b, scores), v)))


@pytest.mark.parametrize(
    "graph",
    [
        attention(2, 16, 16, 272, "float16"),
        attention(2, 16, 16, 32, "float16", width=300),
        attention(2, 16, 16, 32, "float64"),
    ],
    ids=["head", "values", "dtype"],
)
def test_unsupported_sizes_are_not_offered(graph: Graph) -> None:
    assert not asks_of_attention(graph)


def test_a_softmax_over_queries_is_no_attention() -> None:
    b = GraphBuilder()
    q, k = (b.input(contiguous((2, 16, 16), "float32")) for _ in range(2))
    scores = b.add("matmul", q, k)
    powers = b.add("exp", b.add("sub", scores, b.add("amax", scores, axes=(1,))))
    weights = b.add("div", powers, b.add("sum", powers, axes=(1,)))
    assert not asks_of_attention(b.build(b.add("matmul", weights, k)))


def test_two_softmaxes_behind_one_another_are_no_attention() -> None:
    b = GraphBuilder()
    q, k = (b.input(contiguous((2, 16, 16), "float32")) for _ in range(2))
    inner = add_softmax(b, b.add("matmul", q, k), "float32")
    assert not asks_of_attention(b.build(b.add("matmul", add_softmax(b, inner, "float32"), k)))


def test_values_computed_by_a_short_chain_stay_a_kernel_when_attention_is_fused() -> None:
    b = GraphBuilder()
    q, k, v = (b.input(contiguous((2, 8, 16), "float32")) for _ in range(3))
    scores = b.add("matmul", q, b.view(k, (2, 16, 8), (128, 1, 16)))
    graph = b.build(b.add("matmul", add_softmax(b, scores, "float32"), b.add("relu", v)))
    space = grouping_space(graph)
    plan = space.grouping(walk(space, FUSED))
    assert families(plan) == ["pointwise", "attention"]
    assert declined_because(plan.calls[1].kernel) is None
    apart = space.grouping(walk_with(space, {"FUSE_ATTENTION": APART}))  # type: ignore[arg-type]
    assert families(apart) == ["contraction", "rowwise", "contraction"]


def test_layers_share_one_question_and_one_kernel() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((2, 8, 16), "float32"))
    for _ in range(3):
        scores = add_causal(b, b.add("matmul", x, b.view(b.add("copy", x), (2, 16, 8), (128, 1, 16))))
        x = b.add("matmul", add_softmax(b, scores, "float32"), b.add("relu", x))
    space = grouping_space(b.build(x))
    path = walk(space, FUSED)
    assert [str(o) for o in path if "ATTENTION" in str(o)] == ["FUSE_ATTENTION_0=fused"]
    assert sorted(count for k, count in space.grouping(path).kernel_counts().values() if k.family == "attention") == [3]


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from((1, 2, 8)),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 20),
    st.booleans(),
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
)
def test_attention_of_any_shape_is_fused_or_apart_and_computes_the_graph(
    group: int, rows: int, keys: int, head: int, causal: bool, window: int, tokens_first: bool, joined: bool
) -> None:
    graph = attention(
        group, rows, keys, head, "float32", group=group, batch=2, causal=causal, offset=keys, window=window + keys,
        tokens_first=tokens_first, joined=joined,
    )  # fmt: skip
    space = grouping_space(graph)
    for choose in (FUSED, APART):
        plan = space.grouping(walk(space, choose))
        assert ("attention" in families(plan)) == (choose == FUSED)
        for call in plan.calls:
            assert declined_because(verify_kernel(call.kernel)) is None
        assert_same_function(graph, plan)


@pytest.mark.parametrize("mask", [{"hidden": (2, 1, 9, 9)}, {"hidden": (2, 1, 9, 1)}, {"added": (9, 9)}])
def test_attention_that_gives_zeros_for_hidden_queries_is_fused_or_apart(mask: dict[str, tuple[int, ...]]) -> None:
    graph = attention(2, 9, 9, 8, "float32", batch=2, safe=True, **mask)  # type: ignore[arg-type]
    space = grouping_space(graph)
    for choose, kernels in ((FUSED, ["attention"]), (APART, ["contraction", "rowwise", "contraction", "pointwise"])):
        plan = space.grouping(walk_with(space, dict.fromkeys(("FUSE_ATTENTION", "FUSE_EPILOGUE"), choose)))
        assert families(plan) == kernels
        for call in plan.calls:
            assert declined_because(verify_kernel(call.kernel)) is None
        assert_same_function(graph, plan)
