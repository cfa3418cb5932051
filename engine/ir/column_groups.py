"""Groups of neighbouring columns of a matmul's result: what is reduced or turned within a head, or within 32 columns.

A tile of whole groups computes such ops in registers, so they may end the kernel of the matmul.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from engine.ir.graph import Graph
from engine.ir.ops import OP_CLASS, REDUCTIONS, OpClass
from engine.ir.shapes import FLOATS

MAX_GROUP = 256
"""Columns of the widest group: those of the widest tile."""
MAX_ROW_VALUES = 128
"""Values of a row, left by another kernel, that a tile sums in one load."""


class GroupError(ValueError):
    """Ops that no tile of whole groups computes; the text is a sentence."""


def column_group(graph: Graph, computed: Iterable[int], columns: int) -> int:
    """How many neighbouring columns the ops `computed` from a matmul of `columns` reduce or turn together; 0: none.

    Raises GroupError for a reduction that is not over the last axis, a move that is no turn by half of it, groups of
    several sizes, and a group that is no power of two or no part of the columns.
    """
    groups: set[int] = set()
    for index in sorted(computed):
        op = graph.ops[index]
        if OP_CLASS[op.kind] not in (OpClass.REDUCTION, OpClass.REINDEX):
            continue
        shape = graph.ops[op.inputs[0]].out.shape
        if op.kind in REDUCTIONS:
            if op.out.numel == math.prod(shape):
                continue
            if tuple(op.attribute("axes")) != (len(shape) - 1,) or op.out.dtype not in FLOATS:
                raise GroupError(f"A {op.kind} behind a matmul is one of floats over the last axis.")
        elif op.kind != "roll" or op.attribute("axis") != len(shape) - 1 or 2 * op.attribute("shift") != shape[-1]:
            raise GroupError("The result of a matmul is turned by half of its last axis, and moved in no other way.")
        groups.add(shape[-1])
    if len(groups) > 1:
        raise GroupError(f"Groups of {' and '.join(map(str, sorted(groups)))} columns are those of no one tile.")
    group = max(groups, default=0)
    if group and (not 2 <= group <= MAX_GROUP or group & (group - 1) or columns % group or columns == group):
        raise GroupError(f"{group} of {columns} columns are no group: a power of two up to {MAX_GROUP} that cuts them.")
    return group
