"""Rolls, joins and gathers as index arithmetic: their operands are computed in an index space of their own.

The coordinates of the result's element become names; one of them is changed (turned around the end, moved to the
start of a joined piece, or read from memory), and the operand is written for the coordinates so found. So whatever
an operand computes, it computes where it is needed, and nothing is moved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.codegen.expressions import Operand, compute_dtype
from engine.codegen.frames import Digit, Frame, coordinate_frame, whole_frame
from engine.codegen.index_space import Axis, IndexSpace, Value
from engine.ir.graph import Op

if TYPE_CHECKING:
    from engine.codegen.emit import Emitter


@dataclass(frozen=True, slots=True)
class _Coordinate:
    """One coordinate of an element: its text, the axes it moves with, and the mask and loop of those."""

    text: str
    extent: int
    moves: frozenset[str]
    mask: str
    loop: str
    number: int | None = None


def reindexed(emitter: Emitter, index: int, frame: Frame, space: IndexSpace) -> Value:
    """Write the value of a roll, cat or gather at `frame`. Raises FrameError for an operand of an impossible view."""
    op = emitter.body.ops[index]
    turned = _turned_axis(emitter, op, frame, space)
    if turned is not None:
        inner = emitter.value(op.inputs[0], frame, turned[0])
        moves = frozenset(turned[1] if name == turned[0].name else name for name in inner.axes)
        value = replace(inner, axes=_renamed(moves, turned[0], space))
    else:
        found = [_coordinate(emitter, op, axis, frame, space) for axis in range(len(op.out.shape))]
        value = _WRITERS[op.kind](emitter, index, found, space)
    if value.number is not None:
        return value
    return emitter.bind((index, space.name, frame), value.text, value.dtype, value.axes, f"v{index}")


def _turned_axis(emitter: Emitter, op: Op, frame: Frame, space: IndexSpace) -> tuple[IndexSpace, str] | None:
    """For a roll along one whole program axis: the space with only that axis turned, in which every frame stays.

    Values that the kernel holds in registers, like the statistics of a row, are then at hand for the operand.
    """
    if op.kind != "roll":
        return None
    place = coordinate_frame(frame, op.out.shape, op.attribute("axis"))
    step = 1
    for number, axis in enumerate(space.axes):
        if axis.extent > 1 and place == Frame((Digit(axis.extent, step, 1),)):
            start = f"{axis.start} + " if axis.start else ""
            text = f"({start}{axis.name} + {op.attribute('shift')}) % {axis.extent}"
            moves = frozenset({axis.name, *([axis.loop] if axis.loop else [])})
            name = emitter.name("turned", text, moves)
            axes = list(space.axes)
            axes[number] = Axis(name, axis.extent, axis.mask, "", axis.loop)
            return IndexSpace(f"{space.name}.{name}", tuple(axes)), axis.name
        step *= axis.extent
    return None


def _renamed(moves: frozenset[str], inner: IndexSpace, outer: IndexSpace) -> frozenset[str]:
    """Names of the turned space's axes as those of the space around it."""
    names = {new.name: old.name for new, old in zip(inner.axes, outer.axes, strict=True)}
    return frozenset(names.get(name, name) for name in moves)


def _coordinate(emitter: Emitter, op: Op, axis: int, frame: Frame, space: IndexSpace) -> _Coordinate:
    value = emitter.position(coordinate_frame(frame, op.out.shape, axis), space)
    extent = op.out.shape[axis]
    if value.number is not None:
        return _Coordinate(str(value.number), extent, frozenset(), "", "", int(value.number))
    used = [a for a in space.axes if a.name in value.axes]
    mask = _both(*(a.mask for a in used))
    loop = next((a.loop for a in used if a.loop), "")
    text = value.text if value.text.isidentifier() else emitter.name("c", value.text, value.axes)
    return _Coordinate(text, extent, value.axes, mask, loop)


def _space_of(emitter: Emitter, found: Sequence[_Coordinate]) -> IndexSpace:
    """A space whose axes are these coordinates; its name is new, since texts tell its elements apart."""
    axes = tuple(Axis(c.text, c.extent, c.mask, "", c.loop) for c in reversed(found))
    return IndexSpace(emitter.space_name(), axes)


