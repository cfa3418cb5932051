"""Which ops share a launch: a partition of a graph's ops into atoms, and whether two atoms may become one.

Inputs, constants, generated values and views belong to no atom: constants and what is computed from positions alone
are written into each body that reads them, and a view re-reads a buffer, so no atom may read its own result through
a view. Every atom is one legal kernel at any time,
and the atoms never depend on each other in a circle, so that every partition is a grouping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from engine.grouping.families import family_of_ops
from engine.grouping.generated import generated_ops
from engine.ir.graph import Graph
from engine.ir.ops import OP_CLASS, OpClass
from engine.ir.views import storage_roots

NOT_COMPUTING = frozenset({OpClass.INPUT, OpClass.CONSTANT, OpClass.VIEW})


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules ask of a graph, computed once.

    `root[i]` is the op whose storage op i reads (itself, unless it is a view). `reads[i]` are the inputs of op i.
    `readers[i]` are the computing ops that read the value of op i, directly or through views. `returned` are the
    roots of the graph's outputs. `generated` are the ops that every reader computes from positions for itself.
    `families` remembers what `family_of` found: the paths of one graph ask of the same sets again and again.
    """

    graph: Graph
    classes: tuple[OpClass, ...]
    root: tuple[int, ...]
    readers: tuple[tuple[int, ...], ...]
    returned: frozenset[int]
    generated: frozenset[int]
    families: dict[frozenset[int], str | None] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, graph: Graph) -> Facts:
        """The facts of a graph, remembered: each rewrite asks for them, and so does what follows it."""
        return _facts_of(graph)

    @classmethod
    def read(cls, graph: Graph) -> Facts:
        classes = tuple(OP_CLASS[op.kind] for op in graph.ops)
        root = storage_roots(graph)
        returned = frozenset(root[i] for i in graph.outputs)
        generated = generated_ops(graph, returned)
        readers: list[list[int]] = [[] for _ in graph.ops]
        for index, op in enumerate(graph.ops):
            if classes[index] not in NOT_COMPUTING and index not in generated:
                for source in dict.fromkeys(root[i] for i in op.inputs):
                    readers[source].append(index)
        return cls(graph, classes, root, tuple(map(tuple, readers)), returned, generated)

    def shape(self, index: int) -> tuple[int, ...]:
        return self.graph.ops[index].out.shape

    def computes(self, index: int) -> bool:
        return self.classes[index] not in NOT_COMPUTING and index not in self.generated

    def is_pointwise(self, index: int) -> bool:
        """Whether the op computes each element of its result from elements in the same place."""
        return self.classes[index] is OpClass.POINTWISE and index not in self.generated

    def is_elementwise(self, index: int) -> bool:
        """Whether a chain of pointwise ops may hold the op: one that re-reads its inputs elsewhere may start it."""
        return self.is_pointwise(index) or (
            self.classes[index] in (OpClass.REINDEX, OpClass.GENERATOR) and index not in self.generated
        )

    def sources(self, index: int) -> tuple[int, ...]:
        """Roots of the computing ops whose values op `index` reads."""
        roots = dict.fromkeys(self.root[i] for i in self.graph.ops[index].inputs)
        return tuple(i for i in roots if self.computes(i))


@dataclass(frozen=True, slots=True)
class Partition:
    """`atom_of[i]` is the atom of op i (its smallest op index), or -1; `groups` holds each atom's ops.

    Atoms in `inlined` are recomputed by each of their readers and are no kernels. Sets of ops in `apart` were
    decided not to be one kernel, and no later merge brings a whole set together. `chains` are the reduction chains,
    whose borders no atom of the start crosses.
    """

    facts: Facts
    atom_of: tuple[int, ...]
    groups: Mapping[int, frozenset[int]]
    inlined: frozenset[int] = frozenset()
    apart: frozenset[frozenset[int]] = frozenset()
    chains: tuple[frozenset[int], ...] = ()

    @classmethod
    def finest(cls, facts: Facts) -> Partition:
        atom_of = tuple(i if facts.computes(i) else -1 for i in range(len(facts.classes)))
        return cls(facts, atom_of, {i: frozenset((i,)) for i in atom_of if i >= 0})

    def members(self, *atoms: int) -> frozenset[int]:
        if len(atoms) == 1:
            return self.groups[atoms[0]]
        return frozenset().union(*(self.groups[atom] for atom in atoms))

    def merged(self, atoms: Iterable[int]) -> Partition | None:
        """These atoms as one, or None when that is no legal kernel or would close a circle."""
        chosen = set(atoms)
        members = self.members(*chosen)
        if len(chosen) < 2 or chosen & self.inlined or family_of(self.facts, members) is None:
            return None
        if any(ops <= members for ops in self.apart) or self._closes_a_circle(chosen, members):
            return None
        name = min(chosen)
        groups, atom_of = dict(self.groups), list(self.atom_of)
        for atom in chosen:
            del groups[atom]
        groups[name] = members
        for index in members:
            atom_of[index] = name
        return replace(self, atom_of=tuple(atom_of), groups=groups)

    def consumers(self, atom: int) -> tuple[int, ...]:
        """Atoms that read a value of `atom`, in order of first use."""
        readers = sorted(r for i in self.members(atom) for r in self.facts.readers[i])
        return tuple(a for a in dict.fromkeys(self.atom_of[r] for r in readers) if a != atom)

    def producers(self, atom: int) -> tuple[int, ...]:
        """Atoms whose values `atom` reads, in order."""
        sources = sorted(s for i in self.members(atom) for s in self.facts.sources(i))
        return tuple(a for a in dict.fromkeys(self.atom_of[s] for s in sources) if a != atom)

    def _closes_a_circle(self, chosen: set[int], members: frozenset[int]) -> bool:
        """Whether a path leaves the chosen atoms and comes back to them."""
        if len(chosen) == 2:
            for first, second in (sorted(chosen), sorted(chosen, reverse=True)):
                producers = self.producers(second)
                if first in producers and (producers == (first,) or self.consumers(first) == (second,)):
                    return False
        seen = set(chosen)
        stack = [self.atom_of[r] for i in members for r in self.facts.readers[i] if self.atom_of[r] not in chosen]
        while stack:
            atom = stack.pop()
            if atom in seen:
                continue
            seen.add(atom)
            for reader in (r for i in self.groups[atom] for r in self.facts.readers[i]):
                if self.atom_of[reader] in chosen:
                    return True
                stack.append(self.atom_of[reader])
        return False


def escaping(facts: Facts, members: frozenset[int]) -> tuple[int, ...]:
    """Ops among `members` whose values somebody else needs, in order."""
    return tuple(i for i in sorted(members) if i in facts.returned or any(r not in members for r in facts.readers[i]))


def family_of(facts: Facts, members: frozenset[int]) -> str | None:
    """The family that generates these ops as one kernel, or None when none does."""
    if members not in facts.families:
        facts.families[members] = family_of_ops(facts.graph, facts.root, members, escaping(facts, members))
    return facts.families[members]


@lru_cache(maxsize=16)
def _facts_of(graph: Graph) -> Facts:
    return Facts.read(graph)
