"""Rule: the norm and rotation of queries or keys start the attention kernel, or are computed before it.

Inside, they are recomputed on each tile that the kernel loads, and neither their result nor a launch is left. A query
is in one tile only. A key is loaded again for every tile of queries and for every head that shares it, so the rule asks
nothing where a key would be computed more than MAX_REPEATS times: there the work outweighs the launch that it saves
(on an H200 it won at 32 tokens, two heads to a key, and doubled the kernel's time at 512).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.grouping.partition import Facts, Partition, family_of
from engine.grouping.row_scale import row_scalings
from engine.grouping.site import APART, FUSED, Site, context_of
from engine.ir.attention import ATTENTION, AttentionChain, attention_chain, unfit_because
from engine.ir.attention_prologue import KEYS, QUERIES, operand_prologue
from engine.ir.measures import matmul_extents

MAX_REPEATS = 8
TILE_ROWS = 64
"""Queries of a tile that the bound counts with; attention kernels take 16 to 128."""
MAX_OPS = 32
MAX_OPERANDS = 8


@dataclass(frozen=True, slots=True)
class AttentionPrologueRule:
    knob: str = "FUSE_ATTENTION_PROLOGUE"
    answers: tuple[str, str] = (FUSED, APART)

    def sites(self, start: Partition) -> tuple[Site, ...]:
        facts = start.facts
        found = []
        for index in range(len(facts.graph.ops)):
            chain = attention_chain(facts.graph, index)
            if chain is None or unfit_because(facts.graph, chain) is not None:
                continue
            for operand in (QUERIES, KEYS):
                ops = operand_prologue(facts.graph, chain, operand) - facts.generated
                ops = _after_scaling(facts, ops)
                if ops and _is_worth_asking(facts, chain, operand, ops):
                    found.append(Site(ops, context_of(facts, chain.ops | ops)))
        return tuple(found)

    def fused(self, partition: Partition, site: Site) -> Partition | None:
        """Into the attention kernel that reads the site's last op, where that is one kernel."""
        (scores,) = partition.facts.readers[max(site.ops)]
        attention = partition.atom_of[scores]
        if family_of(partition.facts, partition.members(attention)) != ATTENTION:
            return None
        return partition.merged({attention, *(partition.atom_of[i] for i in site.ops)})

    def apart(self, partition: Partition, site: Site) -> Partition:
        return partition


def _after_scaling(facts: Facts, ops: frozenset[int]) -> frozenset[int]:
    """The ops but those that scale the rows of a product, and what these read: the product's kernel stores it scaled,
    in half the bytes, and holds the sums of the rows already."""
    scaled = ops.intersection(row_scalings(facts))
    for index in sorted(ops, reverse=True):
        if index in scaled:
            scaled |= ops.intersection(facts.sources(index))
    return ops - scaled


def _is_worth_asking(facts: Facts, chain: AttentionChain, operand: int, ops: frozenset[int]) -> bool:
    graph = facts.graph
    reads = {facts.root[i] for op in ops for i in graph.ops[op].inputs if graph.ops[i].kind != "constant"}
    if len(ops) > MAX_OPS or len(reads - ops - facts.generated) > MAX_OPERANDS:
        return False
    batch, rows, keys, depth = matmul_extents(graph, graph.ops[chain.scores])
    tiles, read = (1, rows) if operand == QUERIES else (math.ceil(rows / TILE_ROWS), keys)
    repeats = tiles * (batch * read * depth // graph.ops[max(ops)].out.numel)
    return repeats <= MAX_REPEATS
