"""What a rowwise body is: rows, columns, its reductions in dependency levels, and where each output belongs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.codegen.family import Unsupported
from engine.codegen.outputs import Output, stored_outputs
from engine.ir.graph import Graph, Op
from engine.ir.ops import REDUCTIONS
from engine.ir.placement import placed


@dataclass(frozen=True, slots=True)
class RowwiseFacts:
    """`rows` x `columns` elements; `levels[i]` are the reductions that need those of the levels before, and no other.

    `trivial` are reductions over axes of extent 1. `depth[i]` counts how many levels op i needs. `wide_outputs` hold
    a value an element, `row_outputs` one a row.
    """

    body: Graph
    rows: int
    columns: int
    levels: tuple[tuple[int, ...], ...]
    trivial: frozenset[int]
    depth: tuple[int, ...]
    wide_outputs: tuple[Output, ...]
    row_outputs: tuple[Output, ...]


def rowwise_facts(body: Graph) -> RowwiseFacts:
    """Read the body. Raises Unsupported with a sentence when it is no rowwise kernel."""
    body = placed(body)
    for op in body.ops:
        if op.kind == "matmul":
            raise Unsupported("A rowwise kernel holds no matmul.")
    reductions = [i for i, op in enumerate(body.ops) if op.kind in REDUCTIONS]
    trivial = frozenset(i for i in reductions if body.ops[body.ops[i].inputs[0]].out.numel == body.ops[i].out.numel)
    real = [i for i in reductions if i not in trivial]
    if not real:
        raise Unsupported("A rowwise kernel holds at least one reduction over more than one element.")
    if any(body.ops[i].out.dtype == "bool" for i in real):
        raise Unsupported("An amax or amin of truth values has no Triton form.")
    rows, columns = _extents(body, body.ops[real[0]])
    for i in real:
        if _extents(body, body.ops[i]) != (rows, columns):
            raise Unsupported("The reductions of this body differ in their rows or columns.")
    depth = _depths(body, frozenset(real))
    levels = tuple(tuple(i for i in real if depth[i] == level + 1) for level in range(max(depth[i] for i in real)))
    wide, narrow = [], []
    for output in stored_outputs(body):
        if output.spec.numel == rows * columns:
            wide.append(output)
        elif output.spec.numel == rows:
            narrow.append(output)
        else:
            raise Unsupported(
                f"Output {output.position} has {output.spec.numel} elements, neither one a row nor one an element."
            )
    return RowwiseFacts(body, rows, columns, levels, trivial, depth, tuple(wide), tuple(narrow))


def _extents(body: Graph, op: Op) -> tuple[int, int]:
    """Rows and columns of a reduction whose axes are the trailing ones (axes of extent 1 may lie anywhere)."""
    shape = body.ops[op.inputs[0]].out.shape
    axes = [axis for axis in op.attribute("axes") if shape[axis] != 1]
    kept = [axis for axis, extent in enumerate(shape) if axis not in axes and extent != 1]
    if math.prod(shape) == 0:
        raise Unsupported("An empty tensor has nothing to reduce.")
    if kept and axes and kept[-1] > axes[0]:
        raise Unsupported(f"{op.kind} over axes {tuple(op.attribute('axes'))} of {shape} is not over the last axes.")
    return math.prod(shape[axis] for axis in kept), math.prod(shape[axis] for axis in axes)


def _depths(body: Graph, real: frozenset[int]) -> tuple[int, ...]:
    depth: list[int] = []
    for index, op in enumerate(body.ops):
        below = max((depth[i] for i in op.inputs), default=0)
        depth.append(below + (index in real))
    return tuple(depth)
