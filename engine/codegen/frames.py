"""Which element of a tensor belongs to which element of a kernel's iteration: mixed-radix arithmetic on flat indices.

A kernel walks one flat, row-major index space. Reshapes, broadcasts, permutations and slices are all maps from that
index to a tensor's own flat index, and all of them are sums of digits `(flat // step) % extent * place`. So every
view of a body reduces to the same few rules here, and a family only says which digits its program axes hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from engine.ir.graph import TensorSpec, contiguous_strides


class FrameError(ValueError):
    """A view that can't be followed by index arithmetic of this kind; the text says which."""


@dataclass(frozen=True, slots=True)
class Digit:
    """`(flat // step) % extent` of the iteration's index, worth `place` per unit."""

    extent: int
    step: int
    place: int


@dataclass(frozen=True, slots=True)
class Frame:
    """A tensor's flat index as a sum of digits of the iteration's flat index, plus `offset`; innermost digit first."""

    digits: tuple[Digit, ...]
    offset: int = 0


def whole_frame(extent: int, step: int = 1) -> Frame:
    """The frame of a tensor of `extent` elements whose flat index is the iteration's divided by `step`."""
    return _normal([Digit(extent, step, 1)], 0)


def row_frame(frame: Frame, extent: int) -> Frame:
    """Frame of a tensor whose rows `frame` points at, each along the iteration's innermost axis, of `extent`."""
    rows = [Digit(d.extent, d.step, d.place * extent) for d in frame.digits]
    return _normal([Digit(extent, 1, 1), *rows], frame.offset * extent)


def broadcast_frame(frame: Frame, out: tuple[int, ...], source: tuple[int, ...]) -> Frame:
    """Frame of an input of shape `source` that numpy broadcasts to `out`, whose frame is given."""
    if out == source:
        return frame
    digits: list[Digit] = []
    offset = 0
    lead = len(out) - len(source)
    places = contiguous_strides(source)
    for axis, (own, start) in enumerate(_axis_digits(frame, out)):
        if axis >= lead and source[axis - lead] != 1:
            place = places[axis - lead]
            digits += [Digit(d.extent, d.step, d.place * place) for d in own]
            offset += start * place
    return _normal(digits, offset)


def view_frame(frame: Frame, view: TensorSpec) -> Frame:
    """Frame of the contiguous value that `view` re-reads, from the frame of the view itself."""
    return memory_frame(frame, view)


def memory_frame(frame: Frame, spec: TensorSpec) -> Frame:
    """Position in storage (elements, `spec.offset` included) of the element of `spec` that `frame` points at."""
    digits: list[Digit] = []
    offset = spec.offset
    for (own, start), stride in zip(_axis_digits(frame, spec.shape), spec.strides, strict=True):
        digits += [Digit(d.extent, d.step, d.place * stride) for d in own]
        offset += start * stride
    return _normal(digits, offset)


def coordinate_frame(frame: Frame, shape: tuple[int, ...], axis: int) -> Frame:
    """The coordinate along one axis of `shape` of the element that `frame` points at, as a sum of digits itself."""
    digits, start = _axis_digits(frame, shape)[axis]
    return _normal(digits, start)


def split_by_axes(frame: Frame, extents: Sequence[int]) -> list[list[Digit]]:
    """Digits of each program axis, innermost axis first, with steps relative to the axis.

    `extents` are the axes' extents, innermost first; their product is the iteration's size. Raises FrameError when
    a digit straddles two axes and doesn't divide.
    """
    digits = list(frame.digits)
    bounds = [math.prod(extents[:i]) for i in range(len(extents) + 1)]
    for bound in bounds[1:-1]:
        digits = [part for digit in digits for part in _split_step(digit, bound)]
    return [
        [Digit(d.extent, d.step // low, d.place) for d in digits if low <= d.step < high]
        for low, high in pairwise(bounds)
    ]


def is_single_stride(digits: Sequence[Digit], extent: int) -> bool:
    """Whether an axis of `extent`, whose digits these are, moves by one stride from each of its elements to the next.

    One digit is not enough: that of an axis which is expanded in part counts with a divisor, or begins again.

    >>> is_single_stride([Digit(8, 1, 64)], 8), is_single_stride([Digit(2, 4, 64)], 8), is_single_stride([], 8)
    (True, False, True)
    """
    return not digits or (len(digits) == 1 and digits[0].step == 1 and digits[0].extent == extent)


def index_text(name: str, digit: Digit, extent: int) -> str:
    """`name // step % extent * place` with what has no effect left out; `extent` is the axis's own."""
    text = name if digit.step == 1 else f"{name} // {digit.step}"
    if digit.step * digit.extent < extent:
        text = f"{text} % {digit.extent}"
    return text if digit.place == 1 else f"{text} * {digit.place}"


def _axis_digits(frame: Frame, shape: tuple[int, ...]) -> list[tuple[list[Digit], int]]:
    """For each axis of `shape` the digits of its coordinate (places in units of the coordinate) and its offset."""
    result: list[tuple[list[Digit], int]] = []
    digits = list(frame.digits)
    offset = frame.offset
    for place, extent in zip(contiguous_strides(shape), shape, strict=True):
        start, offset = divmod(offset, place) if extent > 1 else (0, offset)
        own: list[Digit] = []
        if extent > 1:
            digits = [part for digit in digits for part in _split_place(digit, place)]
            own = [Digit(d.extent, d.step, d.place // place) for d in digits if d.place >= place]
            digits = [d for d in digits if d.place < place]
            if start + sum((d.extent - 1) * d.place for d in own) >= extent:
                raise FrameError(f"a view of shape {shape} reads across the edge of an axis")
        result.append((own, start))
    return result


def _split_place(digit: Digit, bound: int) -> list[Digit]:
    """Cut a digit in two where its place value passes `bound`."""
    if not digit.place < bound < digit.place * digit.extent:
        return [digit]
    inner = bound // digit.place
    if bound % digit.place or digit.extent % inner:
        raise FrameError(f"a view cuts an axis of extent {digit.extent} at {inner}, which doesn't divide")
    return [
        Digit(inner, digit.step, digit.place),
        Digit(digit.extent // inner, digit.step * inner, digit.place * inner),
    ]


def _split_step(digit: Digit, bound: int) -> list[Digit]:
    """Cut a digit in two where its step passes `bound`."""
    if not digit.step < bound < digit.step * digit.extent:
        return [digit]
    inner = bound // digit.step
    if bound % digit.step or digit.extent % inner:
        raise FrameError(f"a view's axis of extent {digit.extent} crosses a tile axis at {inner}, which doesn't divide")
    return [Digit(inner, digit.step, digit.place), Digit(digit.extent // inner, bound, digit.place * inner)]


def _normal(digits: Sequence[Digit], offset: int) -> Frame:
    """Sorted by step, digits without effect dropped, neighbours that form one digit merged: equal maps are equal."""
    kept: list[Digit] = []
    for digit in sorted((d for d in digits if d.extent > 1 and d.place), key=lambda d: (d.step, d.place)):
        last = kept[-1] if kept else None
        if last and digit.step == last.step * last.extent and digit.place == last.place * last.extent:
            kept[-1] = Digit(last.extent * digit.extent, last.step, last.place)
        else:
            kept.append(digit)
    return Frame(tuple(kept), offset)
