"""Rules: matmuls of one left operand as one kernel, or each apart.

Those of equal extents share a program that loads the left operand once. Merged, what combines their results (a gate)
may end the kernel, since it holds both. Apart is the first answer: every sibling then has the registers to itself.
Those of unequal widths (queries, keys and values) lie side by side in one launch, which fills the GPU where each alone
leaves a part of it idle; each has its own tiles, and its own epilogue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.grouping.partition import Facts, Partition
from engine.grouping.site import APART, MERGED, Site, context_of
from engine.ir.graph import Graph
from engine.ir.ops import OpClass
from engine.ir.siblings import MAX_SIBLINGS, are_beside, are_siblings


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


@dataclass(frozen=True, slots=True)
class SideBySideRule(SiblingRule):
    """Asked before the siblings of equal extents: where this one merges, there is nothing left to ask of them."""

    knob: str = "SIDE_BY_SIDE"
    answers: tuple[str, str] = (MERGED, APART)

    def sites(self, start: Partition) -> tuple[Site, ...]:
        graph = start.facts.graph
        found = []
        for ops in _matmuls_of_one_operand(start.facts, are_beside):
            first = min(ops)
            if not all(are_siblings(graph, first, i) for i in ops - {first}):
                found.append(Site(ops, context_of(start.facts, ops)))
        return tuple(found)


def sibling_matmuls(facts: Facts) -> tuple[frozenset[int], ...]:
    """Disjoint sets of matmuls of equal extents that one kernel could compute, in the graph's order."""
    return _matmuls_of_one_operand(facts, are_siblings)


def _matmuls_of_one_operand(facts: Facts, alike: Callable[[Graph, int, int], bool]) -> tuple[frozenset[int], ...]:
    groups: list[list[int]] = []
    for index, kind in enumerate(facts.classes):
        if kind is not OpClass.CONTRACTION:
            continue
        for group in groups:
            if len(group) < MAX_SIBLINGS and alike(facts.graph, group[0], index):
                group.append(index)
                break
        else:
            groups.append([index])
    return tuple(frozenset(group) for group in groups if len(group) > 1)
