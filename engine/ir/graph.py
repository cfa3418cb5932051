"""The operation graph: a flat tuple of immutable ops in topological order.

A program, a kernel's body and a slice are all a `Graph`. An op refers to its inputs by index, has no name,
and its kind comes from the fixed list in `engine.ir.ops`, so a graph read from a database is data and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

Attribute = int | float | bool | str | None | tuple[int, ...]

DTYPE_BYTES = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Shape, dtype (a key of DTYPE_BYTES) and strides (elements) of one tensor; offset in elements."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    offset: int = 0

    @classmethod
    def contiguous(cls, shape: tuple[int, ...], dtype: str) -> TensorSpec:
        return cls(tuple(shape), dtype, contiguous_strides(tuple(shape)))

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def element_bytes(self) -> int:
        return DTYPE_BYTES[self.dtype]

    @property
    def is_contiguous(self) -> bool:
        return self.offset == 0 and all(
            extent == 1 or stride == expected
            for extent, stride, expected in zip(self.shape, self.strides, contiguous_strides(self.shape), strict=True)
        )

    @property
    def storage_elements(self) -> int:
        """How many elements of storage, from element 0, this view reaches."""
        if self.numel == 0:
            return 0
        reach = sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True))
        return self.offset + reach + 1

    @property
    def bytes(self) -> int:
        """Bytes of memory really touched: an expanded (stride 0) axis is counted once."""
        touched = math.prod(e for e, s in zip(self.shape, self.strides, strict=True) if s != 0)
        return touched * self.element_bytes if self.numel else 0


@dataclass(frozen=True, slots=True)
class Op:
    """One node. `inputs` are indices of earlier ops; `attributes` are sorted by name; `out` is the result."""

    kind: str
    inputs: tuple[int, ...]
    out: TensorSpec
    attributes: tuple[tuple[str, Attribute], ...] = ()

    def attribute(self, name: str, default: Attribute = None) -> Any:
        for key, value in self.attributes:
            if key == name:
                return value
        return default


@dataclass(frozen=True, slots=True)
class Graph:
    """Ops in topological order; `inputs` and `outputs` are op indices. Input ops have kind "input".

    `labels` are for people only (one per input, e.g. "x" or "weight"); they take no part in any key.
    `weights` are positions in `inputs`, ascending: inputs that never change between calls, as a module's parameters.
    """

    ops: tuple[Op, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    labels: tuple[str, ...] = ()
    weights: tuple[int, ...] = ()

    def users(self, index: int) -> tuple[int, ...]:
        """Indices of the ops that read op `index`, in order."""
        return tuple(i for i, op in enumerate(self.ops) if index in op.inputs)

    def input_specs(self) -> tuple[TensorSpec, ...]:
        return tuple(self.ops[i].out for i in self.inputs)

    def output_specs(self) -> tuple[TensorSpec, ...]:
        return tuple(self.ops[i].out for i in self.outputs)
