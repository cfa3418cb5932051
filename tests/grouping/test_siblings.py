from __future__ import annotations

import pytest

from engine.codegen import declined_because
from engine.grouping import GroupingSpace, grouping_space
from engine.ir import Graph, GraphBuilder
from engine.ir.verify_plan import verify_grouping, verify_kernel
from engine.vocabulary import Option
from tests.grouping.test_space import all_paths, assert_same_function, families, labels
from tests.ir.graphs import contiguous, feed_forward


def walk_merging(space: GroupingSpace, answer: str, beside: str = "apart") -> tuple[Option, ...]:
    """Siblings answered with `answer`, those of unequal widths with `beside`, everything else fused."""
    path: tuple[Option, ...] = ()
    while (fork := space.fork(path)) is not None:
        rule = fork.name.rsplit("_", 1)[0]
        wanted = {"MERGE_SIBLINGS": answer, "SIDE_BY_SIDE": beside}.get(rule, "fused")
        path = (*path, next(o for o in fork.options if o.knobs[0][1] == wanted))
    return path


def projections(*widths: int, depth: int = 16) -> Graph:
    b = GraphBuilder()
    x = b.input(contiguous((8, depth), "bfloat16"))
    return b.build(*(b.add("matmul", x, b.input(contiguous((depth, w), "bfloat16"))) for w in widths))


def sibling_forks(graph: Graph) -> int:
    space = grouping_space(graph)
    return sum(str(option).startswith("MERGE_SIBLINGS") for option in walk_merging(space, "merged"))


def test_gate_and_up_are_one_kernel_with_their_product_or_two() -> None:
    space = grouping_space(feed_forward())
    merged = space.grouping(walk_merging(space, "merged"))
    assert labels(merged) == ["matmul+add", "rms_norm", "2 matmuls+silu+mul", "matmul+add"]
    apart = space.grouping(walk_merging(space, "apart"))
    assert labels(apart) == ["matmul+add", "rms_norm", "matmul", "matmul+silu+mul", "matmul+add"]


def test_apart_is_the_first_answer() -> None:
    fork = grouping_space(projections(24, 24)).fork(())
    assert fork is not None
    assert [str(option) for option in fork.options] == ["MERGE_SIBLINGS_0=apart", "MERGE_SIBLINGS_0=merged"]


def test_siblings_of_any_number_up_to_three_share_a_kernel_and_store_a_result_each() -> None:
    for widths, kernels in (((24,) * 2, [2]), ((24,) * 3, [3]), ((24,) * 4, [3, 1]), ((24, 8, 8), [1, 2])):
        graph = projections(*widths)
        space = grouping_space(graph)
        plan = space.grouping(walk_merging(space, "merged"))
        assert sorted(len(call.results) for call in plan.calls) == sorted(kernels)
        assert_same_function(graph, plan)


@pytest.mark.parametrize(
    ("widths", "results"),
    [((24, 8), [2]), ((24, 8, 8), [3]), ((24, 24, 8), [3]), ((24, 8, 16, 16), [1, 3]), ((8, 8), [1, 1])],
)
def test_siblings_of_unequal_widths_lie_side_by_side(widths: tuple[int, ...], results: list[int]) -> None:
    graph = projections(*widths)
    space = grouping_space(graph)
    plan = verify_grouping(space.grouping(walk_merging(space, "apart", "merged")))
    assert sorted(len(call.results) for call in plan.calls) == results
    for call in plan.calls:
        assert declined_because(verify_kernel(call.kernel)) is None
    assert_same_function(graph, plan)


def test_side_by_side_is_the_first_answer_and_leaves_nothing_to_merge() -> None:
    space = grouping_space(projections(24, 8, 8))
    fork = space.fork(())
    assert fork is not None
    assert [str(option) for option in fork.options] == ["SIDE_BY_SIDE_0=merged", "SIDE_BY_SIDE_0=apart"]
    assert space.fork((fork.options[0],)) is None
    assert str(space.fork((fork.options[1],))).count("MERGE_SIBLINGS_0") == 3


@pytest.mark.parametrize("graph", [projections(24, 8), projections(24)], ids=["widths", "alone"])
def test_matmuls_of_other_extents_are_no_siblings(graph: Graph) -> None:
    assert sibling_forks(graph) == 0


def test_a_matmul_that_needs_its_siblings_result_stays_apart() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((16, 16), "float32"))
    first = b.add("matmul", x, b.input(contiguous((16, 16), "float32")))
    graph = b.build(b.add("matmul", x, b.add("relu", first)))
    assert sibling_forks(graph) == 0


def test_products_of_different_operands_are_no_siblings() -> None:
    b = GraphBuilder()
    x, y, w, v = (b.input(contiguous((16, 16), "float32")) for _ in range(4))
    assert sibling_forks(b.build(b.add("matmul", x, w), b.add("matmul", y, v))) == 0


def test_every_path_with_siblings_computes_the_graph_and_is_generated() -> None:
    graph = feed_forward()
    space = grouping_space(graph)
    paths = all_paths(space)
    merged = [path for path in paths if any("merged" in str(option) for option in path)]
    assert 0 < len(merged) < len(paths)
    for path in merged[:: max(1, len(merged) // 25)]:
        plan = verify_grouping(space.grouping(path))
        assert "contraction" in families(plan)
        for call in plan.calls:
            assert declined_because(verify_kernel(call.kernel)) is None
        assert_same_function(graph, plan)
