"""The start of every path: each contraction and each reduction alone, each chain of pointwise ops one atom.

A chain never crosses the border of a reduction chain (engine.grouping.rowwise), so that a rule can fuse
the chain as a whole, and what follows it remains a question of its own. So does what follows the scaling of the rows of
a wide product: scaled where it is computed, the product is stored in half the bytes, whoever reads it.
"""

from __future__ import annotations

from dataclasses import replace

from engine.grouping.partition import Facts, Partition
from engine.grouping.row_scale import row_scalings


def start_partition(facts: Facts, chains: tuple[frozenset[int], ...]) -> Partition:
    """The finest partition in which pointwise ops that feed each other directly are together where that is legal."""
    room = {op: -1 - op for op in row_scalings(facts)}
    room.update({op: number for number, chain in enumerate(chains) for op in chain})
    return merge_pointwise(replace(Partition.finest(facts), chains=chains), room)


def merge_pointwise(partition: Partition, room: dict[int, int]) -> Partition:
    """Merge pointwise atoms that read each other, within one room (ops without one share a room), until none is left.

    A second pass helps where a small value has several readers: it may only join them once they are together.
    """
    facts = partition.facts
    changed = True
    while changed:
        changed = False
        for index, op in enumerate(facts.graph.ops):
            if not _is_alone(partition, index):
                continue
            for source in op.inputs:
                left, right = partition.atom_of[source], partition.atom_of[index]
                if left == right or room.get(source) != room.get(index) or not _is_alone(partition, source):
                    continue
                merged = partition.merged((left, right))
                if merged is not None:
                    partition, changed = merged, True
    return partition


def _is_alone(partition: Partition, index: int) -> bool:
    """Whether the op is pointwise, or re-reads memory, and so are all of its atom."""
    facts, atom = partition.facts, partition.atom_of[index]
    if not facts.is_elementwise(index) or atom in partition.inlined:
        return False
    return all(facts.is_elementwise(i) for i in partition.members(atom))
