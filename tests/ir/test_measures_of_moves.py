from __future__ import annotations

from engine.ir import GraphBuilder, TensorSpec
from engine.ir.measures import count_bytes


def test_a_gathered_table_counts_the_rows_that_are_read() -> None:
    b = GraphBuilder()
    table = b.input(TensorSpec.contiguous((1000, 8), "float32"))
    rows = b.add("gather", table, b.input(TensorSpec.contiguous((5,), "int64")))
    assert count_bytes(b.build(rows)) == 5 * 8 * 4 + 5 * 8 + 5 * 8 * 4
    assert count_bytes(b.build(rows, b.add("exp", table))) == 1000 * 8 * 4 * 2 + 5 * 8 + 5 * 8 * 4


def test_a_small_table_is_read_once_however_often_its_rows_are() -> None:
    b = GraphBuilder()
    table = b.input(TensorSpec.contiguous((2, 8), "float32"))
    rows = b.add("gather", table, b.input(TensorSpec.contiguous((50,), "int64")))
    assert count_bytes(b.build(rows)) == 2 * 8 * 4 + 50 * 8 + 50 * 8 * 4
