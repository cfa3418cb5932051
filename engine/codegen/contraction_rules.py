"""Which schedules of a contraction can be built (laws, which bind pins too) and which are worth offering."""

from __future__ import annotations

from engine.codegen.contraction_facts import ContractionFacts, Operand, tiles_of
from engine.codegen.contraction_memory import Multiplier, multiplier, pipeline_sizes, scratch_bytes
from engine.codegen.contraction_stores import KNOB as STORES
from engine.codegen.contraction_stores import store_bytes, store_rules
from engine.codegen.dot_rules import (
    SMALLEST_SIDE,
    TILE_ELEMENTS,
    WGMMA_ROWS,
    Check,
    deeper_than_loop,
    descriptor_law,
    precision_law,
    precision_values,
    smallest_tile,
    too_deep_pipeline,
    too_many_accumulators,
    too_much_shared,
    too_wide_block,
    values_up_to,
    wgmma_warps,
)
from engine.codegen.family import Rule, Values
from engine.codegen.vector_rules import is_vector, vector_accumulators, vector_law, vector_rows, vector_warps
from engine.vocabulary import KnobValue, Target

_MOST_ACCUMULATORS = 64
_MOST_WGMMA_ACCUMULATORS = 128
"""Accumulators a thread (of 255 registers) up to which kernels don't spill: a wgmma reads its tiles in shared memory,
the others hold them in registers as well."""
_MOST_GROUPED_ACCUMULATORS = 64
"""The same where groups of columns are reduced or turned, which holds the tile twice."""
_MOST_UNROLLED = 2048
_MOST_SPLIT = 128
_BARRIER_BYTES = 64
"""What TMA's barriers take, at most."""
_CACHED_BYTES = 2**22
"""Operands of this size stay in L2 whatever order the tiles take; from about 9 MB on the order is worth 0.7 us."""
_TILE = ("BLOCK_M", "BLOCK_N", "BLOCK_K")


def offered_values(facts: ContractionFacts) -> dict[str, tuple[KnobValue, ...]]:
    """Values of each knob that fit the extents of the matmul at all."""
    described = any(operand.matrix is not None for operand in facts.operands)
    widest = max(part.n for part in facts.parts)
    return {
        "BLOCK_M": (*vector_rows(facts.m), *values_up_to("BLOCK_M", facts.m)),
        "BLOCK_N": values_up_to("BLOCK_N", widest),
        "BLOCK_K": values_up_to("BLOCK_K", facts.k),
        "PRECISION": precision_values(facts.dtype, facts.allow_tf32),
        "LOADS": ("pointer", "descriptor") if described else ("pointer",),
    }


def contraction_rules(facts: ContractionFacts, target: Target) -> tuple[Rule, ...]:
    """All rules: laws first, each with the knobs that it reads."""
    laws, tastes = _laws(facts, target), _tastes(facts, target)
    return (*laws, *tastes, *store_rules(facts, target))


def _laws(facts: ContractionFacts, target: Target) -> tuple[Rule, ...]:
    return (
        *(Rule((name,), smallest_tile(name)) for name in _TILE[1:]),
        Rule(("BLOCK_M",), _rows(facts)),
        Rule(("BLOCK_M", "PRECISION", "LOADS"), vector_law),
        Rule(_TILE, _tile_limit),
        Rule(("BLOCK_N",), _whole_groups(facts)),
        Rule(("PERSISTENT",), _one_walk(facts)),
        Rule(("PRECISION",), precision_law(facts.dtype, facts.allow_tf32, "matmul")),
        Rule((*_TILE, "LOADS"), descriptor_law(target, _descriptors(facts))),
        Rule((*_TILE, "NUM_WARPS"), _accumulators(facts)),
        Rule(("BLOCK_M", "NUM_STAGES"), _shared_operand(facts)),
        Rule((*_TILE, "PRECISION", "LOADS", "NUM_WARPS", "NUM_STAGES"), _shared(facts, target)),
        Rule(("GROUP_M",), lambda v: None if int(v["GROUP_M"]) >= 1 else "GROUP_M is at least 1."),
    )


def _tile_limit(v: Values) -> str | None:
    m, n, k = int(v["BLOCK_M"]), int(v["BLOCK_N"]), int(v["BLOCK_K"])
    if max(m * n, m * k, k * n) > TILE_ELEMENTS:
        return f"A tile of {m} x {n} x {k} is larger than the {TILE_ELEMENTS} elements that Triton allows a block."
    return None


def _rows(facts: ContractionFacts) -> Check:
    def broken(v: Values) -> str | None:
        m = int(v["BLOCK_M"])
        if m >= SMALLEST_SIDE or 1 <= facts.m <= m:
            return None
        return (
            f"BLOCK_M={m} is below {SMALLEST_SIDE}, the smallest tile of tl.dot, and doesn't hold all {facts.m} rows."
        )

    return broken


