"""Values that are computed from positions and numbers alone: masks, ramps, positions.

They cost a few instructions an element and no memory, so no kernel is asked for them: each body that reads one
computes it, as it writes its constants. Only a value that the program returns, or a long chain, is held in memory.
"""

from __future__ import annotations

from engine.ir.graph import Graph
from engine.ir.ops import OP_CLASS, OpClass

MAX_OPS = 16
"""Ops of one generated value; what is longer is computed once and read."""


def generated_ops(graph: Graph, returned: frozenset[int]) -> frozenset[int]:
    """The ops, views among them, whose values every reader computes for itself; `returned` are not among them."""
    behind: dict[int, frozenset[int]] = {}
    for index, op in enumerate(graph.ops):
        kind = OP_CLASS[op.kind]
        if kind is OpClass.CONSTANT:
            continue
        sources = [i for i in op.inputs if graph.ops[i].kind != "constant"]
        if kind is OpClass.GENERATOR:
            found = frozenset({index})
        elif kind in (OpClass.POINTWISE, OpClass.VIEW) and sources and all(i in behind for i in sources):
            found = frozenset({index}).union(*(behind[i] for i in sources))
        else:
            continue
        if index not in returned and len(found) <= MAX_OPS:
            behind[index] = found
    return frozenset(behind)
