"""What an op's result looks like, from its inputs: the one place that says how shapes and dtypes follow."""

from __future__ import annotations

from collections.abc import Sequence

from engine.ir.graph import TensorSpec
from engine.ir.ops import OP_CLASS, REDUCTIONS, OpClass


class GraphError(ValueError):
    """A graph, kernel or plan that says something impossible; the text is one sentence."""


class OpError(GraphError):
    """An op of a graph that says something impossible: its number, its kind, and what is wrong with it."""

    def __init__(self, index: int, kind: str, cause: str) -> None:
        super().__init__(f"op {index} ({kind}): {cause}")
        self.index = index
        self.kind = kind
        self.cause = cause


COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
"""Kinds that compare two values in the dtype that these are promoted to."""

TRUTH_KINDS = COMPARISONS | {"logical_and", "logical_or", "logical_not", "isnan"}
"""Kinds whose result is always bool."""

SAME_KINDS = frozenset(
    {"neg", "abs", "sign", "relu", "add", "sub", "mul", "maximum", "minimum", "where", "copy", "pow", "floor", "ceil"}
)
"""Pointwise kinds that keep an integer dtype; the others make float32 of integers, as torch does."""

FLOATS = ("float16", "bfloat16", "float32", "float64")
_INTEGERS = ("uint8", "int8", "int16", "int32", "int64")


def broadcast_shapes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """numpy's broadcast of several shapes. Raises GraphError when they don't fit."""
    rank = max((len(shape) for shape in shapes), default=0)
    result = []
    for axis in range(-rank, 0):
        extents = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        if len(extents) > 1:
            raise GraphError(f"shapes {', '.join(map(str, shapes))} don't broadcast")
        result.append(extents.pop() if extents else 1)
    return tuple(result)


