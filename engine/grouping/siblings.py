"""Rule: matmuls of one left operand and equal extents as one kernel that loads it once, or each apart.

Merged, what combines their results (a gate) may end the kernel, since it holds both. Apart is the first answer:
every sibling then has the registers to itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.grouping.partition import Facts, Partition
from engine.grouping.site import APART, MERGED, Site, context_of
from engine.ir.ops import OpClass
from engine.ir.siblings import MAX_SIBLINGS, are_siblings


@dataclass(frozen=True, slots=True)
class SiblingRule:
    knob: str = "MERGE_SIBLINGS"
    answers: tuple[str, str] = (APART, MERGED)

    def sites(self, start: Partition) -> tuple[Site, ...]:
        return tuple(Site(ops, context_of(start.facts, ops)) for ops in sibling_matmuls(start.facts))

    def fused(self, partition: Partition, site: Site) -> Partition | None:
        return partition.merged({partition.atom_of[i] for i in site.ops})

    def apart(self, partition: Partition, site: Site) -> Partition:
        return partition


def sibling_matmuls(facts: Facts) -> tuple[frozenset[int], ...]:
    """Disjoint sets of matmuls that one kernel could compute, in the graph's order."""
    groups: list[list[int]] = []
    for index, kind in enumerate(facts.classes):
        if kind is not OpClass.CONTRACTION:
            continue
        for group in groups:
            if len(group) < MAX_SIBLINGS and are_siblings(facts.graph, group[0], index):
                group.append(index)
                break
        else:
            groups.append([index])
    return tuple(frozenset(group) for group in groups if len(group) > 1)
