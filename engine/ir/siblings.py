"""Matmuls of one left operand: gate and up, or queries, keys and values.

One kernel may compute them together: those of equal widths hold a tile of each at once, so that one value may be
computed from several of them (a gate); those of unequal widths lie side by side in one launch, each with its tiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.ir.graph import Graph
from engine.ir.views import storage_roots

MAX_SIBLINGS = 3
"""Accumulator tiles that one program still holds in registers at a useful size."""


def are_siblings(graph: Graph, first: int, second: int) -> bool:
    """Whether two matmuls multiply the same value by right operands of equal shape and dtype, at equal precision."""
    one, other = graph.ops[first], graph.ops[second]
    return are_beside(graph, first, second) and one.out == other.out


def are_beside(graph: Graph, first: int, second: int) -> bool:
    """Whether two matmuls are siblings but for the widths of their right operands."""
    one, other = graph.ops[first], graph.ops[second]
    if one.kind != "matmul" or other.kind != "matmul" or one.inputs[0] != other.inputs[0]:
        return False
    rights = [graph.ops[op.inputs[1]].out for op in (one, other)]
    alike = rights[0].shape[:-1] == rights[1].shape[:-1] and rights[0].dtype == rights[1].dtype
    return alike and one.out.dtype == other.out.dtype and one.attributes == other.attributes


def reached_products(graph: Graph, root: Sequence[int], members: Iterable[int]) -> dict[int, frozenset[int]]:
    """For each of the ops `members` the matmuls among them that it depends on, itself included.

    `root[i]` is the op whose storage op i reads.
    """
    reached: dict[int, frozenset[int]] = {}
    for index in sorted(members):
        op = graph.ops[index]
        own = frozenset({index}) if op.kind == "matmul" else frozenset()
        reached[index] = own.union(*(reached.get(root[i], frozenset()) for i in op.inputs))
    return reached


def product_parts(graph: Graph, reached: Mapping[int, frozenset[int]]) -> tuple[tuple[int, ...], ...] | None:
    """The matmuls of one kernel, those that hold their tiles at once together; None when no kernel takes them all.

    `reached` is what `reached_products` gives. Matmuls of equal extents are one part. Where widths differ, those that
    one value is computed from are a part, and each part lies beside the others.
    """
    matmuls = sorted(frozenset().union(*reached.values()))
    if not 1 <= len(matmuls) <= MAX_SIBLINGS or any(len(reached[i]) > 1 for i in matmuls):
        return None
    if all(are_siblings(graph, matmuls[0], i) for i in matmuls[1:]):
        return (tuple(matmuls),)
    if not all(are_beside(graph, matmuls[0], i) for i in matmuls[1:]):
        return None
    parts: list[set[int]] = []
    for together in {frozenset({i}) for i in matmuls} | {found for found in reached.values() if found}:
        touched = [part for part in parts if part & together]
        parts = [part for part in parts if part not in touched] + [set(together).union(*touched)]
    ordered = sorted(tuple(sorted(part)) for part in parts)
    if any(not are_siblings(graph, part[0], i) for part in ordered for i in part[1:]):
        return None
    return tuple(ordered)


def body_parts(body: Graph) -> tuple[tuple[int, ...], ...] | None:
    """`product_parts` of all ops of a kernel's body."""
    return product_parts(body, reached_products(body, storage_roots(body), range(len(body.ops))))