def _whole_groups(facts: ContractionFacts) -> Check:
    def broken(v: Values) -> str | None:
        for group in (part.group for part in facts.parts):
            if group and int(v["BLOCK_N"]) % group:
                return f"BLOCK_N={v['BLOCK_N']} cuts groups of {group} columns that are reduced or turned whole."
        return None

    return broken


def _one_walk(facts: ContractionFacts) -> Check:
    def broken(v: Values) -> str | None:
        if v["PERSISTENT"] and facts.beside:
            return f"PERSISTENT walks the tiles of one product, and {len(facts.beside)} of them lie side by side here."
        return None

    return broken


def _descriptors(facts: ContractionFacts) -> Check:
    """For each operand that a descriptor would load."""

    def broken(v: Values) -> str | None:
        found = [o for o in facts.operands if o.matrix is not None]
        if not found:
            return f"LOADS=descriptor has no operand to load: {facts.left.no_matrix}; {facts.right.no_matrix}."
        m, n, k = int(v["BLOCK_M"]), int(v["BLOCK_N"]), int(v["BLOCK_K"])
        for operand in facts.operands:
            reason = _descriptor_block(facts, operand, (m, k) if operand is facts.left else (k, n), k)
            if reason:
                return reason
        return None

    return broken


def _descriptor_block(facts: ContractionFacts, operand: Operand, block: tuple[int, int], k: int) -> str | None:
    matrix = operand.matrix
    if matrix is None:
        return None
    if too_wide := too_wide_block(*block):
        return too_wide
    inner = block[0] if matrix.transposed else block[1]
    if inner * facts.element_bytes < 16:
        return f"A TMA block's rows of {inner} elements are shorter than 16 bytes."
    depth_is_rows = matrix.transposed == (operand is facts.left)
    if matrix.row_digits and depth_is_rows and facts.k % k:
        return f"BLOCK_K={k} doesn't divide {facts.k}, so a TMA block would read rows of the next matrix of the batch."
    return None


def _accumulators(facts: ContractionFacts) -> Check:
    def broken(v: Values) -> str | None:
        each = facts.products * int(v["BLOCK_M"]) * int(v["BLOCK_N"]) // (32 * int(v["NUM_WARPS"]))
        if is_vector(v):
            each = vector_accumulators(facts, v)
        return too_many_accumulators(each)

    return broken


def _shared_operand(facts: ContractionFacts) -> Check:
    def broken(v: Values) -> str | None:
        if not facts.shares_operand or int(v["BLOCK_M"]) < WGMMA_ROWS or int(v["NUM_STAGES"]) == 1:
            return None
        return (
            "One input is multiplied as it is and computed on in the same pipelined loop, which Triton 3.6 compiles to "
            "a race where wgmma reads it; NUM_STAGES=1 or BLOCK_M below 64 is right."
        )

    return broken


def _shared(facts: ContractionFacts, target: Target) -> Check:
    sizes = pipeline_sizes(facts, target, least=True)
    return lambda v: too_deep_pipeline(sizes(v), target)


def _shared_in_all(facts: ContractionFacts, target: Target) -> Check:
    sizes = pipeline_sizes(facts, target)

    def broken(v: Values) -> str | None:
        needed = sizes(v) + scratch_bytes(facts, v, target) + _BARRIER_BYTES
        return too_much_shared(needed, target)

    return broken


def _shared_while_stored(facts: ContractionFacts, target: Target) -> Check:
    """Where TMA stores a tile: beside the pipeline if the next tile's loads are in flight, else in its place."""
    sizes = pipeline_sizes(facts, target)

    def broken(v: Values) -> str | None:
        pipeline, stored = sizes(v), store_bytes(facts, v)
        needed = pipeline + stored if v["PERSISTENT"] else max(pipeline, stored)
        return too_much_shared(needed + _BARRIER_BYTES, target)

    return broken


def _tastes(facts: ContractionFacts, target: Target) -> tuple[Rule, ...]:
    return (
        Rule(("BLOCK_M", "BLOCK_N"), _tile_shape(facts, target), law=False),
        Rule(("BLOCK_M", "BLOCK_K"), _depth(facts), law=False),
        Rule(("BLOCK_M", "BLOCK_N", "GROUP_M", "PERSISTENT"), _raster(facts, target), law=False),
        Rule((*_TILE, "PRECISION", "NUM_WARPS"), _warps(facts, target), law=False),
        Rule(
            (*_TILE, "PRECISION", "LOADS", "PERSISTENT", "NUM_WARPS", "NUM_STAGES"),
            _shared_in_all(facts, target),
            law=False,
        ),
        Rule(
            (*_TILE, "PRECISION", "LOADS", "PERSISTENT", "NUM_WARPS", "NUM_STAGES", STORES),
            _shared_while_stored(facts, target),
            law=False,
        ),
        Rule(("BLOCK_M", "BLOCK_K", "NUM_STAGES"), _stages(facts), law=False),
        Rule((*_TILE, "PRECISION", "NUM_WARPS"), _float32_work(facts), law=False),
    )