def infer_shape(kind: str, inputs: Sequence[tuple[int, ...]], axes: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Shape of a pointwise op, a reduction over `axes` (kept with extent 1) or a matmul. Raises GraphError."""
    if kind in REDUCTIONS:
        rank = len(inputs[0])
        if not axes or list(axes) != sorted(set(axes)) or not 0 <= axes[0] <= axes[-1] < rank:
            raise GraphError(f"{kind} over axes {axes} of a tensor of rank {rank}; axes are sorted and non-negative")
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(inputs[0]))
    if kind == "matmul":
        return _matmul_shape(inputs[0], inputs[1])
    return broadcast_shapes(inputs)


def rolled_shape(shape: tuple[int, ...], axis: int, shift: int) -> tuple[int, ...]:
    """Shape of a roll by `shift` places along `axis`. Raises GraphError unless 0 <= shift < extent."""
    if not 0 <= axis < len(shape) or not 0 <= shift < max(shape[axis], 1):
        raise GraphError(f"roll by {shift} along axis {axis} of shape {shape}; the shift is below the extent")
    return shape


def joined_shape(shapes: Sequence[tuple[int, ...]], axis: int) -> tuple[int, ...]:
    """Shape of tensors joined along `axis`. Raises GraphError unless they agree on every other axis."""
    first = shapes[0]
    fits = 0 <= axis < len(first) and all(
        len(shape) == len(first) and (*shape[:axis], *shape[axis + 1 :]) == (*first[:axis], *first[axis + 1 :])
        for shape in shapes
    )
    if not fits:
        raise GraphError(f"shapes {', '.join(map(str, shapes))} don't join along axis {axis}")
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def gathered_shape(table: tuple[int, ...], index: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of the rows of `table` that `index` names. Raises GraphError for a table without axes."""
    if not table:
        raise GraphError("gathers rows of a table without axes")
    return (*index, *table[1:])


def reindexed_spec(kind: str, inputs: Sequence[TensorSpec], axis: int = 0, shift: int = 0) -> TensorSpec:
    """The result of a roll, a cat or a gather. Raises GraphError when shapes or dtypes don't fit."""
    if kind == "gather":
        if inputs[1].dtype not in _INTEGERS:
            raise GraphError(f"has an index of dtype {inputs[1].dtype}")
        return TensorSpec.contiguous(gathered_shape(inputs[0].shape, inputs[1].shape), inputs[0].dtype)
    if any(spec.dtype != inputs[0].dtype for spec in inputs):
        raise GraphError(f"joins {', '.join(spec.dtype for spec in inputs)}")
    shapes = [spec.shape for spec in inputs]
    shape = rolled_shape(shapes[0], axis, shift) if kind == "roll" else joined_shape(shapes, axis)
    return TensorSpec.contiguous(shape, inputs[0].dtype)


def reduces_last_axes(shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Whether every kept axis with more than one element comes before the reduced ones."""
    reduced = [axis for axis in axes if shape[axis] != 1]
    return all(shape[axis] == 1 or axis in axes for axis in range(reduced[0], len(shape))) if reduced else True


def _matmul_shape(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    fits = len(left) >= 2 and len(right) >= 2 and left[-1] == right[-2]
    if fits and (len(right) == 2 or (len(left) == len(right) and left[:-2] == right[:-2])):
        return (*left[:-1], right[-1])
    raise GraphError(f"matmul of shapes {left} and {right}")


def infer_dtype(kind: str, specs: Sequence[TensorSpec], weak: Sequence[bool]) -> str:
    """dtype that torch gives a pointwise op, reduction or matmul; a `weak` input (a number) only lifts the category."""
    if kind in TRUTH_KINDS:
        return "bool"
    pairs = list(zip(specs, weak, strict=True))[1 if kind == "where" else 0 :]
    dtype = promote([spec.dtype for spec, is_weak in pairs if not is_weak], [s.dtype for s, w in pairs if w])
    if dtype in FLOATS or OP_CLASS[kind] is OpClass.CONTRACTION or kind in ("amax", "amin"):
        return dtype
    if kind == "sum":
        return "int64"
    if kind in SAME_KINDS and dtype != "bool":
        return dtype
    return dtype if kind in ("copy", "where") else "float32"


def promote(dtypes: Sequence[str], weak: Sequence[str] = ()) -> str:
    """torch's type promotion; a weak dtype counts only where its category (bool, integer, float) is higher."""
    if not dtypes:
        return max(weak, key=_category) if weak else "float32"
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = _promote_pair(result, dtype)
    highest = max(map(_category, weak), default=0)
    if highest > _category(result):
        return "float32" if highest == 2 else "int64"
    return result


def common_dtype(operands: Sequence[tuple[str, bool]]) -> str:
    """The dtype in which torch computes with tensors, each a dtype and whether it has no axes: one without axes counts
    only where its category is higher than that of those with axes."""
    wide = [dtype for dtype, without_axes in operands if not without_axes]
    single = [dtype for dtype, without_axes in operands if without_axes]
    if not wide or not single:
        return promote(wide or single)
    first, second = promote(wide), promote(single)
    return second if _category(second) > _category(first) else first


def loses(dtype: str, target: str) -> bool:
    """Whether `target` can't hold all numbers of `dtype`; beside float32, kernels convert whole numbers themselves."""
    coarse = target in ("float16", "bfloat16") and dtype in ("int16", "int32", "int64")
    return coarse or _promote_pair(dtype, target) != target


def _promote_pair(left: str, right: str) -> str:
    if left == right or _category(left) != _category(right):
        return max(left, right, key=_category)
    if _category(left) == 2:
        return "float32" if {left, right} == {"float16", "bfloat16"} else max(left, right, key=FLOATS.index)
    if "uint8" in (left, right):
        return max("int16", left, right, key=_INTEGERS.index)
    return max(left, right, key=_INTEGERS.index)


def _category(dtype: str) -> int:
    return 0 if dtype == "bool" else 2 if dtype in FLOATS else 1
