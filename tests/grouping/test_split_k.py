"""Which matmuls may be split along their depth, and into what."""

from __future__ import annotations

import pytest

from engine.grouping.rewriting import Chosen
from engine.grouping.split_k import SplitK
from engine.ir import Graph, GraphBuilder, TensorSpec
from tests.grouping.rewritable import contiguous, deep_matmul


def matmul(left: TensorSpec, right: TensorSpec) -> Graph:
    b = GraphBuilder()
    return b.build(b.add("matmul", b.input(left), b.input(right)))


def of(rows: int, columns: int, depth: int, dtype: str = "bfloat16") -> Graph:
    return matmul(contiguous((rows, depth), dtype), contiguous((depth, columns), dtype))


@pytest.mark.parametrize(
    ("graph", "answers"),
    [
        (of(128, 1024, 1024), ("whole", "halves", "quarters", "eighths")),
        (of(1, 8, 1152), ("whole", "halves")),
        (of(512, 2048, 2048), ("whole", "halves", "quarters", "eighths")),
    ],
)
def test_a_deep_product_of_few_tiles_is_offered(graph: Graph, answers: tuple[str, ...]) -> None:
    assert [site.answers for site in SplitK().sites(graph)] == [answers]


@pytest.mark.parametrize(
    "graph",
    [
        of(4096, 4096, 4096),
        of(512, 4096, 1024),
        of(128, 128, 512),
        of(128, 128, 1025),
        of(128, 128, 1024, "float64"),
        matmul(contiguous((2, 8, 1024), "bfloat16"), contiguous((2, 1024, 8), "bfloat16")),
        matmul(TensorSpec((2, 8, 1024), "bfloat16", (1024, 4096, 1)), contiguous((1024, 8), "bfloat16")),
    ],
    ids=["fills", "half full", "shallow", "odd depth", "float64", "batched", "rows in no one stride"],
)
def test_another_product_is_not_asked(graph: Graph) -> None:
    assert SplitK().sites(graph) == ()


def test_slices_are_summed_in_float32_and_rounded_once() -> None:
    graph = deep_matmul(7, 1024, 24)
    (site,) = SplitK().sites(graph)
    ops = SplitK().rewritten(graph, (Chosen(site, "quarters"),)).ops
    (product,) = [op for op in ops if op.kind == "matmul"]
    assert product.out == TensorSpec.contiguous((4, 7, 24), "float32")
    assert [op.out.dtype for op in ops if op.kind == "add"] == ["float32", "float32", "bfloat16", "bfloat16"]
    assert len([op for op in ops if op.kind == "view" and op.inputs == (ops.index(product),)]) == 4
