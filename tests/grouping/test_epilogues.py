"""Groups of columns at the end of a projection, and rows that are summed where they are needed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codegen import declined_because
from engine.grouping import grouping_space
from engine.ir import Graph, GraphBuilder
from engine.ir.plan import Grouping
from engine.ir.verify_plan import verify_grouping, verify_kernel
from tests.codegen.epilogue_bodies import (
    EPILOGUES,
    head_norm,
    linear,
    partial_sums,
    projections,
    reshaped,
    rotated,
    scale_of,
    tensor,
)
from tests.grouping.test_space import all_paths, assert_same_function, labels


def planned(graph: Graph, **answers: str) -> tuple[Grouping, list[str]]:
    """The plan of the first answers, but those of rules in `answers`; and which rules asked."""
    space = grouping_space(graph)
    path, asked = (), []
    while (fork := space.fork(path)) is not None:
        rule = fork.name.rsplit("_", 1)[0]
        asked.append(rule)
        options = {str(option.knobs[0][1]): option for option in fork.options}
        path = (*path, options[answers[rule]] if rule in answers else fork.options[0])
    return space.grouping(path), asked


def checked(graph: Graph, plan: Grouping) -> Grouping:
    verify_grouping(plan)
    for call in plan.calls:
        assert declined_because(verify_kernel(call.kernel)) is None
    assert_same_function(graph, plan)
    return plan


def test_projections_with_norm_and_rotation_are_one_kernel_or_apart() -> None:
    graph = projections(6, 8, 8, (4, 2, 2), "float32")
    plan, asked = planned(graph)
    assert len(checked(graph, plan).calls) == 1
    assert plan.calls[0].kernel.label.startswith("3 matmuls+mul+mean+add+rsqrt")
    assert asked.count("FUSE_GROUPS") == 2
    apart, _ = planned(graph, FUSE_GROUPS="apart", SIDE_BY_SIDE="apart")
    assert [call.kernel.family for call in checked(graph, apart).calls].count("rowwise") == 2


@pytest.mark.parametrize("name", sorted(EPILOGUES))
def test_every_body_is_one_kernel_by_the_first_answers_or_by_merging(name: str) -> None:
    graph = EPILOGUES[name]()
    plan, _ = planned(graph, MERGE_SIBLINGS="merged")
    contractions = [call for call in checked(graph, plan).calls if call.kernel.family == "contraction"]
    assert len(plan.calls) == len(contractions) == 1


def test_every_path_of_projections_is_generated_and_computes_the_graph() -> None:
    graph = projections(5, 8, 4, (4, 2, 2), "float32")
    space = grouping_space(graph)
    paths = all_paths(space)
    assert len(paths) > 20
    for path in paths[:: max(1, len(paths) // 40)]:
        checked(graph, space.grouping(path))


@pytest.mark.parametrize(("size", "heads"), [(12, 2), (8, 1), (512, 2)], ids=["no power", "one head", "wide"])
def test_heads_that_are_no_groups_stay_a_kernel_of_their_own(size: int, heads: int) -> None:
    graph = projections(4, 8, size, (heads,), "float32")
    plan, asked = planned(graph)
    assert "FUSE_GROUPS" not in asked
    assert len(checked(graph, plan).calls) > 1


def test_a_turn_that_is_not_half_a_head_stays_apart() -> None:
    b = GraphBuilder()
    product = linear(b, tensor(b, (6, 8), "float32"), 32)
    normed = head_norm(b, product, 4, 8, tensor(b, (8,), "float32"))
    graph = b.build(b.add("add", normed, b.add("roll", normed, axis=2, shift=2)))
    plan, _ = planned(graph)
    assert len(checked(graph, plan).calls) == 2


def test_tokens_between_heads_are_no_groups() -> None:
    b = GraphBuilder()
    product = linear(b, tensor(b, (6, 8), "float32"), 32)
    graph = b.build(b.add("sum", b.view(product, (4, 6, 8), (8, 32, 1)), axes=(2,)))
    plan, asked = planned(graph)
    assert "FUSE_GROUPS" not in asked
    assert len(checked(graph, plan).calls) == 2


def test_partial_sums_are_a_further_output() -> None:
    graph = partial_sums(6, 64, 32)
    plan, _ = planned(graph)
    assert [len(call.results) for call in checked(graph, plan).calls] == [2]
    apart, _ = planned(graph, FUSE_GROUPS="apart")
    assert len(checked(graph, apart).calls) == 2


def scaled(readers: int, *, parts: int = 4, through: str = "") -> Graph:
    """Products of one operand whose rows are scaled by one sum of partial sums, which a kernel computes."""
    b = GraphBuilder()
    x, partial = tensor(b, (6, 16), "float32"), b.add("exp", tensor(b, (6, parts), "float32"))
    total = b.add("sum", partial, axes=(1,))
    scale = b.add("rsqrt", b.add("add", b.add("mul", total, b.constant(0.5)), b.constant(1.0)))
    left = b.add("mul", x, scale) if through == "operand" else x
    results = [b.add("mul", linear(b, left, 32 + 16 * i), scale) for i in range(readers)]
    if through == "pointwise":
        results.append(b.add("mul", x, scale))
    return b.build(*results, partial, *([scale] if through == "returned" else []))


@pytest.mark.parametrize("readers", [1, 2])
@pytest.mark.parametrize("beside", ["merged", "apart"])
def test_row_sums_are_computed_by_every_product_that_they_scale(readers: int, beside: str) -> None:
    graph = scaled(readers)
    plan, asked = planned(graph, SIDE_BY_SIDE=beside)
    assert asked.count("FUSE_ROW_SUMS") == 1
    assert [call.kernel.family for call in checked(graph, plan).calls].count("rowwise") == 0
    apart, _ = planned(graph, SIDE_BY_SIDE=beside, FUSE_ROW_SUMS="apart")
    assert [call.kernel.family for call in checked(graph, apart).calls].count("rowwise") == 1


@pytest.mark.parametrize(
    "graph",
    [scaled(1, parts=129), *(scaled(1, through=through) for through in ("operand", "pointwise", "returned"))],
    ids=["long", "operand", "pointwise", "returned"],
)
def test_row_sums_that_others_need_or_that_are_long_stay_a_kernel(graph: Graph) -> None:
    plan, asked = planned(graph)
    assert "FUSE_ROW_SUMS" not in asked
    checked(graph, plan)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 3), st.sampled_from((2, 4, 8)), st.integers(1, 4), st.integers(1, 4), st.booleans(),
    st.booleans(), st.sampled_from(("fused", "apart")),
)  # fmt: skip
def test_layers_of_any_heads_compute_the_graph(
    tokens: int, size: int, first: int, second: int, normed: bool, scale: bool, answer: str
) -> None:
    b = GraphBuilder()
    x = tensor(b, (tokens, 8), "float32")
    rows = scale_of(b, tokens, 3) if scale else None
    cos, sin = (reshaped(b, tensor(b, (tokens, size), "float32"), tokens, 1, size) for _ in range(2))
    results = []
    for heads in (first, second):
        product = linear(b, x, heads * size)
        product = product if rows is None else b.add("mul", product, rows)
        split = head_norm(b, product, heads, size, tensor(b, (size,), "float32")) if normed else product
        results.append(rotated(b, reshaped(b, split, tokens, heads, size), cos, sin))
    graph = b.build(*results)
    for beside in ("merged", "apart"):
        checked(graph, planned(graph, FUSE_GROUPS=answer, SIDE_BY_SIDE=beside)[0])


def test_labels_name_what_is_beside() -> None:
    graph = projections(6, 8, 8, (4, 2), "float32")
    assert labels(planned(graph)[0]) == ["2 matmuls+mul+mean+add+rsqrt…"]
