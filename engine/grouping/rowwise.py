"""Rule: the reductions of a softmax or a norm and what ties them together, as one rowwise kernel or each apart.

A chain is found by its source: reductions over the same axes whose inputs are computed from one full-size value
belong together. It holds the ops between source and reductions, those that combine a reduced value with the source
again, and the affine tail of a norm. An op that only changes the source itself (an activation before a
softmax) stays outside, because it may as well end the kernel before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.grouping.partition import Facts, Partition, family_of
from engine.grouping.site import APART, FUSED, Site, context_of
from engine.ir.ops import OpClass

_TAIL = frozenset({"add", "sub", "mul", "div"})


@dataclass(frozen=True, slots=True)
class RowwiseRule:
    knob: str = "FUSE_ROWWISE"
    answers: tuple[str, str] = (FUSED, APART)

    def sites(self, start: Partition) -> tuple[Site, ...]:
        return tuple(Site(chain, context_of(start.facts, chain)) for chain in start.chains)

    def fused(self, partition: Partition, site: Site) -> Partition | None:
        return partition.merged({partition.atom_of[i] for i in site.ops})

    def apart(self, partition: Partition, site: Site) -> Partition:
        return replace(partition, apart=partition.apart | {site.ops})


def reduction_chains(facts: Facts) -> tuple[frozenset[int], ...]:
    """Disjoint sets of ops, in order, each of which is one legal rowwise kernel of at least two ops."""
    traces: dict[tuple[int, str], list[tuple[int, list[int]]]] = {}
    for index, kind in enumerate(facts.classes):
        if kind is OpClass.REDUCTION:
            source, between = _trace(facts, index)
            space, axes = facts.shape(facts.graph.ops[index].inputs[0]), facts.graph.ops[index].attribute("axes")
            traces.setdefault((source, f"{space} {axes}"), []).append((index, between))
    finest = Partition.finest(facts)
    taken: set[int] = set()
    chains: list[frozenset[int]] = []
    for (source, _), members in traces.items():
        reductions = {index for index, _ in members}
        opening = {op for _, between in members for op in between}
        closing = _closing(facts, reductions, opening, source)
        for candidate in (reductions | opening | closing, reductions | opening):
            chain = frozenset(_without_openers(facts, candidate, source) - taken)
            if _is_one_kernel(finest, chain):
                chains.append(chain)
                taken |= chain
                break
    return tuple(sorted(chains, key=min))


def _trace(facts: Facts, reduction: int) -> tuple[int, list[int]]:
    """Walk back from a reduction while an op has one full-size operand: where the walk ends, and the ops walked."""
    space = facts.shape(facts.graph.ops[reduction].inputs[0])
    value = facts.graph.ops[reduction].inputs[0]
    walked: list[int] = []
    while facts.is_pointwise(value):
        inputs = facts.graph.ops[value].inputs
        full = {i for i in inputs if facts.shape(i) == space and i not in facts.generated}
        if len(full) != 1:
            break
        walked.append(value)
        value = full.pop()
    return value, walked


def _closing(facts: Facts, reductions: set[int], opening: set[int], source: int) -> set[int]:
    """Ops after the reductions that combine their results with the source, and an affine tail."""
    ops = facts.graph.ops
    first = min(reductions)
    space, reduced = facts.shape(ops[first].inputs[0]), facts.shape(first)
    derived = set(reductions)
    found: set[int] = set()
    for index in range(first + 1, len(ops)):
        if not facts.is_pointwise(index):
            continue
        operands = {i for i in ops[index].inputs if ops[i].kind != "constant" and i not in facts.generated}
        known = operands & derived
        if index in opening:
            derived |= {index} if known else set()
            continue
        full = {i for i in operands if facts.shape(i) == space}
        others = operands - full - derived
        if not known or not full <= derived | opening | {source}:
            continue
        if facts.shape(index) == reduced:
            belongs = not others
        else:
            is_tail = ops[index].kind == "cast" or (ops[index].kind in _TAIL and len(others) == 1)
            belongs = facts.shape(index) == space and (bool(known - full) or is_tail)
        if belongs and all(_is_row_vector(facts, i, space, reduced) for i in others):
            found.add(index)
            derived.add(index)
    return found


def _is_row_vector(facts: Facts, index: int, space: tuple[int, ...], reduced: tuple[int, ...]) -> bool:
    """Whether a value is the same for every row: a norm's weight or bias."""
    shape = facts.shape(index)
    lead = [i for i in range(len(space)) if reduced[i] == space[i] and space[i] != 1]
    shift = len(space) - len(shape)
    return shift >= 0 and all(i < shift or shape[i - shift] == 1 for i in lead)


def _without_openers(facts: Facts, chain: set[int], source: int) -> set[int]:
    """Leave out leading ops that alone read the source and don't widen it: they are a prologue, not the chain."""
    ops = facts.graph.ops
    chain = set(chain)
    while True:
        readers = [i for i in chain if source in ops[i].inputs]
        if len(readers) != 1 or not facts.is_pointwise(readers[0]) or len(chain) == 1:
            return chain
        opener = readers[0]
        if ops[opener].out.element_bytes > ops[source].out.element_bytes:
            return chain
        if any(i in chain for i in ops[opener].inputs):
            return chain
        chain.remove(opener)
        source = opener


def _is_one_kernel(finest: Partition, chain: frozenset[int]) -> bool:
    return len(chain) > 1 and family_of(finest.facts, chain) == "rowwise" and finest.merged(chain) is not None
