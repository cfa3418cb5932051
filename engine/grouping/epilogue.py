"""Rule: a pointwise chain that reads a contraction's or a rowwise kernel's result ends that kernel, or stands apart."""

from __future__ import annotations

from dataclasses import dataclass

from engine.grouping.partition import Facts, Partition
from engine.grouping.site import APART, FUSED, Site, context_of


@dataclass(frozen=True, slots=True)
class EpilogueRule:
    knob: str = "FUSE_EPILOGUE"
    answers: tuple[str, str] = (FUSED, APART)

    def sites(self, start: Partition) -> tuple[Site, ...]:
        facts = start.facts
        found = []
        for ops in pointwise_chains(start):
            sources = frozenset(s for i in ops for s in facts.sources(i)) - ops
            if sources:
                found.append(Site(ops, context_of(facts, ops | sources)))
        return tuple(found)

    def fused(self, partition: Partition, site: Site) -> Partition | None:
        """Into the latest kernel it reads that can take it: what came before is in memory by then."""
        atom = lone_atom(partition, site.ops)
        if atom is None:
            return None
        producers = [a for a in partition.producers(atom) if not is_pointwise(partition, a)]
        for producer in sorted(producers, key=lambda a: max(partition.members(a)), reverse=True):
            merged = partition.merged((atom, producer))
            if merged is not None:
                return merged
        return None

    def apart(self, partition: Partition, site: Site) -> Partition:
        return partition


def pointwise_chains(start: Partition) -> tuple[frozenset[int], ...]:
    """The atoms of the start that hold pointwise ops only, or start with what re-reads memory, in the graph's order."""
    atoms = dict.fromkeys(atom for i, atom in enumerate(start.atom_of) if start.facts.is_elementwise(i))
    return tuple(start.members(atom) for atom in atoms)


def lone_atom(partition: Partition, ops: frozenset[int]) -> int | None:
    """The atom that holds exactly these ops and is a kernel of its own, or None."""
    atom = partition.atom_of[min(ops)]
    return atom if partition.members(atom) == ops and atom not in partition.inlined else None


def is_pointwise(partition: Partition, atom: int) -> bool:
    facts: Facts = partition.facts
    return all(facts.is_elementwise(i) for i in partition.members(atom))