def _tile_shape(facts: ContractionFacts, target: Target) -> Check:
    def broken(v: Values) -> str | None:
        m, n = int(v["BLOCK_M"]), int(v["BLOCK_N"])
        if m < min(n // 8, facts.m) or n < min(m // 8, facts.n):
            return f"A tile of {m} x {n} is too narrow to reuse what it loads."
        tiles = tiles_of(facts, m, n)
        if tiles > 64 * target.multiprocessors and m * n < 128 * 128:
            return f"Tiles of {m} x {n} are {tiles} programs, each too small for its cost."
        return None

    return broken


def _depth(facts: ContractionFacts) -> Check:
    def broken(v: Values) -> str | None:
        k = int(v["BLOCK_K"])
        if k * facts.element_bytes < 64 and facts.k * facts.element_bytes >= 256:
            return f"BLOCK_K={k} loads rows shorter than 64 bytes."
        if k >= facts.k > 64 and not is_vector(v):
            return f"BLOCK_K={k} takes all of {facts.k} in one step, which nothing overlaps."
        return None

    return broken


def _raster(facts: ContractionFacts, target: Target) -> Check:
    def broken(v: Values) -> str | None:
        m, n = int(v["BLOCK_M"]), int(v["BLOCK_N"])
        if int(v["GROUP_M"]) > 1 and (facts.m <= m or facts.n <= n):
            return "GROUP_M orders nothing where there is one row or one column of tiles."
        operands = facts.batch * facts.k * (facts.m + facts.products * facts.n) * facts.element_bytes
        if int(v["GROUP_M"]) > 1 and operands <= _CACHED_BYTES:
            return f"GROUP_M saves nothing where both operands, {operands} bytes, stay in L2."
        tiles = tiles_of(facts, m, n)
        if v["PERSISTENT"] and is_vector(v):
            return "PERSISTENT walks tiles one after the other, and a program without a dot has nothing to overlap."
        if v["PERSISTENT"] and tiles <= target.multiprocessors:
            return f"{tiles} tiles leave nothing to walk for {target.multiprocessors} programs."
        return None

    return broken


def _warps(facts: ContractionFacts, target: Target) -> Check:
    def broken(v: Values) -> str | None:
        m, n, warps = int(v["BLOCK_M"]), int(v["BLOCK_N"]), int(v["NUM_WARPS"])
        if is_vector(v):
            return vector_warps(facts, v)
        each = facts.products * m * n // (32 * warps)
        wgmma = multiplier(facts, v, target) is Multiplier.WGMMA
        most = _MOST_WGMMA_ACCUMULATORS if wgmma else _MOST_ACCUMULATORS
        if any(part.group for part in facts.parts):
            most = min(most, _MOST_GROUPED_ACCUMULATORS)
        if each > most:
            return f"{each} accumulators a thread leave no registers for the loads."
        if each < 2 * facts.element_bytes:
            return f"{warps} warps share a tile of {m} x {n}."
        return wgmma_warps(facts.element_bytes, m, warps)

    return broken


def _stages(facts: ContractionFacts) -> Check:
    def broken(v: Values) -> str | None:
        steps = -(-facts.k // int(v["BLOCK_K"]))
        stages = int(v["NUM_STAGES"])
        if deeper := deeper_than_loop(stages, steps):
            return deeper
        raced = facts.shares_operand and int(v["BLOCK_M"]) >= WGMMA_ROWS
        if stages == 1 and steps > 2 and not raced and not is_vector(v):
            return "NUM_STAGES=1 loads and multiplies in turn."
        return None

    return broken


def _float32_work(facts: ContractionFacts) -> Check:
    """Without plain tensor cores registers bound the tile: `ieee` unrolls scalar FMAs, `tf32x3` splits whole tiles."""

    def broken(v: Values) -> str | None:
        m, k, threads = int(v["BLOCK_M"]), int(v["BLOCK_K"]), 32 * int(v["NUM_WARPS"])
        n = facts.products * int(v["BLOCK_N"])
        if facts.dtype == "float32" and v["PRECISION"] == "ieee" and m * n * k // threads > _MOST_UNROLLED:
            return f"{m * n * k // threads} scalar multiplications a thread and step are more than is worth unrolling."
        split = ((m + n) * k + m * n) // threads
        if v["PRECISION"] == "tf32x3" and split > _MOST_SPLIT:
            return f"Splitting its tiles for tf32x3 takes about {split} values a thread."
        return None

    return broken
