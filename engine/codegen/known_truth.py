"""Truth values of a body that a part of a tile decides by itself: in its low half, `lane < half` is always true.

What is decided here needs no text, and where it chooses between two values, only one of them is written.
"""

from __future__ import annotations

import math

from engine.codegen.frames import Frame, broadcast_frame, coordinate_frame, split_by_axes, view_frame
from engine.codegen.index_space import IndexSpace
from engine.ir.graph import Graph
from engine.ir.shapes import FLOATS

Bounds = tuple[float, float]
"""The least and the largest number that a value takes."""


def truth_of(body: Graph, index: int, frame: Frame, space: IndexSpace) -> bool | None:
    """What op `index` is at every element of `space` that `frame` points at; None where that isn't one truth value.

    Only a space with an axis that runs over a part of its extent decides anything.
    """
    if body.ops[index].out.dtype != "bool" or all(axis.span is None for axis in space.axes):
        return None
    return _truth(body, index, frame, space)


def _truth(body: Graph, index: int, frame: Frame, space: IndexSpace) -> bool | None:
    op = body.ops[index]
    if op.kind == "view":
        return _truth(body, *_below(body, index, frame), space)
    places = [(i, broadcast_frame(frame, op.out.shape, body.ops[i].out.shape)) for i in op.inputs]
    if op.kind in ("logical_not", "logical_and", "logical_or"):
        if any(body.ops[i].out.dtype != "bool" for i, _ in places):
            return None
        found = [_truth(body, i, place, space) for i, place in places]
        if op.kind == "logical_not":
            return None if found[0] is None else not found[0]
        deciding = op.kind == "logical_or"
        if deciding in found:
            return deciding
        return None if None in found else not deciding
    if op.kind not in _COMPARED:
        return None
    left, right = (_bounds(body, i, place, space) for i, place in places)
    return _compared(op.kind, left, right) if left and right else None


def _compared(kind: str, left: Bounds, right: Bounds) -> bool | None:
    """The comparison where it has one result for all numbers between the bounds."""
    if kind in ("gt", "ge"):
        return _compared("lt" if kind == "gt" else "le", right, left)
    if kind in ("eq", "ne"):
        apart = left[1] < right[0] or right[1] < left[0]
        same = left == right and left[0] == left[1]
        return (kind == "ne") == apart if apart or same else None
    if kind == "lt":
        return True if left[1] < right[0] else False if left[0] >= right[1] else None
    return True if left[1] <= right[0] else False if left[0] > right[1] else None


_COMPARED = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})


def _bounds(body: Graph, index: int, frame: Frame, space: IndexSpace) -> Bounds | None:
    """Bounds of a number or of a coordinate; None for other values."""
    op = body.ops[index]
    if op.kind == "constant":
        number = op.attribute("value")
        return None if math.isnan(number) else (number, number)
    if op.kind == "view":
        return _bounds(body, *_below(body, index, frame), space)
    if op.kind == "cast" and op.out.dtype in ("int32", "int64") and body.ops[op.inputs[0]].out.dtype not in FLOATS:
        return _bounds(body, op.inputs[0], frame, space)
    if op.kind != "iota" or op.out.dtype not in ("int32", "int64"):
        return None
    return _position_bounds(coordinate_frame(frame, op.out.shape, op.attribute("axis")), space)


def _position_bounds(place: Frame, space: IndexSpace) -> Bounds:
    least = most = place.offset
    for axis, digits in zip(space.axes, split_by_axes(place, [axis.extent for axis in space.axes]), strict=True):
        first, behind = axis.reach
        for digit in digits:
            low, high = first // digit.step, (behind - 1) // digit.step
            if low // digit.extent == high // digit.extent:
                low, high = low % digit.extent, high % digit.extent
            else:
                low, high = 0, digit.extent - 1
            least += low * digit.place
            most += high * digit.place
    return least, most


def _below(body: Graph, index: int, frame: Frame) -> tuple[int, Frame]:
    """The computed value that a view re-reads, and the frame there."""
    source = index
    while body.ops[source].kind == "view":
        source = body.ops[source].inputs[0]
    return source, view_frame(frame, body.ops[index].out)
