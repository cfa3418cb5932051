"""Rules: what reads a contraction's or a rowwise kernel's result ends that kernel, or stands apart.

A pointwise chain may end either. A reduction over groups of columns (the norm of each head, partial sums of a row) may
end a contraction, with what leads to it and what is computed from it as far as one kernel can.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.grouping.partition import Facts, Partition
from engine.grouping.site import APART, FUSED, Site, context_of
from engine.ir.ops import OpClass


@dataclass(frozen=True, slots=True)
class EpilogueRule:
    knob: str = "FUSE_EPILOGUE"
    answers: tuple[str, str] = (FUSED, APART)

    def sites(self, start: Partition) -> tuple[Site, ...]:
        """In the order in which the chains end: what a chain reads of others is settled before it."""
        facts = start.facts
        found = []
        for ops in sorted(pointwise_chains(start), key=max):
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


@dataclass(frozen=True, slots=True)
class GroupEpilogueRule:
    knob: str = "FUSE_GROUPS"
    answers: tuple[str, str] = (FUSED, APART)

    def sites(self, start: Partition) -> tuple[Site, ...]:
        return reduction_sites(start)

    def fused(self, partition: Partition, site: Site) -> Partition | None:
        """The reduction with the pointwise chains before it and the latest matmul that they read, then what is behind.

        The walk up ends where a matmul is: what lies above it, or beside it, is in memory when that matmul runs. So a
        residual that runs through all layers is read and not followed.
        """
        atoms = {partition.atom_of[i] for i in site.ops}
        if any(_contracts(partition, atom) for atom in atoms):
            return None
        while True:
            before = {p for atom in atoms for p in partition.producers(atom)} - atoms
            contractions = [atom for atom in before if _contracts(partition, atom)]
            pointwise = {atom for atom in before if is_pointwise(partition, atom)}
            if contractions or not pointwise:
                break
            atoms |= pointwise
        if not contractions:
            return None
        latest = max(contractions, key=lambda atom: max(partition.members(atom)))
        merged = partition.merged({*atoms, latest})
        return None if merged is None else _with_chains_behind(merged, merged.atom_of[min(site.ops)])

    def apart(self, partition: Partition, site: Site) -> Partition:
        return partition


def reduction_sites(start: Partition) -> tuple[Site, ...]:
    """Each reduction, with the chain that it belongs to, in the graph's order."""
    facts = start.facts
    chained = frozenset().union(*start.chains)
    alone = [frozenset({i}) for i in range(len(facts.classes)) if _reduces(facts, i) and i not in chained]
    found = []
    for ops in sorted((*start.chains, *alone), key=min):
        sources = frozenset(s for i in ops for s in facts.sources(i)) - ops
        found.append(Site(ops, context_of(facts, ops | sources)))
    return tuple(found)


def _with_chains_behind(partition: Partition, atom: int) -> Partition:
    """The atom with every pointwise atom that reads it and that can join it, one after the other."""
    behind = [reader for reader in partition.consumers(atom) if is_pointwise(partition, reader)]
    for reader in behind:
        merged = partition.merged((atom, reader))
        if merged is not None:
            return _with_chains_behind(merged, merged.atom_of[atom])
    return partition


def _contracts(partition: Partition, atom: int) -> bool:
    facts = partition.facts
    return any(facts.classes[i] is OpClass.CONTRACTION for i in partition.members(atom))


def _reduces(facts: Facts, index: int) -> bool:
    return facts.computes(index) and facts.classes[index] is OpClass.REDUCTION


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
