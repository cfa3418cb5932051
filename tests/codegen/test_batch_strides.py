"""Batches of which some axes are expanded, through descriptors: each matrix is read where it lies, or has none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from engine.codegen import illegal_because, render
from engine.codegen.attention_facts import Rows, attention_facts
from engine.codegen.contraction_facts import Matrix, contraction_facts
from engine.codegen.frames import Digit
from engine.ir import Graph, GraphBuilder, Kernel, TensorSpec
from engine.ir.placement import passed_to
from engine.vocabulary import Target
from tests.codegen.attention_bodies import add_softmax
from tests.codegen.batch_bodies import attentions, products
from tests.codegen.test_golden import contraction

ROOT = Path(__file__).parents[2]
LIMIT_S = 100
DESCRIBED = contraction(BLOCK_M=32, BLOCK_N=32, LOADS="descriptor", GROUP_M=1, NUM_WARPS=4, NUM_STAGES=2)
KEYS_AND_VALUES = (((64, 32), (1, 64)), ((32, 64), (64, 1)))
NO_MATRIX = "its axes are no single strides"


@pytest.mark.timeout(LIMIT_S + 20)
@pytest.mark.parametrize("case", ["contraction", "attention", "overlap"])
@pytest.mark.slow
def test_drawn_batches_match_float64(case: str) -> None:
    command = [sys.executable, "-m", "tests.codegen.batch_strides", case]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert finished.returncode == 0, finished.stderr[-2000:]
    ran = json.loads(finished.stdout)
    assert min(ran["with a divisor"], ran["with a remainder"]) >= 5
    assert ran["stored"] >= 20 or case != "contraction"
    assert ran["with roles"] >= 5 or case != "overlap"


def moved(digits: tuple[Digit, ...], batch: int) -> np.ndarray:
    """By how much each of the batch is moved, as a column of matrices."""
    numbers = np.arange(batch).reshape(-1, 1, 1)
    return sum((numbers // d.step % d.extent * d.place for d in digits), np.zeros_like(numbers))


def lies_at(spec: TensorSpec, batch: int) -> np.ndarray:
    """Where each element of the operand lies, as [batch, row, column], from the address that a kernel is given."""
    grids = np.indices(spec.shape)
    places = spec.offset - passed_to(spec) + np.tensordot(np.array(spec.strides), grids, axes=1)
    return places.reshape(batch, -1, spec.shape[-1])


def read_at(matrix: Matrix, batch: int, extents: tuple[int, int]) -> np.ndarray:
    """Where a kernel reads each element through the descriptor, whose bounds it keeps."""
    rows, columns = np.indices(extents)
    if matrix.transposed:
        rows, columns = columns, rows
    rows = moved(matrix.row_digits, batch) + rows
    assert rows.max() < matrix.shape[0]
    assert columns.max() < matrix.shape[1]
    return matrix.offset + rows * matrix.strides[0] + columns


@given(products())
def test_a_matrix_is_read_where_the_operand_lies(body: Graph) -> None:
    facts = contraction_facts(body)
    left, right = body.input_specs()[:2]
    for operand, spec in ((facts.left, left), (facts.right, right)):
        if operand.matrix is None:
            assert facts.batch == 1, operand.no_matrix
            assert operand.no_matrix in (NO_MATRIX, "one of its axes is expanded", "neither of its axes has stride 1")
        else:
            found = read_at(operand.matrix, facts.batch, operand.extents)
            assert (found.reshape(-1) == lies_at(spec, facts.batch).reshape(-1)).all()


@given(attentions())
@settings(max_examples=50)
def test_rows_of_heads_are_read_where_they_lie(body: Graph) -> None:
    facts = attention_facts(body)
    for loaded, spec in zip((facts.query, facts.key, facts.value), body.input_specs(), strict=True):
        rows: Rows | None = loaded.rows
        assert rows is not None, loaded.no_rows
        tokens, elements = np.indices(spec.shape[-2:])
        row, column = moved(rows.row_digits, facts.batch) + tokens, moved(rows.column_digits, facts.batch) + elements
        assert row.max() < rows.shape[0]
        assert column.max() < rows.shape[1]
        assert (rows.offset + row * rows.strides[0] + column == lies_at(spec, facts.batch)).all()


def product(left: TensorSpec, right: TensorSpec) -> Kernel:
    builder = GraphBuilder()
    return Kernel("contraction", builder.build(builder.add("matmul", builder.input(left), builder.input(right))))


def grouped(depth: int) -> Kernel:
    """Four heads of two batches, whose right matrices are one a batch."""
    right = TensorSpec((2, 4, depth, 64), "float32", (depth * 64, 0, 64, 1))
    return product(TensorSpec.contiguous((2, 4, 32, depth), "float32"), right)


def test_heads_that_share_a_matrix_divide_the_batch() -> None:
    text = render(grouped(256), DESCRIBED).text
    assert "left_desc.load([batch * 32 + tile_m * 32, k])" in text
    assert "right_desc.load([batch // 4 * 256 + k, tile_n * 32])" in text


def test_a_block_across_the_depth_would_read_the_next_matrix() -> None:
    reason = illegal_because(grouped(96), DESCRIBED, Target())
    assert reason == "BLOCK_K=64 doesn't divide 96, so a TMA block would read rows of the next matrix of the batch."


@pytest.mark.parametrize("strides", [(0, 64, 1), (64, 0, 1)], ids=["repeated in turn", "each repeated"])
def test_rows_that_repeat_are_no_descriptors(strides: tuple[int, ...]) -> None:
    """One right matrix makes the left operand's batch rows, which then move by no single stride."""
    left = TensorSpec((32, 32, 64), "float32", strides)
    of_one = product(left, TensorSpec.contiguous((64, 64), "float32"))
    facts = contraction_facts(of_one.body)
    assert facts.left.matrix is None
    assert facts.left.no_matrix == NO_MATRIX
    text = render(of_one, DESCRIBED).text
    assert "left_desc" not in text
    assert "right_desc" in text
    wide = TensorSpec((64, 64), "float32", (128, 2))
    assert illegal_because(product(left, wide), DESCRIBED, Target()) == (
        f"LOADS=descriptor has no operand to load: {NO_MATRIX}; neither of its axes has stride 1."
    )


def test_queries_that_repeat_are_no_descriptor() -> None:
    """Of one matrix of keys and one of values, all queries are rows; a batch that is expanded repeats them."""
    builder = GraphBuilder()
    query = builder.input(TensorSpec((3, 32, 64), "float32", (0, 64, 1)))
    key, value = (builder.input(TensorSpec(shape, "float32", strides)) for shape, strides in KEYS_AND_VALUES)
    weights = add_softmax(builder, builder.add("matmul", query, key), "float32")
    facts = attention_facts(builder.build(builder.add("matmul", weights, value)))
    assert (facts.batch, facts.rows) == (1, 96)
    assert (facts.query.rows, facts.query.no_rows) == (None, NO_MATRIX)
    assert facts.key.rows is not None
