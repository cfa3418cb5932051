"""Which matmuls one kernel may compute, and what columns their results may be grouped by."""

from __future__ import annotations

import pytest

from engine.ir import Graph, GraphBuilder, Kernel
from engine.ir.column_groups import GroupError, column_group
from engine.ir.siblings import product_parts, reached_products
from engine.ir.views import storage_roots
from tests.codegen.epilogue_bodies import gate_beside_a_third, partial_sums, projections
from tests.ir.graphs import contiguous


def parts(graph: Graph) -> tuple[int, ...] | None:
    """How many matmuls each part of the kernel has."""
    found = product_parts(graph, reached_products(graph, storage_roots(graph), range(len(graph.ops))))
    return None if found is None else tuple(map(len, found))


def products(*widths: int, shared: bool = True) -> Graph:
    b = GraphBuilder()
    x = b.input(contiguous((4, 8), "float32"))
    lefts = [x if shared else b.add("exp", b.input(contiguous((4, 8), "float32"))) for _ in widths]
    return b.build(
        *(b.add("matmul", left, b.input(contiguous((8, n), "float32"))) for left, n in zip(lefts, widths, strict=True))
    )


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (products(8), (1,)),
        (products(8, 8, 8), (3,)),
        (products(8, 4, 4), (1, 1, 1)),
        (products(8, 4, 4, 4), None),
        (products(8, 4, shared=False), None),
        (gate_beside_a_third(), (2, 1)),
    ],
)
def test_products_of_unequal_widths_lie_beside_those_that_need_each_other(
    graph: Graph, expected: tuple[int, ...] | None
) -> None:
    assert parts(graph) == expected


def test_a_value_of_products_of_unequal_widths_has_no_kernel() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((4, 8), "float32"))
    wide, narrow = (b.add("matmul", x, b.input(contiguous((8, n), "float32"))) for n in (8, 1))
    assert parts(b.build(b.add("mul", wide, narrow))) is None


def test_a_product_of_a_product_is_no_sibling() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((8, 8), "float32"))
    assert parts(b.build(b.add("matmul", x, b.add("matmul", x, b.input(contiguous((8, 8), "float32")))))) is None


def test_the_shape_in_words_has_the_columns_of_all() -> None:
    assert Kernel("contraction", projections(6, 16, 8, (4, 2, 2), "float32")).shape_text == "6x64x16 float32"
    assert Kernel("contraction", products(8, 8)).shape_text == "4x8x8 float32"


def test_a_group_is_what_is_reduced_or_turned_together() -> None:
    graph = partial_sums(8, 64, 16)
    assert column_group(graph, range(len(graph.ops)), 64) == 16
    assert column_group(graph, range(len(graph.ops) - 1), 64) == 0
    with pytest.raises(GroupError, match="16 of 24 columns are no group"):
        column_group(graph, range(len(graph.ops)), 24)
