"""Values that positions alone decide: an op of counted positions and constants, as the array that it always is.

A causal mask, a window, chunks or a prefix that is seen whole are such values, whatever arithmetic says them. An array
keeps extent 1 along axes on which it doesn't depend, so a mask shared by a thousand heads is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.ir.graph import Graph, TensorSpec
from engine.ir.views import storage_roots, unexpanded

Array = NDArray[Any]

MOST_ELEMENTS = 1 << 24
"""Of one array: a larger mask takes seconds, and memory that is better kept for other things."""
_MOST_OPS = 256
"""Ops behind one value that are looked at; a hostile body can ask for no more."""

_POINTWISE: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "neg": np.negative,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
    "where": np.where,
    "cast": np.array,
    "copy": np.array,
}


def position_values(graph: Graph, index: int) -> Array | None:
    """The value of op `index`, of the op's rank or less and with extent 1 on axes that it doesn't vary along.

    None where it depends on an input, on arithmetic that isn't followed, or is too large. A bfloat16 is held in a
    float32.
    """
    root = storage_roots(graph)
    needed = _behind(graph, index, root)
    if needed is None:
        return None
    values: dict[int, Array] = {}
    with np.errstate(all="ignore"):
        for one in needed:
            value = _value(graph, one, values, root)
            if value is None:
                return None
            values[one] = value
    return values[index]


def _behind(graph: Graph, index: int, root: Sequence[int]) -> list[int] | None:
    """The ops that op `index` is computed from and itself, in order; None where an input or too many are among them."""
    found: set[int] = set()
    stack = [index]
    while stack:
        one = stack.pop()
        if one in found:
            continue
        op = graph.ops[one]
        if len(found) >= _MOST_OPS or not (op.kind in _POINTWISE or op.kind in ("constant", "iota", "view")):
            return None
        found.add(one)
        stack.extend((root[one],) if op.kind == "view" else op.inputs)
    return sorted(found)


def _value(graph: Graph, index: int, values: dict[int, Array], root: Sequence[int]) -> Array | None:
    op = graph.ops[index]
    if op.kind == "view":
        return _viewed(graph.ops[root[index]].out, op.out, values[root[index]])
    if op.kind == "iota":
        if op.out.numel > MOST_ELEMENTS:
            return None
        return _rounded(np.arange(op.out.numel).reshape(op.out.shape), op.out.dtype)
    if op.kind == "constant":
        return _rounded(np.array(op.attribute("value")), op.out.dtype)
    inputs = [values[i] for i in op.inputs]
    if math.prod(np.broadcast_shapes(*(value.shape for value in inputs))) > MOST_ELEMENTS:
        return None
    return _rounded(_POINTWISE[op.kind](*inputs), op.out.dtype)


def _viewed(stored: TensorSpec, view: TensorSpec, value: Array) -> Array | None:
    """A view re-reads the storage of the op behind all views, which lies contiguous from element 0."""
    spec = unexpanded(view)
    if max(stored.numel, spec.numel) > MOST_ELEMENTS or spec.storage_elements > stored.numel:
        return None
    flat = np.ascontiguousarray(np.broadcast_to(value, stored.shape)).reshape(-1)
    strides = [stride * flat.itemsize for stride in spec.strides]
    return np.lib.stride_tricks.as_strided(flat[spec.offset :], spec.shape, strides, writeable=False)


def _rounded(value: Array, dtype: str) -> Array:
    """In the dtype of a result. numpy has no bfloat16: half of a bfloat16's last bit is added, ties to even."""
    if dtype != "bfloat16":
        return value.astype(dtype, copy=False)
    wide = value.astype(np.float32)
    bits = wide.view(np.uint32)
    near = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(wide), wide, near.view(np.float32))
