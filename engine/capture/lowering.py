"""How a captured graph becomes ours: the few moves that every ATen op is written with.

Values stay views for as long as possible. A view of a computed value would end a kernel, so a pointwise op on
views is computed under them where that is the same: relu(x.T) is relu(x).T. Expanded axes vanish where
broadcasting makes them unnecessary, a reshape that strides can't express is a copy, and the flattened matmul of an
N-d tensor is remembered together with its N-d form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from engine.capture.errors import UnsupportedTensorError
from engine.ir.builder import GraphBuilder
from engine.ir.extern import PRODUCT, arguments_to_json
from engine.ir.graph import DTYPE_BYTES, TensorSpec, contiguous_strides
from engine.ir.ops import COMMUTATIVE, OP_CLASS, OpClass
from engine.ir.rounding import rounded
from engine.ir.shapes import COMPARISONS, TRUTH_KINDS, common_dtype, infer_shape, loses, promote, reduces_last_axes
from engine.ir.views import Axes, expanded, permuted, reshaped, unexpanded, view_axes

Number = int | float | bool
_HELD = COMPARISONS | {"where", "maximum", "minimum", "pow"}
"""Kinds that torch reads a number for as a tensor of the common dtype holds it, on the CPU and in CUDA kernels."""


@dataclass(frozen=True, slots=True)
class Value:
    """An op of the graph under construction, and the shape torch gives it (a constant has no axes of its own)."""

    index: int
    shape: tuple[int, ...]


Operand = Value | Number
Result = Value | tuple[Value | None, ...]
Handler = Callable[..., Result]
"""Lowers the calls of one ATen op: takes the lowering, the dtype that torch gives its (first) result, the arguments."""


class Lowering:
    """Builds one graph. Methods take and return values; `dtype` is the one torch gives the result."""

    def __init__(self, allow_tf32: bool = False) -> None:
        self.builder = GraphBuilder()
        self._allow_tf32 = allow_tf32
        self._before_flattening: dict[int, int] = {}
        self._unflattened: dict[int, int] = {}
        self._before_repeating: dict[int, int] = {}

    def dtype(self, value: Operand) -> str:
        if isinstance(value, Value):
            return self.builder.spec(value.index).dtype
        return "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"

    def input(self, spec: TensorSpec, label: str, weight: bool = False) -> Value:
        if spec.dtype not in DTYPE_BYTES:
            raise UnsupportedTensorError(f"{label} has dtype {spec.dtype}, which no kernel is generated for.")
        if spec.numel == 0:
            raise UnsupportedTensorError(f"{label} of shape {spec.shape} has no elements: there is nothing to tune.")
        return Value(self.builder.input(spec, label, weight), spec.shape)

    def constant(self, number: Number, dtype: str, shape: tuple[int, ...] = ()) -> Value:
        exact = float(number) if "float" in dtype else bool(number) if dtype == "bool" else int(number)
        return Value(self.builder.constant(exact, dtype), shape)

    def held(self, number: Number, dtype: str, shape: tuple[int, ...] = ()) -> Value:
        """A tensor that holds one number everywhere: what `dtype` keeps of it. Beside a tensor a number is exact."""
        return self.constant(rounded(number, dtype), dtype, shape)

    def iota(self, extent: int, axis: int, rank: int, dtype: str) -> Value:
        index = self.builder.iota(extent, axis, rank, dtype)
        return Value(index, self.builder.spec(index).shape)

    def is_constant(self, value: Operand) -> bool:
        return not isinstance(value, Value) or self.builder.op(value.index).kind == "constant"

    def pointwise(self, kind: str, *operands: Operand, dtype: str) -> Value:
        """A pointwise op of values and numbers; a number takes the dtype it is compared or combined in. Compared,
        chosen or in a power, it is what a tensor of that dtype holds of it; elsewhere it is exact.
        """
        operands = self._in_common(kind, operands)
        tensors = [o for o in operands if isinstance(o, Value)]
        shape = _broadcast(tensors)
        lifted = promote(
            [self.dtype(t) for t in tensors], [self.dtype(o) for o in operands if not isinstance(o, Value)]
        )
        scalar = lifted if kind in TRUTH_KINDS else dtype
        taken = self.held if kind in _HELD else self.constant
        values = [o if isinstance(o, Value) else taken(o, scalar) for o in operands]
        indices = [self._tidy(v) for v in values]
        if kind in COMMUTATIVE and len(set(indices)) == 2 and self.is_constant(values[0]):
            indices.reverse()
        done = self._under_views(kind, indices, dtype)
        if done is None:
            done = self.builder.add(kind, *indices, dtype=dtype)
        return self.fit(done, shape)

    def _in_common(self, kind: str, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """The operands of a comparison, those that lose digits in the dtype it is made in cast to it."""
        if kind not in COMPARISONS:
            return operands
        known = [(self.dtype(o), not o.shape) for o in operands if isinstance(o, Value)]
        common = common_dtype(known)
        return tuple(
            self.cast(o, common) if isinstance(o, Value) and loses(self.dtype(o), common) else o for o in operands
        )

    def cast(self, value: Value, dtype: str) -> Value:
        """The value in another dtype; a constant is what that dtype holds of it."""
        if self.is_constant(value):
            return self.held(self.builder.op(value.index).attribute("value"), dtype, value.shape)
        return self.pointwise("cast", value, dtype=dtype)

    def fit(self, index: int, shape: tuple[int, ...]) -> Value:
        """The value with the axes that torch gives it, as an expanding view where that isn't what was computed."""
        spec = self.builder.spec(index)
        if spec.shape != shape and self.builder.op(index).kind != "constant":
            index = self.as_spec(index, expanded(spec, shape))
        return Value(index, shape)

    def as_spec(self, index: int, spec: TensorSpec) -> int:
        """The storage of op `index` seen as `spec`; views are always taken of the op that owns the storage."""
        root = self.root(index)
        return self.builder.view(root, spec.shape, spec.strides, spec.offset)

    def stored(self, value: Value) -> int:
        """The op of a value with all its axes; a constant is written out (one element, expanded)."""
        if self.is_constant(value):
            copied = self.builder.add("copy", value.index, dtype=self.dtype(value))
            return self.fit(copied, value.shape).index
        return value.index

    def view(self, value: Value, spec: TensorSpec) -> Value:
        return Value(self.as_spec(value.index, spec), spec.shape)

    def spec(self, value: Value) -> TensorSpec:
        return self.builder.spec(value.index)

    def reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        """Same elements, other shape: a view, or a copy and a view where strides can't express it."""
        if self.is_constant(value) or shape == value.shape:
            return Value(value.index, shape)
        known = self._unflattened.get(value.index)
        if known is not None and self.builder.spec(known).shape == shape:
            return Value(known, shape)
        seen = reshaped(self.spec(value), shape)
        if seen is None:
            copied = self.builder.add("copy", value.index, dtype=self.dtype(value))
            done = self.builder.view(copied, shape, contiguous_strides(shape))
            self._note_repeating(value, shape, done)
        else:
            done = self.as_spec(value.index, seen)
        if _flattens_leading_axes(value.shape, shape):
            self._before_flattening[done] = value.index
        return Value(done, shape)

    def _note_repeating(self, value: Value, shape: tuple[int, ...], done: int) -> None:
        """Remember what [..., heads, group, S, D] was before its group axis, of stride 0, was joined with the heads."""
        spec = self.spec(value)
        axis = len(spec.shape) - 3
        if axis < 1 or spec.strides[axis] != 0 or spec.shape[axis] == 1:
            return
        if shape == (*spec.shape[: axis - 1], spec.shape[axis - 1] * spec.shape[axis], *spec.shape[axis + 1 :]):
            kept = tuple(i for i in range(len(spec.shape)) if i != axis)
            self._before_repeating[done] = self.as_spec(value.index, permuted(spec, kept))

    def before_repeating(self, value: Value) -> Value:
        """The value with each head once, where it is one whose heads were repeated side by side."""
        once = self._before_repeating.get(value.index)
        return value if once is None else Value(once, self.builder.spec(once).shape)

    def under(self, value: Value) -> tuple[int, tuple[int, ...]]:
        """The op that a permuting view reads, and where each axis of the view is in it; else the value itself."""
        root = self.root(value.index)
        view, whole = self.builder.spec(value.index), self.builder.spec(root)
        if self._is_computed_view(value.index) and view.numel == whole.numel and len(view.shape) == len(whole.shape):
            order = _permutation(view, whole)
            if order is not None:
                return root, order
        return value.index, tuple(range(len(value.shape)))

    def seen_like(self, index: int, value: Value) -> Value:
        """Op `index`, computed from what `under(value)` gave, through the view that `value` is."""
        if self.under(value)[0] == value.index:
            return Value(index, value.shape)
        spec = self.builder.spec(value.index)
        return Value(self.builder.view(index, spec.shape, spec.strides), value.shape)

    def permute(self, value: Value, order: tuple[int, ...]) -> Value:
        if self.is_constant(value):
            return Value(value.index, tuple(value.shape[i] for i in order))
        return self.view(value, permuted(self.spec(value), order))

    def reduce(self, kind: str, value: Value, axes: tuple[int, ...], keep: bool, dtype: str) -> Value:
        """A reduction over `axes` (sorted, non-negative); other than last axes are made the last by a view."""
        if not axes:
            return self.pointwise("cast" if dtype != self.dtype(value) else "copy", value, dtype=dtype)
        shape = tuple(1 if i in axes else e for i, e in enumerate(value.shape))
        value = Value(self.stored(value), value.shape)
        if not reduces_last_axes(value.shape, axes):
            kept = tuple(i for i in range(len(value.shape)) if i not in axes)
            value = self.permute(value, kept + axes)
            axes = tuple(range(len(kept), len(value.shape)))
        index = self.builder.add(kind, value.index, axes=axes, dtype=dtype)
        if not keep:
            shape = tuple(e for i, e in enumerate(value.shape) if i not in axes)
        spec = TensorSpec.contiguous(shape, dtype)
        return Value(self.builder.view(index, spec.shape, spec.strides), shape)

    def matmul(self, left: Value, right: Value, dtype: str) -> Value:
        """A matmul of two matrices, or of two equal batches. If its operands are flattened N-d tensors, the product
        of these is remembered, and taken when the program unflattens the result."""
        a, b = self.stored(left), self.stored(right)
        done = self._multiply(a, b, dtype)
        above_left = self._before_flattening.get(a)
        above_right = b if len(right.shape) == 2 else self._before_flattening.get(b)
        if above_left is not None and above_right is not None:
            lead, other = self.builder.spec(above_left).shape, self.builder.spec(above_right).shape
            if len(other) == 2 or (len(lead) == len(other) and lead[:-2] == other[:-2]):
                self._unflattened[done] = self._multiply(above_left, above_right, dtype)
        return Value(done, (*left.shape[:-1], right.shape[-1]))

    def after_matmul(self, kind: str, product: Value, other: Operand, dtype: str) -> Value:
        """A pointwise op on a product and a number or a row (a bias), kept in both its flat and its N-d form."""
        done = self.pointwise(kind, product, other, dtype=dtype)
        above = self._unflattened.get(product.index)
        is_row = not isinstance(other, Value) or math.prod(other.shape[:-1]) == 1
        if above is not None and is_row:
            row = other
            if isinstance(other, Value) and len(other.shape) > 1:
                row = self.reshape(other, other.shape[-1:])
            whole = Value(above, self.builder.spec(above).shape)
            self._unflattened[done.index] = self.pointwise(kind, whole, row, dtype=dtype).index
        return done

    def _multiply(self, left: int, right: int, dtype: str) -> int:
        """A matmul; no kernel multiplies in float64, so there it is a call."""
        if self.builder.spec(left).dtype == "float64":
            shapes = [self.builder.spec(i).shape for i in (left, right)]
            out = TensorSpec.contiguous(infer_shape("matmul", shapes), dtype)
            places = [left] if left == right else [left, right]
            text = arguments_to_json([{"tensor": places.index(i)} for i in (left, right)], {})
            return self.builder.extern(PRODUCT, tuple(places), text, out)
        loose = self._allow_tf32 and self.builder.spec(left).dtype == "float32"
        return self.builder.add("matmul", left, right, dtype=dtype, allow_tf32=loose)

    def root(self, index: int) -> int:
        """The op that owns the storage of op `index`."""
        op = self.builder.op(index)
        return op.inputs[0] if op.kind == "view" else index

    def _is_computed_view(self, index: int) -> bool:
        return self.builder.op(index).kind == "view" and self.builder.op(self.root(index)).kind != "input"

    def _tidy(self, value: Value) -> int:
        """What a broadcasting op needs of a value: no expanded axes, and no leading axes that computing didn't give."""
        if self.is_constant(value):
            return value.index
        spec = unexpanded(self.builder.spec(value.index))
        root = self.root(value.index)
        whole = self.builder.spec(root)
        lead = len(spec.shape) - len(whole.shape)
        if self._is_computed_view(value.index) and spec.shape == (1,) * lead + whole.shape:
            walks = zip(whole.shape, whole.strides, spec.strides[lead:], strict=True)
            if spec.offset == whole.offset and all(extent == 1 or old == new for extent, old, new in walks):
                return root
        return self.as_spec(value.index, spec)

    def _under_views(self, kind: str, indices: list[int], dtype: str) -> int | None:
        """Compute under the operands' view and view the result; None where there is no such view or it isn't equal."""
        viewed = [i for i in indices if self._is_computed_view(i)]
        if not viewed:
            return None
        view, whole = self.builder.spec(viewed[0]), self.builder.spec(self.root(viewed[0]))
        if view.numel != whole.numel:
            return None
        axes = view_axes(view, whole)
        operands = [self._under_view(i, viewed[0], axes) for i in indices]
        if any(i is None for i in operands):
            return None
        done = self.builder.add(kind, *(i for i in operands if i is not None), dtype=dtype)
        if self.builder.spec(done).shape != whole.shape:
            return None
        return self.builder.view(done, view.shape, view.strides)

    def _is_pointwise(self, index: int) -> bool:
        return OP_CLASS[self.builder.op(index).kind] in (OpClass.POINTWISE, OpClass.GENERATOR)

    def _under_view(self, index: int, viewed: int, axes: Axes | None) -> int | None:
        """The operand as it stands under the view: what it views, or an input with its axes in the other order."""
        view, whole = self.builder.spec(viewed), self.builder.spec(self.root(viewed))
        op = self.builder.op(index)
        if op.kind == "constant":
            return index
        same = (view.shape, view.strides, view.offset) == (op.out.shape, op.out.strides, op.out.offset)
        if self._is_computed_view(index):
            below = self.root(index)
            if same and self.builder.spec(below).shape == whole.shape:
                return below
        root = self.root(index)
        # A smaller value that was there before can't be computed from what is under the view.
        is_free = self.builder.op(root).kind == "input" or (
            op.out.numel < whole.numel and root < self.root(viewed) and self._is_pointwise(root)
        )
        if axes is None or not is_free or len(op.out.shape) > len(view.shape):
            return None
        shift = len(view.shape) - len(op.out.shape)
        if any(axis is None and i >= shift and op.out.shape[i - shift] != 1 for i, axis in enumerate(axes)):
            return None
        places = [axes.index(j) - shift if j in axes else -1 for j in range(len(whole.shape))]
        shape = tuple(op.out.shape[p] if p >= 0 else 1 for p in places)
        strides = tuple(op.out.strides[p] if p >= 0 else 0 for p in places)
        return self.as_spec(index, TensorSpec(shape, op.out.dtype, strides, op.out.offset))


def _broadcast(values: list[Value]) -> tuple[int, ...]:
    rank = max((len(v.shape) for v in values), default=0)
    columns = [[(1,) * (rank - len(v.shape)) + v.shape][0] for v in values]
    return tuple(next((e for e in extents if e != 1), 1) for extents in zip(*columns, strict=True))


def _flattens_leading_axes(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    kept = len(new) - 1
    return len(new) in (2, 3) and len(old) > len(new) and old[len(old) - kept :] == new[1:]


def _permutation(view: TensorSpec, whole: TensorSpec) -> tuple[int, ...] | None:
    """For each axis of a view, the axis of the viewed tensor that it walks, extents of 1 included."""
    axes = view_axes(view, whole)
    if axes is None:
        return None
    free = [i for i in range(len(whole.shape)) if i not in axes]
    order = tuple(free.pop(0) if axis is None else axis for axis in axes)
    return order if all(view.shape[i] == whole.shape[place] for i, place in enumerate(order)) else None
