"""Rule: a pointwise chain that feeds a rowwise kernel or contractions starts those kernels, or stands apart.

A rowwise kernel takes the chain in: each value is computed once, and may be stored for others too. A contraction
recomputes the chain in every output tile that needs it, so that is offered only for a short chain with few operands
that nobody reads but contractions, and ops that move elements. Attention multiplies what it loads as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.grouping.epilogue import lone_atom, pointwise_chains
from engine.grouping.partition import Partition, escaping, family_of
from engine.grouping.site import APART, FUSED, Site, context_of
from engine.ir.attention import ATTENTION
from engine.ir.ops import OpClass
from engine.ir.views import view_axes

MAX_OPS = 8
MAX_OPERANDS = 3
MAX_CONTRACTIONS = 4


@dataclass(frozen=True, slots=True)
class PrologueRule:
    knob: str = "FUSE_PROLOGUE"
    answers: tuple[str, str] = (FUSED, APART)

    def sites(self, start: Partition) -> tuple[Site, ...]:
        facts = start.facts
        found = []
        for ops in pointwise_chains(start):
            readers = frozenset(r for i in ops for r in facts.readers[i]) - ops
            if any(not facts.is_pointwise(r) for r in readers):
                found.append(Site(ops, context_of(facts, ops | readers)))
        return tuple(found)

    def fused(self, partition: Partition, site: Site) -> Partition | None:
        """Into the first rowwise kernel that can take it, else into every contraction or move that reads it."""
        atom = lone_atom(partition, site.ops)
        if atom is None:
            return None
        for consumer in partition.consumers(atom):
            if family_of(partition.facts, partition.members(consumer)) == "rowwise":
                merged = partition.merged((atom, consumer))
                if merged is not None:
                    return merged
        if not _may_recompute(partition, site.ops):
            return None
        return replace(partition, inlined=partition.inlined | {atom})

    def apart(self, partition: Partition, site: Site) -> Partition:
        return partition


def _may_recompute(partition: Partition, ops: frozenset[int]) -> bool:
    facts = partition.facts
    graph = facts.graph
    values = escaping(facts, ops)
    readers = {r for i in values for r in facts.readers[i]} - ops
    operands = {i for op in ops for i in graph.ops[op].inputs if i not in ops and graph.ops[i].kind != "constant"}
    if facts.returned & ops or len(ops) > MAX_OPS or len(operands) > MAX_OPERANDS or len(readers) > MAX_CONTRACTIONS:
        return False
    if any(facts.classes[i] is not OpClass.POINTWISE for i in ops):
        return False
    if any(facts.classes[r] not in (OpClass.CONTRACTION, OpClass.REINDEX) for r in readers):
        return False
    if any(family_of(facts, partition.members(partition.atom_of[r])) == ATTENTION for r in readers):
        return False
    seen = {i for r in readers for i in graph.ops[r].inputs if facts.root[i] in ops}
    return all(i in ops or view_axes(graph.ops[i].out, graph.ops[facts.root[i]].out) is not None for i in seen)