def _operand(emitter: Emitter, index: int, found: Sequence[_Coordinate]) -> Value:
    """Op `index` at these coordinates, its axes those of the space around."""
    space = _space_of(emitter, found)
    inner = emitter.value(index, whole_frame(math.prod(c.extent for c in found)), space)
    moves: set[str] = {c.loop for c in found if c.loop and c.loop in inner.axes}
    for coordinate in found:
        if coordinate.text in inner.axes:
            moves |= coordinate.moves
    return replace(inner, axes=frozenset(moves))


def _rolled(emitter: Emitter, index: int, found: list[_Coordinate], space: IndexSpace) -> Value:
    op = emitter.body.ops[index]
    axis, shift = op.attribute("axis"), op.attribute("shift")
    old = found[axis]
    if old.number is not None:
        number = (old.number + shift) % max(old.extent, 1)
        found[axis] = replace(old, text=str(number), number=number)
    else:
        text = emitter.name("turned", f"({old.text} + {shift}) % {old.extent}", old.moves)
        found[axis] = replace(old, text=text)
    return _operand(emitter, op.inputs[0], found)


def _joined(emitter: Emitter, index: int, found: list[_Coordinate], space: IndexSpace) -> Value:
    op = emitter.body.ops[index]
    axis = op.attribute("axis")
    old, dtype = found[axis], compute_dtype(op.out.dtype)
    pieces: list[tuple[int, Value]] = []
    start = 0
    for source in op.inputs:
        extent = emitter.body.ops[source].out.shape[axis]
        stop = start + extent
        if extent and (old.number is None or start <= old.number < stop):
            piece = _piece(emitter, old, start, extent)
            pieces.append((stop, _operand(emitter, source, [*found[:axis], piece, *found[axis + 1 :]])))
        start = stop
    text = Operand(pieces[-1][1].text, pieces[-1][1].dtype, pieces[-1][1].number).scalar(dtype)
    for stop, value in reversed(pieces[:-1]):
        own = Operand(value.text, value.dtype, value.number).scalar(dtype)
        text = f"tl.where({old.text} < {stop}, {own}, {text})"
    moves = old.moves.union(*(value.axes for _, value in pieces))
    return Value(text, dtype, moves)


def _piece(emitter: Emitter, old: _Coordinate, start: int, extent: int) -> _Coordinate:
    """The coordinate within a joined piece; its mask keeps loads inside the piece."""
    if old.number is not None:
        return replace(old, text=str(old.number - start), extent=extent, number=old.number - start)
    text = emitter.name("c", f"{old.text} - {start}", old.moves) if start else old.text
    edges = (f"{text} >= 0" if start else "", f"{text} < {extent}" if start + extent < old.extent else "")
    return replace(old, text=text, extent=extent, mask=_both(old.mask, *edges))


def _both(*masks: str) -> str:
    """The mask that joins these; empty ones are no mask."""
    found = list(dict.fromkeys(mask for mask in masks if mask))
    return found[0] if len(found) == 1 else " & ".join(f"({mask})" for mask in found)


def _gathered(emitter: Emitter, index: int, found: list[_Coordinate], space: IndexSpace) -> Value:
    op = emitter.body.ops[index]
    table, rows = (emitter.body.ops[i].out for i in op.inputs)
    lead = len(rows.shape)
    row = _operand(emitter, op.inputs[1], found[:lead])
    used = [c for c in found[:lead] if c.moves]
    mask = _both(*(c.mask for c in used))
    loop = next((c.loop for c in used if c.loop), "")
    count = table.shape[0]
    if row.number is not None:
        number = int(row.number) % max(count, 1)
        first = _Coordinate(str(number), count, frozenset(), "", "", number)
    else:
        # An index counts around the table, so none reads outside of it.
        text = emitter.name("row", f"({row.text} % {count} + {count}) % {count}", row.axes)
        first = _Coordinate(text, count, row.axes, mask, loop)
    return _operand(emitter, op.inputs[0], [first, *found[lead:]])


_WRITERS = {"roll": _rolled, "cat": _joined, "gather": _gathered}
