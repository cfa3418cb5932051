"""ATen ops that only change how elements are read: strides, order, shape and parts of a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from engine.capture.lowering import Handler, Lowering, Result, Value
from engine.ir.graph import TensorSpec
from engine.ir.views import expanded, narrowed, selected, with_axis, without_axes


def arithmetic(change: Callable[..., TensorSpec]) -> Handler:
    """A view that an arithmetic of strides expresses; a constant only changes its shape."""

    def handler(low: Lowering, dtype: str, x: Value, *arguments: Any, **_: object) -> Value:
        if low.is_constant(x):
            return Value(x.index, change(TensorSpec.contiguous(x.shape, dtype), *arguments).shape)
        return low.view(x, change(low.spec(x), *arguments))

    return handler


def expand(spec: TensorSpec, shape: list[int]) -> TensorSpec:
    return expanded(spec, tuple(shape))


def unsqueeze(spec: TensorSpec, axis: int) -> TensorSpec:
    return with_axis(spec, axis % (len(spec.shape) + 1))


def squeeze(spec: TensorSpec, axes: Any = None) -> TensorSpec:
    rank = len(spec.shape)
    listed = range(rank) if axes is None else axes if isinstance(axes, list | tuple) else [axes]
    return without_axes(spec, tuple(a % rank for a in listed) if rank else ())


def slice_(
    spec: TensorSpec, axis: int = 0, start: int | None = None, stop: int | None = None, step: int = 1
) -> TensorSpec:
    axis %= len(spec.shape)
    return narrowed(spec, axis, start or 0, spec.shape[axis] if stop is None else stop, step)


def select(spec: TensorSpec, axis: int, position: int) -> TensorSpec:
    return selected(spec, axis % len(spec.shape), position)


def permute(low: Lowering, dtype: str, x: Value, order: list[int]) -> Value:
    return low.permute(x, tuple(i % len(x.shape) for i in order))


def transpose(low: Lowering, dtype: str, x: Value, first: int = 0, second: int = 1) -> Value:
    order = list(range(len(x.shape)))
    if order:
        first, second = first % len(order), second % len(order)
        order[first], order[second] = second, first
    return low.permute(x, tuple(order))


def reshape(low: Lowering, dtype: str, x: Value, shape: list[int]) -> Value:
    known = math.prod(e for e in shape if e != -1)
    return low.reshape(x, tuple(math.prod(x.shape) // known if e == -1 else e for e in shape))


def split(low: Lowering, dtype: str, x: Value, sizes: Any, axis: int = 0) -> Result:
    """Into pieces of listed sizes, or of one size with a smaller last piece."""
    axis %= len(x.shape)
    extent = x.shape[axis]
    if isinstance(sizes, int):
        sizes = [min(sizes, extent - at) for at in range(0, extent, sizes)]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    cut = arithmetic(narrowed)
    pieces = [cut(low, dtype, x, axis, at, at + size, 1) for at, size in zip(starts, sizes, strict=True)]
    return tuple(piece for piece in pieces if isinstance(piece, Value))


def unbind(low: Lowering, dtype: str, x: Value, axis: int = 0) -> Result:
    axis %= len(x.shape)
    pieces = [arithmetic(selected)(low, dtype, x, axis, i) for i in range(x.shape[axis])]
    return tuple(piece for piece in pieces if isinstance(piece, Value))
