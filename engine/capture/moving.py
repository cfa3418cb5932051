"""Positions, lookups and joins: ATen ops that make or move elements, in the ops of our graphs.

Joining two parts of one tensor in the other order, as rotary embeddings do, is a roll; a part that is negated on the
way is told apart by its position. So nothing is stored twice, and a kernel can read both parts where they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.capture.errors import UnsupportedOpError
from engine.capture.lowering import Lowering, Number, Operand, Value
from engine.ir.graph import TensorSpec, contiguous_strides
from engine.ir.views import expanded


def arange(low: Lowering, dtype: str, start: Number, end: Number | None = None, step: Number = 1) -> Value:
    """start, start + step, ... below end; of one number, 0 .. it - 1. Its length is that of the range in `range`."""
    if end is None:
        start, end = 0, start
    extent = max(0, -int((start - end) // step))
    values = low.iota(extent, 0, 1, "int32" if dtype == "int32" else "int64")
    if low.dtype(values) != dtype:
        values = low.pointwise("cast", values, dtype=dtype)
    if step != 1:
        values = low.pointwise("mul", values, step, dtype=dtype)
    return low.pointwise("add", values, start, dtype=dtype) if start != 0 else values


def embedding(low: Lowering, dtype: str, table: Value, index: Value, *_: object) -> Value:
    """Rows of a table; padding and scaling by frequency only matter to a gradient."""
    return gather(low, table, index)


def index_select(low: Lowering, dtype: str, table: Value, axis: int, index: Value) -> Value:
    if axis % max(len(table.shape), 1) != 0:
        raise UnsupportedOpError("aten.index_select along another axis than the first is not generated.")
    return gather(low, table, index)


def index(low: Lowering, dtype: str, table: Value, indices: Sequence[Value | None]) -> Value:
    """table[i, j, ...] with tensors of whole numbers on the first axes: rows of the table with those axes as one."""
    given = list(indices)
    while given and given[-1] is None:
        given.pop()
    places = [place for place in given if place is not None and low.dtype(place) != "bool"]
    if not places or len(places) < len(given):
        raise UnsupportedOpError("aten.index with masks, or along other axes than the first, is not generated.")
    count = len(places)
    position = places[0]
    for place, extent in zip(places[1:], table.shape[1:count], strict=True):
        behind = low.pointwise("add", place, extent, dtype="int64")
        place = low.pointwise("where", low.pointwise("lt", place, 0, dtype="bool"), behind, place, dtype="int64")
        row = low.pointwise("mul", position, extent, dtype="int64")
        position = low.pointwise("add", row, place, dtype="int64")
    rows = (math.prod(table.shape[:count]), *table.shape[count:])
    return gather(low, low.reshape(table, rows) if count > 1 else table, position)


def gather(low: Lowering, table: Value, index: Value) -> Value:
    done = low.builder.add("gather", low.stored(table), low.stored(index))
    return Value(done, low.builder.spec(done).shape)


def gather_along(low: Lowering, dtype: str, x: Value, axis: int, place: Value, **_: object) -> Value:
    """torch.gather: each element's position in x, all of whose elements are a table's rows."""
    rank = len(x.shape)
    if not rank:
        raise UnsupportedOpError("aten.gather of a tensor without axes is not generated.")
    axis %= rank
    table = low.reshape(x, (math.prod(x.shape),))
    position: Value | None = None
    for at, step in enumerate(contiguous_strides(x.shape)):
        along = place if at == axis else low.iota(place.shape[at], at, rank, "int64")
        moved = low.pointwise("mul", along, step, dtype="int64")
        position = moved if position is None else low.pointwise("add", position, moved, dtype="int64")
    assert position is not None
    return gather(low, table, position)


def copy(low: Lowering, dtype: str, old: Value, new: Operand, *_: object) -> Value:
    """What a tensor holds after `new` was written over all of it."""
    value = new if isinstance(new, Value) else low.constant(new, dtype)
    if low.is_constant(value):
        return low.held(low.builder.op(value.index).attribute("value"), dtype, old.shape)
    if low.dtype(value) != dtype:
        value = low.pointwise("cast", value, dtype=dtype)
    return low.view(value, expanded(low.spec(value), old.shape))


def index_put(
    low: Lowering, dtype: str, x: Value, indices: Sequence[Value | None], new: Value, accumulate: bool = False
) -> Value:
    """x with one number where a mask is true; other writes by index have no kernel."""
    mask = indices[0]
    whole = len(indices) == 1 and mask is not None and low.dtype(mask) == "bool" and math.prod(new.shape) == 1
    if not whole or accumulate or mask is None:
        raise UnsupportedOpError("aten.index_put is only supported for one number where a mask is true.")
    mask = low.reshape(mask, (*mask.shape, *(1 for _ in x.shape[len(mask.shape) :])))
    return low.pointwise("where", mask, low.reshape(new, ()), x, dtype=dtype)


def roll(low: Lowering, dtype: str, x: Value, shifts: Sequence[int], dims: Sequence[int] = ()) -> Value:
    """torch.roll moves elements forwards: element i comes from i - shift."""
    if len(dims) != len(shifts):
        raise UnsupportedOpError("aten.roll of a flattened tensor is not supported: name its dims.")
    for shift, axis in zip(shifts, dims, strict=True):
        axis %= len(x.shape)
        x = _turned(low, x, axis, -shift % x.shape[axis], None)
    return x


def cat(low: Lowering, dtype: str, pieces: Sequence[Value], axis: int = 0) -> Value:
    """Joined along an axis; pieces without elements are left out, as torch does."""
    pieces = [piece for piece in pieces if 0 not in piece.shape]
    axis %= len(pieces[0].shape)
    if len(pieces) == 1:
        return pieces[0]
    turned = _swapped_parts(low, pieces, axis)
    if turned is not None:
        return turned
    same = [p if low.dtype(p) == dtype else low.pointwise("cast", p, dtype=dtype) for p in pieces]
    done = low.builder.add("cat", *(low.stored(p) for p in same), axis=axis)
    return Value(done, low.builder.spec(done).shape)


@dataclass(frozen=True, slots=True)
class _Part:
    """A view of a stored tensor, and whether its negative is meant."""

    root: int
    spec: TensorSpec
    negated: bool


def _part(low: Lowering, value: Value) -> _Part:
    op = low.builder.op(value.index)
    seen = op.inputs[0] if op.kind == "neg" else value.index
    return _Part(low.root(seen), low.builder.spec(seen), op.kind == "neg")


def _swapped_parts(low: Lowering, pieces: Sequence[Value], axis: int) -> Value | None:
    """(tail, head) of one tensor as a roll of it, each part maybe negated; None for any other join."""
    if len(pieces) != 2 or any(low.is_constant(piece) for piece in pieces):
        return None
    tail, head = (_part(low, piece) for piece in pieces)
    length = head.spec.shape[axis]
    fits = (
        tail.root == head.root
        and tail.spec.strides == head.spec.strides
        and [e for i, e in enumerate(tail.spec.shape) if i != axis]
        == [e for i, e in enumerate(head.spec.shape) if i != axis]
        and tail.spec.offset - head.spec.offset == length * head.spec.strides[axis] > 0
    )
    if not fits:
        return None
    shape = tuple(e + tail.spec.shape[axis] if i == axis else e for i, e in enumerate(head.spec.shape))
    spec = TensorSpec(shape, head.spec.dtype, head.spec.strides, head.spec.offset)
    whole = low.view(Value(head.root, low.builder.spec(head.root).shape), spec)
    return _turned(low, whole, axis, length, (tail.negated, head.negated))


def _turned(low: Lowering, x: Value, axis: int, shift: int, negated: tuple[bool, bool] | None) -> Value:
    """x from `shift` on and then its first `shift` elements, along one axis; each of the two parts maybe negated.

    What is rolled is the tensor under a permuting view, and the result is viewed the same way.
    """
    below, order = low.under(x)
    place = order[axis]
    done = low.builder.add("roll", below, axis=place, shift=shift)
    if negated is not None and any(negated):
        opposite = low.builder.add("neg", done)
        if not all(negated):
            rank = len(low.builder.spec(done).shape)
            extent = low.builder.spec(done).shape[place]
            position = low.builder.iota(extent, place, rank, "int32")
            in_tail = low.builder.add("lt", position, low.builder.constant(extent - shift, "int32"))
            opposite = low.builder.add("where", in_tail, *((opposite, done) if negated[0] else (done, opposite)))
        done = opposite
    return low.seen_like(done, x)
