"""The text that computes a tile of queries or keys from what is loaded: a norm of each head, a rotation, other ops.

A tile holds whole heads, so a reduction over a head is one over the tile's columns. What a rotation reads at the other
half of the head is loaded and computed there again, in registers of its own, which needs no exchange between threads.
The result is a new tile: Triton 3.6 miscompiles a loop that computes on a loaded tile and multiplies the same.
"""

from __future__ import annotations

from engine.codegen.emit import Emitter, IndexSpace, Value, resolve
from engine.codegen.expressions import Operand, cast_text, compute_dtype
from engine.codegen.family import Unsupported
from engine.codegen.frames import Frame, broadcast_frame, memory_frame, row_frame, whole_frame
from engine.ir.graph import Graph, TensorSpec
from engine.ir.ops import OP_CLASS, OpClass
from engine.ir.shapes import FLOATS

_IDENTITY = {"sum": "0.0", "mean": "0.0", "amax": 'float("-inf")', "amin": 'float("inf")'}


def key_frame(batch: int, keys: int, depth: int) -> Frame:
    """Where the right operand [batch, depth, keys] holds the elements of tiles that are walked as [batch, keys, depth].

    >>> key_frame(1, 2, 3).digits
    (Digit(extent=3, step=1, place=2), Digit(extent=2, step=3, place=1))
    """
    turned = TensorSpec((batch, keys, depth), "float32", (keys * depth, 1, keys))
    return memory_frame(whole_frame(batch * keys * depth), turned)


def computed_tile(emitter: Emitter, source: int, place: Frame, space: IndexSpace, shape: tuple[int, int]) -> str:
    """Write op `source` for a tile of `shape` (rows, head) and return the tile's name; it has the op's own dtype.

    `space` has the axes of head, rows and batch; `place` says which element of the op is at which place there.
    Raises FrameError or Unsupported (a sentence) for ops that do not keep to their head.
    """
    body = emitter.body
    head, rows, _ = space.axes
    statistics = _statistics(body, source, place, head.extent)
    for index in sorted(statistics):
        op, dtype = body.ops[index], compute_dtype(body.ops[index].out.dtype)
        wide = row_frame(statistics[index], head.extent)
        value = emitter.value(op.inputs[0], wide, space)
        text = _spread(Operand(value.text, value.dtype, value.number).scalar(dtype), value, space, shape)
        if head.mask:
            text = f"tl.where({head.mask}, {text}, {_IDENTITY[op.kind]})"
        moves = (value.axes | {rows.name, *([rows.loop] if rows.loop else [])}) - {head.name}
        reduced = emitter.name(f"r{index}", _reduced(op.kind, text, head.extent), moves)
        emitter.fix(index, Value(reduced, dtype, moves), statistics[index])
    value = emitter.value(source, place, space)
    text = _spread(Operand(value.text, value.dtype, value.number).scalar(value.dtype), value, space, shape)
    if head.mask:
        text = f"tl.where({head.mask}, {text}, 0.0)"
    text = cast_text(text, value.dtype, body.ops[source].out.dtype)
    moves = value.axes | {rows.name, head.name, *([rows.loop] if rows.loop else [])}
    return emitter.name(space.name, text, moves)


def _spread(text: str, value: Value, space: IndexSpace, shape: tuple[int, int]) -> str:
    """The value as wide as the tile."""
    if value.axes >= {axis.name for axis in space.axes[:2]}:
        return text
    return f"tl.broadcast_to({text}, {shape})"


def _reduced(kind: str, text: str, extent: int) -> str:
    if kind in ("sum", "mean"):
        return f"tl.sum({text}, 1, keep_dims=True)" + (f" / {float(extent)!r}" if kind == "mean" else "")
    return f"tl.reduce({text}, 1, {'maximum_nan' if kind == 'amax' else 'minimum_nan'}, keep_dims=True)"


def streamed_bytes(body: Graph, source: int, place: Frame, extents: tuple[int, int]) -> int:
    """Bytes loaded for each element of op `source`: of inputs that move along the head and the rows (`extents`), those
    behind a roll once more for it."""
    depth, rows = extents
    loads = set()
    for index, frame, turns in _walk(body, source, place, depth):
        along_head = any(d.step < depth for d in frame.digits)
        along_rows = any(d.step < depth * rows and d.step * d.extent > depth for d in frame.digits)
        if body.ops[index].kind == "input" and along_head and along_rows:
            loads.add((index, turns))
    return sum(body.ops[index].out.element_bytes for index, _ in loads)


def _statistics(body: Graph, source: int, place: Frame, extent: int) -> dict[int, Frame]:
    """The reductions behind op `source`, each with the frame in which all of its readers see it."""
    found: dict[int, Frame] = {}
    for index, frame, _ in _walk(body, source, place, extent):
        if OP_CLASS[body.ops[index].kind] is not OpClass.REDUCTION:
            continue
        if found.setdefault(index, frame) != frame:
            raise Unsupported(f"Two readers of a {body.ops[index].kind} before the scores see its heads in two orders.")
    return found


def _walk(body: Graph, source: int, place: Frame, extent: int) -> list[tuple[int, Frame, int]]:
    """The inputs and ops behind op `source`, each with its frame (an input's is in its storage) and how many rolls
    stand before it. Raises Unsupported for an op that no tile of heads can hold."""
    found: dict[tuple[int, Frame, int], None] = {}
    stack = [(source, place, 0)]
    while stack:
        index, frame, turns = stack.pop()
        op = body.ops[index]
        kind = OP_CLASS[op.kind]
        if kind in (OpClass.INPUT, OpClass.VIEW):
            index, frame = resolve(body, index, frame)
            if body.ops[index].kind == "input":
                found[index, frame, turns] = None
            else:
                stack.append((index, frame, turns))
            continue
        if (index, frame, turns) in found:
            continue
        found[index, frame, turns] = None
        if kind is OpClass.REDUCTION:
            _check_reduction(body, index, frame, extent)
            stack.append((op.inputs[0], row_frame(frame, extent), 0))
        elif kind is OpClass.POINTWISE or op.kind == "roll":
            turns += op.kind == "roll"
            stack += [(i, broadcast_frame(frame, op.out.shape, body.ops[i].out.shape), turns) for i in op.inputs]
        elif op.inputs:
            raise Unsupported(
                f"An attention kernel computes its queries and keys head by head, and {op.kind} does not."
            )
    return list(found)


def _check_reduction(body: Graph, index: int, frame: Frame, extent: int) -> None:
    op = body.ops[index]
    read = body.ops[op.inputs[0]].out
    over_head = tuple(op.attribute("axes")) == (len(read.shape) - 1,) and read.shape[-1] == extent
    known = op.kind in _IDENTITY and op.out.dtype in FLOATS
    if not over_head or not known or any(digit.step % extent for digit in frame.digits):
        raise Unsupported(f"An attention kernel reduces whole heads of its queries and keys, and a {op.kind} does not.")
