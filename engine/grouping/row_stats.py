"""Rewrite: the squares of a row are summed in groups of columns by the kernel that makes the row.

Where the scale of a norm stands behind the matmuls, what is left of the norm is a launch of its own. A matmul that
makes the rows holds a tile of them and not whole rows: it stores a sum for each group of columns beside them, and who
scales by the row sums these few numbers again. The rules then ask both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.grouping.partition import Facts
from engine.grouping.rebuilding import Replacement, rebuilt
from engine.grouping.rewriting import Chosen, RewriteSite
from engine.grouping.row_scale import RowScale, row_scale
from engine.grouping.site import APART, context_of
from engine.ir.builder import GraphBuilder
from engine.ir.graph import Graph, contiguous_strides
from engine.ir.ops import OpClass

PRODUCER = "producer"
GROUP = 32
"""Columns of one partial sum: the narrowest tile is a multiple of it, but for tiles of 16 columns."""
MOST_GROUPS = 128
"""What a reader sums in one load."""


@dataclass(frozen=True, slots=True)
class RowStats:
    knob: str = "ROW_STATS"

    def sites(self, graph: Graph) -> tuple[RewriteSite, ...]:
        facts = Facts.of(graph)
        scales = (_parted_scale(facts, index) for index in range(len(graph.ops)))
        return tuple(
            RewriteSite(scale.mean, context_of(facts, scale.ops), (APART, PRODUCER)) for scale in scales if scale
        )

    def rewritten(self, graph: Graph, chosen: Sequence[Chosen]) -> Graph:
        means = {c.site.at for c in chosen}
        facts = Facts.of(graph)
        scales = (_parted_scale(facts, index) for index in range(len(graph.ops)))
        return rebuilt(graph, {s.mean: _summed_twice(graph, s) for s in scales if s and s.mean in means})


def _parted_scale(facts: Facts, index: int) -> RowScale | None:
    """The scale that op `index` computes, if it scales products of its rows only, and a matmul makes the rows."""
    scale = row_scale(facts, index)
    if scale is None or index in facts.returned or not facts.readers[index]:
        return None
    if any(facts.readers[i] != (j,) for i, j in _line(facts, scale, index)):
        return None
    spec = facts.graph.ops[scale.x].out
    groups, rest = divmod(spec.shape[-1], GROUP)
    fits = rest == 0 and 1 < groups <= MOST_GROUPS and spec.is_contiguous
    scales = all(_scales_product_of(facts, reader, scale.x) for reader in facts.readers[index])
    return scale if fits and scales and _made_by_matmul(facts, scale.x) else None


def _line(facts: Facts, scale: RowScale, index: int) -> list[tuple[int, int]]:
    """The mean and what follows it up to the scale, each with the one op that may read it."""
    (after,) = facts.graph.ops[index].inputs
    return [(scale.mean, after), (after, index)]


def _scales_product_of(facts: Facts, reader: int, x: int) -> bool:
    op = facts.graph.ops[reader]
    if op.kind != "mul" or not facts.is_pointwise(reader):
        return False
    return any(
        facts.classes[i] is OpClass.CONTRACTION and facts.root[facts.graph.ops[i].inputs[0]] == facts.root[x]
        for i in op.inputs
    )


def _made_by_matmul(facts: Facts, index: int) -> bool:
    """Whether a matmul is above the op, with pointwise ops alone between them."""
    stack, seen = [facts.root[index]], set()
    while stack:
        value = stack.pop()
        if facts.classes[value] is OpClass.CONTRACTION:
            return True
        if value not in seen and facts.is_pointwise(value):
            seen.add(value)
            stack.extend(facts.root[i] for i in facts.graph.ops[value].inputs)
    return False


def _summed_twice(graph: Graph, scale: RowScale) -> Replacement:
    """The mean as the sum of sums of groups, in float32 or wider, over the number of columns."""
    spec, out = graph.ops[scale.x].out, graph.ops[scale.mean].out
    groups = spec.shape[-1] // GROUP

    def write(b: GraphBuilder, where: Mapping[int, int]) -> int:
        grouped = (*spec.shape[:-1], groups, GROUP)
        wide = b.view(where[scale.x], grouped, contiguous_strides(grouped))
        if spec.dtype != out.dtype:
            wide = b.add("cast", wide, dtype=out.dtype)
        parts = b.add("sum", b.add("mul", wide, wide), axes=(len(grouped) - 1,))
        rows = (*spec.shape[:-1], groups)
        total = b.add("sum", b.view(parts, rows, contiguous_strides(rows)), axes=(len(rows) - 1,))
        return b.add("mul", total, b.constant(1.0 / spec.shape[-1], out.dtype), dtype=out.dtype)

    return write
