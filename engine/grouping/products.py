"""Whether ops around matmuls are one contraction kernel: its products, and what each element of them becomes.

The kernel holds tiles of the products. Behind a product an op is pointwise, or it reduces or turns groups of
neighbouring columns, which a reshape of the last axis makes an axis of their own; no op reads a product otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.ir.column_groups import GroupError, column_group
from engine.ir.graph import Graph
from engine.ir.ops import OP_CLASS, OpClass
from engine.ir.siblings import product_parts, reached_products

_Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """Products whose tiles are held at once: their shape, the same with its columns in groups (None without groups),
    and the ops that depend on them or are read by those that do."""

    whole: _Shape
    split: _Shape | None
    ops: frozenset[int]

    def holds(self, shape: _Shape) -> bool:
        """Whether a value of this shape lies in the tiles by broadcasting."""
        return any(_broadcasts(shape, space) for space in (self.whole, self.split) if space is not None)

    def stores(self, shape: _Shape) -> bool:
        """Whether a value of this shape is one an element, or one a group."""
        return shape == self.whole or (self.split is not None and shape in (self.split, (*self.split[:-1], 1)))

    def reshapes(self, shape: _Shape) -> bool:
        return self.split is not None and shape in (self.whole, self.split)


def is_contraction(graph: Graph, root: Sequence[int], members: frozenset[int], escaping: tuple[int, ...]) -> bool:
    """Whether one kernel computes the ops `members`; `root` and `escaping` as in `family_of_ops`."""
    reached = reached_products(graph, root, members)
    products = product_parts(graph, reached)
    if products is None or any(not reached[i] and _moves(graph, root, members, i) for i in members):
        return False
    if len(products) > 1 and not all(reached[i] for i in escaping):
        return False
    serves = _parts_served(graph, root, reached, products)
    parts = []
    for number, matmuls in enumerate(products):
        whole = graph.ops[matmuls[0]].out.shape
        computed = [i for i in members if reached[i] & set(matmuls)]
        try:
            group = column_group(graph, computed, whole[-1] if whole else 1)
        except GroupError:
            return False
        split = (*whole[:-1], whole[-1] // group, group) if group else None
        parts.append(_Part(whole, split, frozenset(i for i in members if number in serves[i])))
    return all(_fits(graph, root, part, members, escaping) for part in parts)


def _parts_served(
    graph: Graph, root: Sequence[int], reached: dict[int, frozenset[int]], products: tuple[tuple[int, ...], ...]
) -> dict[int, set[int]]:
    """For each op the parts that it belongs to or is read by; an op that nothing reads belongs to all of them."""
    serves = {i: {n for n, matmuls in enumerate(products) if found & set(matmuls)} for i, found in reached.items()}
    for index in sorted(reached, reverse=True):
        serves[index] = serves[index] or set(range(len(products)))
        for source in {root[i] for i in graph.ops[index].inputs} & reached.keys():
            if not reached[source]:
                serves[source] |= serves[index]
    return serves


def _moves(graph: Graph, root: Sequence[int], members: frozenset[int], index: int) -> bool:
    """Whether an op that needs no product reduces, or re-reads elsewhere what is computed in the kernel."""
    op = graph.ops[index]
    if OP_CLASS[op.kind] is OpClass.REDUCTION:
        return op.out.numel != graph.ops[op.inputs[0]].out.numel
    return OP_CLASS[op.kind] is OpClass.REINDEX and any(root[i] in members for i in op.inputs)


def _fits(graph: Graph, root: Sequence[int], part: _Part, members: frozenset[int], escaping: tuple[int, ...]) -> bool:
    for index in part.ops:
        op = graph.ops[index]
        if not part.holds(op.out.shape):
            return False
        for seen in op.inputs:
            if root[seen] == seen or root[seen] not in members:
                continue
            view, value = graph.ops[seen].out, graph.ops[root[seen]].out
            if not view.is_contiguous or not (part.reshapes(view.shape) and part.reshapes(value.shape)):
                return False
    return all(part.stores(graph.ops[i].out.shape) for i in escaping if i in part.ops)


def _broadcasts(shape: _Shape, space: _Shape) -> bool:
    return len(shape) <= len(space) and all(
        extent in (1, whole) for extent, whole in zip(reversed(shape), reversed(space), strict=False)
    )
