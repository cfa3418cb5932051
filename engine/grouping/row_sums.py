"""Rule: short sums of a row, as a norm makes of the partial sums that another kernel left, in the contractions that
read them, or in a kernel of their own.

Every tile then sums its rows again: one load of a few values a row, in place of a launch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.grouping.epilogue import lone_atom, reduction_sites
from engine.grouping.partition import Facts, Partition, escaping, family_of
from engine.grouping.site import APART, FUSED, Site
from engine.ir.column_groups import MAX_ROW_VALUES
from engine.ir.ops import REDUCTIONS
from engine.ir.shapes import FLOATS
from engine.ir.siblings import reached_products

_MAX_OPS = 8


@dataclass(frozen=True, slots=True)
class RowSumRule:
    knob: str = "FUSE_ROW_SUMS"
    answers: tuple[str, str] = (FUSED, APART)

    def sites(self, start: Partition) -> tuple[Site, ...]:
        return tuple(site for site in reduction_sites(start) if _is_short(start.facts, site.ops))

    def fused(self, partition: Partition, site: Site) -> Partition | None:
        """Recomputed by every reader, where each is a contraction that reads the sums behind its product."""
        facts = partition.facts
        atom = lone_atom(partition, site.ops)
        if atom is None or site.ops & facts.returned:
            return None
        rows = {facts.graph.ops[i].out.numel for i in escaping(facts, site.ops)}
        for consumer in partition.consumers(atom):
            members = partition.members(consumer)
            if family_of(facts, members) != "contraction":
                return None
            reached = reached_products(facts.graph, facts.root, members)
            inputs = {i: facts.graph.ops[i].inputs for i in members}
            readers = [i for i in members if site.ops.intersection(facts.root[source] for source in inputs[i])]
            if not all(_scales_rows(facts, i, reached[i], site.ops, rows) for i in readers):
                return None
        return replace(partition, inlined=partition.inlined | {atom})

    def apart(self, partition: Partition, site: Site) -> Partition:
        return partition


def _is_short(facts: Facts, ops: frozenset[int]) -> bool:
    """Whether the ops sum a few floats a row and compute one number of each."""
    graph = facts.graph
    if len(ops) > _MAX_OPS or any(facts.shape(i)[-1:] != (1,) for i in escaping(facts, ops)):
        return False
    for index in ops:
        op = graph.ops[index]
        if any(facts.root[i] != i and facts.root[i] in ops for i in op.inputs):
            return False
        if op.kind not in REDUCTIONS:
            continue
        width = graph.ops[op.inputs[0]].out.numel // max(op.out.numel, 1)
        over_last = tuple(op.attribute("axes")) == (len(op.out.shape) - 1,)
        if op.kind not in ("sum", "mean") or not over_last or width > MAX_ROW_VALUES or op.out.dtype not in FLOATS:
            return False
    return True


def _scales_rows(facts: Facts, reader: int, products: frozenset[int], sums: frozenset[int], rows: set[int]) -> bool:
    """Whether an op applies the sums, as they are, to the rows of the products that it depends on."""
    if any(facts.root[i] in sums and facts.root[i] != i for i in facts.graph.ops[reader].inputs):
        return False
    return bool(products) and all({facts.graph.ops[i].out.numel // facts.shape(i)[-1]} == rows for i in products)
