"""Rule: scores, softmax and weighted values as one attention kernel, or each apart.

Fused, scores and weights never leave the chip. The copy that puts the heads of the result beside each other goes along:
an attention kernel stores in any order at the same cost. Apart, the parts are matmuls and a softmax like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.grouping.families import reordering_copy
from engine.grouping.partition import Facts, Partition
from engine.grouping.site import APART, FUSED, Site, context_of
from engine.ir.attention import AttentionChain, attention_chain, unfit_because


@dataclass(frozen=True, slots=True)
class AttentionRule:
    knob: str = "FUSE_ATTENTION"
    answers: tuple[str, str] = (FUSED, APART)

    def sites(self, start: Partition) -> tuple[Site, ...]:
        facts = start.facts
        chains = [_chain(facts, index) for index in range(len(facts.graph.ops))]
        return tuple(Site(chain.ops, context_of(facts, chain.ops)) for chain in chains if chain is not None)

    def fused(self, partition: Partition, site: Site) -> Partition | None:
        atoms = {partition.atom_of[i] for i in site.ops}
        copies = reordering_copy(partition.facts.graph, partition.facts.root, max(site.ops))
        with_copy = partition.merged(atoms | {partition.atom_of[i] for i in copies}) if copies else None
        return with_copy or partition.merged(atoms)

    def apart(self, partition: Partition, site: Site) -> Partition:
        return replace(partition, apart=partition.apart | {site.ops})


def _chain(facts: Facts, index: int) -> AttentionChain | None:
    """The chain that ends in op `index`, if an attention kernel can hold it at all."""
    chain = attention_chain(facts.graph, index)
    return chain if chain is not None and unfit_because(facts.graph, chain) is None else None
