"""Arithmetic of views: how strides follow when axes are permuted, merged, split, added or expanded."""

from __future__ import annotations

import math

from engine.ir.graph import Graph, TensorSpec
from engine.ir.shapes import GraphError

Axes = tuple[int | None, ...]
"""For each axis of a view, the axis of the viewed tensor that it walks, or None for a new or expanded axis."""


def storage_roots(graph: Graph) -> tuple[int, ...]:
    """For each op the one whose storage it reads: itself, unless it is a view."""
    root: list[int] = []
    for index, op in enumerate(graph.ops):
        root.append(root[op.inputs[0]] if op.kind == "view" else index)
    return tuple(root)


def view_axes(view: TensorSpec, viewed: TensorSpec) -> Axes | None:
    """How a view permutes, adds and expands the axes of a contiguous tensor; None when it does anything else."""
    if view.offset != viewed.offset or view.numel == 0:
        return None
    where = {
        (extent, stride): axis
        for axis, (extent, stride) in enumerate(zip(viewed.shape, viewed.strides, strict=True))
        if extent > 1
    }
    axes = tuple(
        None if extent == 1 or stride == 0 else where.pop((extent, stride), -1)
        for extent, stride in zip(view.shape, view.strides, strict=True)
    )
    return None if where or -1 in axes else axes


def permuted(spec: TensorSpec, order: tuple[int, ...]) -> TensorSpec:
    """Axis i of the result is axis order[i]."""
    shape, strides = tuple(spec.shape[i] for i in order), tuple(spec.strides[i] for i in order)
    return TensorSpec(shape, spec.dtype, strides, spec.offset)


def with_axis(spec: TensorSpec, axis: int) -> TensorSpec:
    """A new axis of extent 1 before `axis`; its stride is that of a contiguous tensor."""
    stride = spec.shape[axis] * spec.strides[axis] if axis < len(spec.shape) else 1
    shape = (*spec.shape[:axis], 1, *spec.shape[axis:])
    return TensorSpec(shape, spec.dtype, (*spec.strides[:axis], stride, *spec.strides[axis:]), spec.offset)


def without_axes(spec: TensorSpec, axes: tuple[int, ...]) -> TensorSpec:
    """Drop axes; those with more than one element stay, as torch.squeeze has it."""
    keep = [i for i, extent in enumerate(spec.shape) if i not in axes or extent != 1]
    return permuted(spec, tuple(keep))


def expanded(spec: TensorSpec, shape: tuple[int, ...]) -> TensorSpec:
    """Broadcast to `shape` (-1 keeps an extent) with stride 0. Raises GraphError when it doesn't fit."""
    lead = len(shape) - len(spec.shape)
    old = (*(1,) * lead, *spec.shape)
    strides = (*(0,) * lead, *spec.strides)
    if lead < 0 or any(e not in (1, want) and want != -1 for e, want in zip(old, shape, strict=True)):
        raise GraphError(f"shape {spec.shape} doesn't expand to {shape}")
    wanted = tuple(e if want == -1 else want for e, want in zip(old, shape, strict=True))
    kept = tuple(0 if e != want else stride for e, want, stride in zip(old, wanted, strides, strict=True))
    return TensorSpec(wanted, spec.dtype, kept, spec.offset)


def narrowed(spec: TensorSpec, axis: int, start: int, stop: int, step: int) -> TensorSpec:
    """Elements start, start + step, ... below stop of one axis; bounds are clamped as Python's slices are."""
    start, stop, step = slice(start, stop, step).indices(spec.shape[axis])
    extent = max(0, math.ceil((stop - start) / step))
    shape = (*spec.shape[:axis], extent, *spec.shape[axis + 1 :])
    strides = (*spec.strides[:axis], spec.strides[axis] * step, *spec.strides[axis + 1 :])
    return TensorSpec(shape, spec.dtype, strides, spec.offset + (start * spec.strides[axis] if extent else 0))


def selected(spec: TensorSpec, axis: int, position: int) -> TensorSpec:
    """One position of an axis, which is dropped; a negative position counts from the end."""
    position += spec.shape[axis] if position < 0 else 0
    rest = tuple(i for i in range(len(spec.shape)) if i != axis)
    dropped = permuted(spec, rest)
    return TensorSpec(dropped.shape, spec.dtype, dropped.strides, spec.offset + position * spec.strides[axis])


def unexpanded(spec: TensorSpec) -> TensorSpec:
    """Expanded axes back to extent 1: what a broadcasting reader needs of the tensor."""
    shape = tuple(1 if stride == 0 else extent for extent, stride in zip(spec.shape, spec.strides, strict=True))
    return TensorSpec(shape, spec.dtype, spec.strides, spec.offset)


def reshaped(spec: TensorSpec, shape: tuple[int, ...]) -> TensorSpec | None:
    """The same elements in row-major order under another shape, or None when strides can't express it.

    Old axes are joined into runs that one stride walks; each run must be a product of new axes.
    """
    if spec.numel == 0 or math.prod(shape) != spec.numel:
        return None
    runs: list[tuple[int, int]] = []
    for extent, stride in zip(spec.shape, spec.strides, strict=True):
        if extent == 1:
            continue
        if runs and runs[-1][1] == extent * stride:
            runs[-1] = (runs[-1][0] * extent, stride)
        else:
            runs.append((extent, stride))
    strides: list[int] = []
    left, step = 1, 1
    for extent in reversed(shape):
        if left == 1 and extent != 1:
            if not runs:
                return None
            left, step = runs.pop()
        if left % extent:
            return None
        strides.append(step)
        left //= extent
        step *= extent
    return TensorSpec(shape, spec.dtype, tuple(reversed(strides)), spec.offset)
