"""Matmuls of one left operand: gate and up, or queries, keys and values of equal width.

One kernel may compute them together, and then loads the left operand once.
"""

from __future__ import annotations

from engine.ir.graph import Graph

MAX_SIBLINGS = 3
"""Accumulator tiles that one program still holds in registers at a useful size."""


def are_siblings(graph: Graph, first: int, second: int) -> bool:
    """Whether two matmuls multiply the same value by right operands of equal shape and dtype, at equal precision."""
    one, other = graph.ops[first], graph.ops[second]
    if one.kind != "matmul" or other.kind != "matmul" or one.inputs[0] != other.inputs[0]:
        return False
    rights = [graph.ops[op.inputs[1]].out for op in (one, other)]
    alike = rights[0].shape == rights[1].shape and rights[0].dtype == rights[1].dtype
    return alike and one.out == other.out and one.attributes == other.attributes
