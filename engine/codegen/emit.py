"""A body's values as lines of Triton text, written where their axes are first known.

Values are asked for and written once per scope; a value that doesn't move with a loop lands in front of that loop.
Each index space (the output tile, an operand's tile) has its own axes; names come from positions, never from labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from engine.codegen.early_loads import loads_first
from engine.codegen.expressions import TRITON_TYPE, Operand, cast_text, compute_dtype, pointwise_text
from engine.codegen.frames import (
    Frame,
    FrameError,
    broadcast_frame,
    coordinate_frame,
    index_text,
    is_single_stride,
    memory_frame,
    split_by_axes,
    view_frame,
)
from engine.codegen.half_results import half_functions
from engine.codegen.index_space import Axis, IndexSpace, Value
from engine.codegen.known_truth import truth_of
from engine.codegen.reindex import reindexed
from engine.ir.graph import Graph, TensorSpec
from engine.ir.ops import OP_CLASS, OpClass

__all__ = ["WIDE", "Axis", "Emitter", "IndexSpace", "Value", "resolve"]

WIDE = 2**31
"""From this many elements of storage on, offsets are computed in 64 bits."""
_TERMS = 16


@dataclass(slots=True)
class _Scope:
    loop: str
    depth: int
    lines: list[str] = field(default_factory=list)
    known: dict[tuple[int, str, Frame], Value] = field(default_factory=dict)
    pointers: dict[str, str] = field(default_factory=dict)


class Emitter:
    """Writes the lines of one kernel function."""

    def __init__(self, body: Graph, depth: int = 1) -> None:
        self.body = body
        self.eviction = ""
        self.special: Callable[[int, Frame, IndexSpace], Value | None] | None = None
        """Asked first for a reduction or what re-reads its input elsewhere, and in a part of a tile for every op; None
        leaves the op to the emitter."""
        self._scopes = [_Scope("", depth)]
        self._fixed: dict[int, tuple[Value, Frame, str]] = {}
        self._used: dict[str, int] = {}
        self._spaces = 0
        self._half_functions = half_functions(body)

    def line(self, text: str) -> None:
        """Write into the innermost open block."""
        scope = self._scopes[-1]
        scope.lines.append("    " * scope.depth + text)

    @property
    def lines(self) -> list[str]:
        return self._scopes[0].lines

    @contextmanager
    def block(self, header: str, loop: str) -> Iterator[None]:
        """Lines written inside are indented under `header`; values that move with `loop` stay inside."""
        scope = _Scope(loop, self._scopes[-1].depth + 1)
        self._scopes.append(scope)
        yield
        self._scopes.pop()
        outer = self._scopes[-1]
        outer.lines.append("    " * outer.depth + header)
        outer.lines.extend(scope.lines)

    @contextmanager
    def loads_first(self) -> Iterator[None]:
        """Of the lines written inside, loads and what they need come first; no block is opened or closed there."""
        lines = self._scopes[-1].lines
        start = len(lines)
        yield
        lines[start:] = loads_first(lines[start:])

    def space_name(self) -> str:
        """A name that no index space has yet."""
        self._spaces += 1
        return f"space {self._spaces}"

    def fix(self, index: int, value: Value, frame: Frame, space: str = "") -> None:
        """Op `index` is held in registers as `value`, laid out as `frame` says; with `space` in that one only."""
        self._fixed[index] = (value, frame, space)

    def value(self, index: int, frame: Frame, space: IndexSpace) -> Value:
        """Write what is needed for op `index` at `frame`, and return it. Raises FrameError for an impossible view."""
        op = self.body.ops[index]
        if space.whole is not None and all(digit.step >= space.axes[0].extent for digit in frame.digits):
            space = space.whole
        key = (index, space.name, frame)
        if space.whole is not None and (found := self._in_part(key, space)) is not None:
            return found
        if index in self._fixed:
            value, expected, held_in = self._fixed[index]
            if frame != expected or (held_in and held_in != space.name):
                raise FrameError(f"a view re-reads the result of {op.kind} in another order than it is computed in")
            return value
        if op.kind == "constant":
            number = op.attribute("value")
            return Value("", compute_dtype(op.out.dtype), frozenset(), number)
        if (known := self._known(key)) is not None:
            return known
        if op.kind in ("input", "view"):
            source, place = resolve(self.body, index, frame)
            if self.body.ops[source].kind != "input":
                return self.value(source, place, space)
            raw = self.load(source, place, space)
            register = compute_dtype(op.out.dtype)
            text = raw.text if register == op.out.dtype else f"{raw.text}.to({TRITON_TYPE[register]})"
            return self.bind(key, text, register, raw.axes, f"x{self._position(source)}")
        if OP_CLASS[op.kind] in (OpClass.REDUCTION, OpClass.REINDEX):
            return self._moved(key, space)
        if op.kind == "iota":
            coordinate = coordinate_frame(frame, op.out.shape, op.attribute("axis"))
            return self._bound_index(key, self.position(coordinate, space))
        if OP_CLASS[op.kind] is not OpClass.POINTWISE:
            raise FrameError(f"{op.kind} is read before it is computed")
        return self._pointwise(key, space)

    def _known(self, key: tuple[int, str, Frame]) -> Value | None:
        return next((scope.known[key] for scope in self._scopes if key in scope.known), None)

    def _in_part(self, key: tuple[int, str, Frame], space: IndexSpace) -> Value | None:
        """A value in a part of a tile: as it is known there, or as it is made of the whole tile's; else None."""
        index, _, frame = key
        found = self._known(key)
        if found is not None or self.special is None:
            return found
        found = self.special(index, frame, space)
        if found is None or found.number is not None:
            return found
        return self.bind(key, found.text, found.dtype, found.axes, f"v{index}")

    def _pointwise(self, key: tuple[int, str, Frame], space: IndexSpace) -> Value:
        """An op of elements in one place; nothing is written for what the part of the tile decides by itself."""
        index, _, frame = key
        op = self.body.ops[index]
        places = [(i, broadcast_frame(frame, op.out.shape, self.body.ops[i].out.shape)) for i in op.inputs]
        dtype = compute_dtype(op.out.dtype)
        known = truth_of(self.body, index, frame, space)
        if known is not None:
            return Value("", dtype, frozenset(), known)
        if op.kind == "where" and (truth := truth_of(self.body, *places[0], space)) is not None:
            chosen = self.value(*places[1 if truth else 2], space)
            if chosen.number is not None:
                return replace(chosen, dtype=dtype)
            return self.bind(key, cast_text(chosen.text, chosen.dtype, dtype), dtype, chosen.axes, f"v{index}")
        function = self._half_functions.get(index)
        if function is not None:
            places = [(i, broadcast_frame(frame, op.out.shape, self.body.ops[i].out.shape)) for i in function.inputs]
        inputs = [self.value(i, place, space) for i, place in places]
        operands = [Operand(v.text, v.dtype, v.number) for v in inputs]
        text = function.text(operands) if function is not None else pointwise_text(op, operands)
        axes = frozenset().union(*(v.axes for v in inputs))
        return self.bind(key, text, dtype, axes, f"v{index}")

    def _moved(self, key: tuple[int, str, Frame], space: IndexSpace) -> Value:
        """A value that isn't computed from elements in its own place, unless it reduces single elements."""
        index, _, frame = key
        op = self.body.ops[index]
        found = self.special(index, frame, space) if self.special else None
        if found is not None:
            return self.bind(key, found.text, found.dtype, found.axes, f"v{index}")
        if OP_CLASS[op.kind] is OpClass.REINDEX:
            return reindexed(self, index, frame, space)
        if self.body.ops[op.inputs[0]].out.numel != op.out.numel:
            raise FrameError(f"{op.kind} is read before it is computed")
        inner = self.value(op.inputs[0], frame, space)
        dtype = compute_dtype(op.out.dtype)
        text = Operand(inner.text, inner.dtype, inner.number).scalar(dtype)
        return self.bind(key, text, dtype, inner.axes, f"v{index}")

    def load(self, source: int, place: Frame, space: IndexSpace) -> Value:
        """The load of input op `source` at the storage positions of `place`, in its own dtype; a text to be bound."""
        spec = self.body.ops[source].out
        fixed, moving, used = self._offset(place, space)
        pointer = _sum(f"in{self._position(source)}", fixed, place.offset)
        axes = _moves_with(used)
        if moving and (fixed or place.offset):
            pointer = self._pointer(f"p{self._position(source)}", pointer, axes)
        arguments = [" + ".join([pointer, *moving]), *_mask_arguments([a.mask for a in used], "other=0")]
        if self.eviction and math.prod(digit.extent for digit in place.digits) == space.size:
            arguments.append(f'eviction_policy="{self.eviction}"')
        return Value(f"tl.load({', '.join(arguments)})", spec.dtype, axes)

    def load_tile(self, source: int, place: Frame, space: IndexSpace, shape: tuple[int, int]) -> str:
        """Load a tile of exactly `shape` along the two innermost axes of `space`, and return its name.

        An axis along which the input doesn't move still has its place and its mask in the tile.
        """
        name = self._position(source)
        fixed, moving, used = self._offset(place, space)
        tile_axes = list(reversed(space.axes[:2]))
        pointer = _sum(f"in{name}", fixed, place.offset)
        if any(axis not in used for axis in tile_axes):
            pointer = f"tl.broadcast_to({pointer}, {shape})"
        axes = _moves_with([*used, *tile_axes])
        pointer = " + ".join([self._pointer(f"p{name}", pointer, axes), *moving])
        arguments = [pointer, *_mask_arguments([axis.mask for axis in tile_axes], "other=0")]
        return self.name(f"x{name}", f"tl.load({', '.join(arguments)})", axes)

    def store(self, output: int, spec: TensorSpec, value: Value, axes: Sequence[tuple[Axis, int]]) -> None:
        """Store `value` to output number `output`; `axes` are the axes it is stored along, each with its stride."""
        terms = []
        for axis, stride in axes:
            name = f"({axis.start} + {axis.name})" if axis.start else axis.name
            name = f"{name}.to(tl.int64)" if _is_wide(axis, axis.extent, stride, spec.numel) else name
            terms.append(name if stride == 1 else f"{name} * {stride}")
        text = Operand(value.text, value.dtype, value.number).scalar(spec.dtype)
        arguments = [" + ".join([f"out{output}", *terms]), text, *_mask_arguments([axis.mask for axis, _ in axes])]
        self.line(f"tl.store({', '.join(arguments)})")

    def _offset(self, place: Frame, space: IndexSpace) -> tuple[list[str], list[str], list[Axis]]:
        """Terms of a storage position: those fixed in every loop, those that move, and the axes they use."""
        fixed: list[str] = []
        moving: list[str] = []
        used: list[Axis] = []
        reach = place.offset + sum((digit.extent - 1) * digit.place for digit in place.digits)
        groups = split_by_axes(place, [axis.extent for axis in space.axes])
        for axis, digits in reversed(list(zip(space.axes, groups, strict=True))):
            if not digits:
                continue
            used.append(axis)
            straight = is_single_stride(digits, axis.extent)
            if axis.start and straight:
                wide = _is_wide(axis, axis.extent, digits[0].place, reach)
                start = f"tl.cast({axis.start}, tl.int64)" if wide else axis.start
                moving.append(index_text(start, digits[0], axis.extent))
            name = f"({axis.start} + {axis.name})" if axis.start and not straight else axis.name
            terms = moving if axis.start and not straight else fixed
            for digit in reversed(digits):
                index = f"{name}.to(tl.int64)" if _is_wide(axis, digit.extent, digit.place, reach) else name
                terms.append(index_text(index, digit, axis.extent))
        return fixed, moving, used

    def position(self, place: Frame, space: IndexSpace) -> Value:
        """The number that `place` gives each element of `space`: a text, or a number where it is always the same."""
        fixed, moving, used = self._offset(place, space)
        if not used:
            return Value("", "int32", frozenset(), place.offset)
        terms = [*moving, *fixed, *([str(place.offset)] if place.offset else [])]
        dtype = "int64" if any(axis.extent >= WIDE // 2 for axis in used) else "int32"
        return Value(" + ".join(terms), dtype, _moves_with(used))

    def store_at(self, output: int, spec: TensorSpec, value: Value, place: Frame, space: IndexSpace) -> None:
        """Store a tile `value` to output number `output`, at the positions of `place`, which tell its elements apart.

        A tile axis of one element has no digit there: its first place is stored, and its mask hides the others.
        """
        fixed, moving, used = self._offset(place, space)
        single = [axis for axis in space.axes[:2] if axis.extent == 1]
        fixed, used = [*fixed, *(axis.name for axis in single)], [*used, *single]
        text = Operand(value.text, value.dtype, value.number).scalar(spec.dtype)
        pointer = _sum(f"out{output}", [*fixed, *moving], place.offset)
        self.line(f"tl.store({', '.join([pointer, text, *_mask_arguments([axis.mask for axis in used])])})")

    def _bound_index(self, key: tuple[int, str, Frame], value: Value) -> Value:
        if value.number is not None:
            return value
        return self.bind(key, value.text, value.dtype, value.axes, f"i{key[0]}")

    def bind(self, key: tuple[int, str, Frame], text: str, dtype: str, axes: frozenset[str], name: str) -> Value:
        value = Value(text if text.isidentifier() else self.name(name, text, axes), dtype, axes)
        self._home(axes).known[key] = value
        return value

    def _position(self, source: int) -> int:
        return self.body.inputs.index(source)

    def _pointer(self, stem: str, text: str, axes: frozenset[str]) -> str:
        """The name of a pointer tile, written once in front of the loops that it doesn't move with."""
        axes -= {scope.loop for scope in self._scopes}
        pointers = self._home(axes).pointers
        if text not in pointers:
            pointers[text] = self.name(stem, text, axes)
        return pointers[text]

    def name(self, stem: str, text: str, axes: frozenset[str]) -> str:
        """Write `name = text` in the outermost block where `axes` are known, and return the name."""
        count = self._used.get(stem, 0)
        self._used[stem] = count + 1
        name = f"{stem}_{count}" if count else stem
        scope = self._home(axes)
        scope.lines.append("    " * scope.depth + f"{name} = {text}")
        return name

    def _home(self, axes: frozenset[str]) -> _Scope:
        for scope in reversed(self._scopes):
            if not scope.loop or scope.loop in axes:
                return scope
        return self._scopes[0]


def resolve(body: Graph, index: int, frame: Frame) -> tuple[int, Frame]:
    """Follow views down from op `index`: the op whose storage is read, and the frame there.

    For an input the frame holds positions in its storage. Raises FrameError for a view that can't be followed.
    """
    op = body.ops[index]
    spec = op.out
    if op.kind == "input":
        return index, memory_frame(frame, spec)
    if op.kind != "view":
        return index, frame
    source = op.inputs[0]
    while body.ops[source].kind == "view":
        source = body.ops[source].inputs[0]
    if body.ops[source].kind == "input":
        return source, memory_frame(frame, spec)
    return source, view_frame(frame, spec)


def _moves_with(axes: Sequence[Axis]) -> frozenset[str]:
    return frozenset(axis.name for axis in axes) | frozenset(axis.loop for axis in axes if axis.loop)


def _mask_arguments(masks: Sequence[str], *more: str) -> list[str]:
    """The mask that joins those of several axes, then `more`; nothing when no axis has an edge."""
    found = list(dict.fromkeys(mask for mask in masks if mask))
    if not found:
        return []
    return [f"mask={found[0] if len(found) == 1 else ' & '.join(f'({mask})' for mask in found)}", *more]


def _is_wide(axis: Axis, extent: int, place: int, reach: int) -> bool:
    """Whether one term of an offset that goes as far as `reach` needs 64 bits and its index has 32.

    Triton may add up the 32-bit terms before it adds them to the pointer, so in a far offset only small ones stay.
    """
    limit = WIDE // _TERMS if reach >= WIDE else WIDE
    return extent * place >= limit and axis.extent < WIDE


def _sum(base: str, terms: list[str], offset: int) -> str:
    return " + ".join([base, *([str(offset)] if offset else []), *terms])
