"""Bodies whose batches are drawn: every axis is expanded (stride 0) or natural, in a storage that may hold more."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from engine.ir import Graph, GraphBuilder, TensorSpec
from engine.ir.graph import contiguous_strides
from tests.codegen.attention_bodies import add_softmax


@st.composite
def operands(draw: st.DrawFn, batch: tuple[int, ...], rows: int, columns: int, *, turned: bool = False) -> TensorSpec:
    """Matrices of rows x columns, one below the other: which of the batch share one, and what lies between, is drawn.

    A storage begins up to one matrix before the operand, and has room for one more along each axis.
    """
    stored = (columns, rows) if turned else (rows, columns)
    room = tuple(extent + draw(st.integers(0, 1)) for extent in batch)
    natural = contiguous_strides((*room, *stored))
    shared = [draw(st.booleans()) for _ in batch]
    leading = [0 if one else stride for one, stride in zip(shared, natural, strict=False)]
    row, column = natural[-2:]
    before = draw(st.integers(0, 1)) * rows * columns
    shape = (*batch, rows, columns)
    return TensorSpec(shape, "float32", (*leading, *((column, row) if turned else (row, column))), before)


@st.composite
def heads(draw: st.DrawFn, batch: tuple[int, ...], tokens: int, width: int) -> TensorSpec:
    """Heads below one another, or beside one another in the rows of their tokens."""
    if draw(st.booleans()):
        return draw(operands(batch, tokens, width))
    *lead, last = contiguous_strides((*batch[:-1], tokens, batch[-1], width))[:-1]
    strides = (*lead[:-1], last, lead[-1], 1)
    shared = [draw(st.booleans()) for _ in batch]
    leading = (0 if one else stride for one, stride in zip(shared, strides, strict=False))
    return TensorSpec((*batch, tokens, width), "float32", (*leading, *strides[-2:]), 0)


batches = st.sampled_from([(2, 3), (3, 2), (2, 2, 3), (2, 3, 2), (3, 1, 2), (1, 4), (3,)])


@st.composite
def products(draw: st.DrawFn) -> Graph:
    """A product of one right matrix or a batch of them, perhaps times a sibling, perhaps with a residual."""
    batch = draw(batches)
    m, n, k = draw(st.sampled_from([1, 16, 20, 32])), draw(st.sampled_from([16, 24])), draw(st.sampled_from([16, 32]))
    builder = GraphBuilder()
    left = builder.input(draw(operands(batch, m, k, turned=draw(st.booleans()))))
    one = draw(st.integers(0, 3)) == 0
    right = builder.input(draw(operands(() if one else batch, k, n, turned=draw(st.booleans()))))
    product = builder.add("matmul", left, right)
    if draw(st.integers(0, 3)) == 0:
        beside = builder.input(draw(operands(() if one else batch, k, n, turned=draw(st.booleans()))))
        product = builder.add("mul", product, builder.add("matmul", left, beside))
    if draw(st.booleans()):
        product = builder.add("add", product, builder.input(draw(operands(batch, m, n))))
    return builder.build(product)


@st.composite
def attentions(draw: st.DrawFn) -> Graph:
    return _attention(draw, draw(batches), draw(st.sampled_from([16, 20])), draw(st.sampled_from([16, 32])), 16)


@st.composite
def long_attentions(draw: st.DrawFn) -> Graph:
    """Large enough for warps with roles."""
    return _attention(draw, draw(st.sampled_from([(2, 3), (3, 2), (3,)])), 128, 128, 64, "bfloat16")


def _attention(
    draw: st.DrawFn, batch: tuple[int, ...], rows: int, keys: int, width: int, dtype: str = "float32"
) -> Graph:
    builder = GraphBuilder()
    query, key, value = (
        builder.input(replace(draw(heads(batch, tokens, width)), dtype=dtype)) for tokens in (rows, keys, keys)
    )
    *lead, row, column = builder.spec(key).strides
    turned = builder.view(key, (*batch, width, keys), (*lead, column, row), builder.spec(key).offset)
    weights = add_softmax(builder, builder.add("matmul", query, turned, dtype="float32"), dtype)
    return builder.build(builder.add("matmul", weights, value, dtype=dtype))
