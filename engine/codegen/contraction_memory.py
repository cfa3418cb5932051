"""Shared memory of a contraction's schedule in bytes, fitted to what Triton 3.6 reports for sm_90."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from itertools import combinations
from operator import itemgetter

from engine.codegen.contraction_facts import ContractionFacts, Operand
from engine.codegen.dot_rules import WGMMA_ROWS
from engine.codegen.family import Values
from engine.codegen.vector_rules import is_vector
from engine.vocabulary import Target

_SIZED = itemgetter("BLOCK_M", "BLOCK_N", "BLOCK_K", "LOADS", "NUM_STAGES")
"""What shared memory depends on, but for the unit that multiplies."""


class Multiplier(Enum):
    """Which unit multiplies a tile, as Triton 3.6 chooses it."""

    FMA = "fma"
    MMA_SYNC = "mma.sync"
    WGMMA = "wgmma"


def multiplier(facts: ContractionFacts, v: Values, target: Target) -> Multiplier:
    """wgmma needs sm_90, 64 rows and groups of four warps; `ieee` products of float32 have no tensor core."""
    if is_vector(v):
        return Multiplier.FMA
    if facts.dtype == "float32" and v["PRECISION"] == "ieee":
        return Multiplier.FMA
    groups = int(v["BLOCK_M"]) >= WGMMA_ROWS and int(v["NUM_WARPS"]) % 4 == 0
    return Multiplier.WGMMA if groups and target.capability // 10 == 9 else Multiplier.MMA_SYNC


def pipeline_bytes(facts: ContractionFacts, v: Values, target: Target, *, least: bool = False) -> int:
    """Shared memory of the main loop in bytes: a buffer a stage for wgmma, which reads it there, else one less.

    tf32 wgmma takes its left tile through registers and keeps a turned copy of the right one; scalar FMAs turn a tile
    that TMA loads the other way round. With `least`, only what is certain: tiles that are loaded in 16-byte pieces and
    multiplied as they are.
    """
    k, stages = int(v["BLOCK_K"]), int(v["NUM_STAGES"])
    unit = multiplier(facts, v, target)
    tf32 = unit is Multiplier.WGMMA and facts.element_bytes == 4
    total, turned = 0, 0
    rights = ((right, int(v["BLOCK_N"])) for right in facts.rights)
    for operand, extent in ((facts.left, int(v["BLOCK_M"])), *rights):
        if least and operand.matrix is None:
            continue
        buffers = stages if unit is Multiplier.WGMMA else stages - 1
        if tf32:
            buffers += -1 if operand is facts.left else 0 if least else 1
        tile = extent * k * facts.element_bytes
        total += max(buffers, 0) * (tile if operand.source is not None else _streamed(facts, operand, extent, k))
        if operand.source is None and unit is Multiplier.MMA_SYNC:
            total += tile
        if v["LOADS"] == "descriptor" and operand.matrix is not None and operand.matrix.transposed:
            turned = max(turned, tile)
    if least:
        return total
    copies = 2 if _doubled(facts, described=v["LOADS"] == "descriptor") else 1
    return copies * (total + turned if unit is Multiplier.FMA else total)


def pipeline_sizes(facts: ContractionFacts, target: Target, *, least: bool = False) -> Callable[[Values], int]:
    """`pipeline_bytes` for one contraction, worked out once for values that differ in nothing that it reads."""
    known: dict[tuple[object, ...], int] = {}

    def sizes(v: Values) -> int:
        key = (*_SIZED(v), multiplier(facts, v, target).value)
        size = known.get(key)
        if size is None:
            size = known[key] = pipeline_bytes(facts, v, target, least=least)
        return size

    return sizes


def _streamed(facts: ContractionFacts, operand: Operand, extent: int, k: int) -> int:
    """Bytes of a step's loads for a computed tile: inputs as large as the operand, and those as long as the depth."""
    total = 0
    for spec in (facts.body.ops[index].out for index in operand.read):
        whole = spec.numel >= operand.extents[0] * operand.extents[1]
        total += k * spec.element_bytes * (extent if whole else 1 if spec.numel >= facts.k else 0)
    return total


def _doubled(facts: ContractionFacts, *, described: bool) -> bool:
    """Whether products side by side have loops of their own, two of which the compiler makes one with both buffers.

    All have one loop where their loops are the same text (see `side_by_side`). Where they aren't, two of them may still
    differ in nothing but operands: those of one width, or through descriptors, which hold the width, of any width.
    """
    plain = [part for part in facts.parts if not part.group]
    together = facts.batch == 1 and len({_loop(part, described=described) for part in facts.parts}) == 1
    if together and all(len(part.rights) == 1 for part in facts.parts):
        return False
    for one, other in combinations(plain, 2):
        operands = (facts.left, *one.rights, *other.rights)
        same = described and all(operand.matrix is not None for operand in operands)
        if len(one.rights) == len(other.rights) and (same or (one.n == other.n and facts.batch == 1)):
            return True
    return False


def _loop(part: ContractionFacts, *, described: bool) -> tuple[bool, int]:
    """What tells the loops of products of one left operand apart: how the right matrix lies, and its row stride."""
    matrix = part.right.matrix
    if matrix is None:
        return False, part.n
    return matrix.transposed, 0 if described else matrix.strides[0]


def scratch_bytes(facts: ContractionFacts, v: Values, target: Target) -> int:
    """Shared memory in bytes where a persistent kernel turns an output tile while the next one's loads are in flight.

    An upper bound, which wgmma tiles of 16-bit outputs mostly reach; fitted like `pipeline_bytes`.
    """
    if not v["PERSISTENT"]:
        return 0
    widest = max(output.spec.element_bytes for output in facts.outputs)
    if multiplier(facts, v, target) is not Multiplier.WGMMA:
        return int(v["BLOCK_M"]) * int(v["BLOCK_N"]) * widest
    return min(int(v["BLOCK_M"]), 16 * int(v["NUM_WARPS"])) * min(int(v["BLOCK_N"]), 128) * widest
