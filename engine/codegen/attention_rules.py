"""Which schedules of an attention kernel can be built (laws, which bind pins too) and which are worth offering."""

from __future__ import annotations

from engine.codegen.attention_facts import AttentionFacts
from engine.codegen.attention_overlap import overlap_rules
from engine.codegen.dot_rules import (
    SMALLEST_SIDE,
    TILE_ELEMENTS,
    TMA_SIDE,
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
    values_up_to,
    wgmma_warps,
)
from engine.codegen.family import Rule, Values
from engine.vocabulary import KnobValue, Target

_TILE = ("BLOCK_M", "BLOCK_N")
_MOST_BLOCK = 128
"""Larger blocks of queries or keys leave no registers for the weights beside the accumulators."""
_MOST_OF_A_THREAD = 176
_MOST_MMA_OF_A_THREAD = 128
"""Scores, accumulators and addresses a thread up to which kernels don't spill (ptxas, sm_90)."""
_MOST_OF_TWO_TILES = 192
"""The same for two tiles of queries, of which only one has weights at a time."""
_MOST_COMPUTED_OF_A_THREAD = 64
"""Elements of a computed tile a thread up to which a norm and a rotation of it don't spill (ptxas, sm_90)."""
_MOST_UNROLLED = 1024
_FEWEST_KEYS = 32
"""Keys a step from which on a product of two tiles is worth overlapping."""
_MANY_KEYS = 1024
"""From so many keys on a program's loop is long beside its start and its end."""


def offered_values(facts: AttentionFacts) -> dict[str, tuple[KnobValue, ...]]:
    """Values of each knob that fit the extents at all."""
    described = any(loaded.rows is not None for loaded in (facts.query, facts.key, facts.value))
    return {
        "BLOCK_M": values_up_to("BLOCK_M", facts.rows),
        "BLOCK_N": values_up_to("BLOCK_N", facts.keys),
        "PRECISION": precision_values(facts.dtype, facts.allow_tf32),
        "LOADS": ("pointer", "descriptor") if described else ("pointer",),
        "MASK": ("every", "cut") if _may_cut(facts) else ("every",),
        "QUERY_TILES": (1, 2) if _may_have_two_tiles(facts) else (1,),
    }


def attention_rules(facts: AttentionFacts, target: Target) -> tuple[Rule, ...]:
    """All rules: laws first, each with the knobs that it reads. A rule that reads a knob which is not asked for here
    would never be asked, so the number of tiles is among a rule's knobs only where it is."""
    tiles = ("QUERY_TILES",) if _may_have_two_tiles(facts) else ()
    masks = ("MASK",) if _may_cut(facts) else ()
    return (
        *overlap_rules(facts, target, (*masks, *tiles)),
        *(Rule((name,), smallest_tile(name)) for name in _TILE),
        Rule(_TILE, _tile_limit(facts)),
        Rule(("PRECISION",), precision_law(facts.dtype, facts.allow_tf32, "attention")),
        Rule((*_TILE, "LOADS", *tiles), descriptor_law(target, _descriptors(facts))),
        Rule((*_TILE, "NUM_WARPS"), _accumulators(facts)),
        Rule(("BLOCK_N", "NUM_STAGES"), _shared(facts, target)),
        Rule(("BLOCK_N", "MASK"), _mask(facts)),
        Rule((*_TILE, "QUERY_TILES"), _query_tiles(facts)),
        Rule((*_TILE, "PRECISION", "LOADS", "NUM_WARPS", *tiles), _warps(facts, target), law=False),
        Rule((*_TILE, "NUM_STAGES"), _shared_in_all(facts, target), law=False),
        Rule(("BLOCK_N", "NUM_STAGES"), _stages(facts), law=False),
        Rule((*_TILE, "PRECISION", "NUM_WARPS"), _float32_work(facts), law=False),
        Rule((*_TILE, "NUM_WARPS"), _computed_tiles(facts), law=False),
        Rule((*_TILE, "PRECISION", "NUM_WARPS", "QUERY_TILES"), _query_tiles_pay(facts, target), law=False),
    )


def _may_cut(facts: AttentionFacts) -> bool:
    """Whether the mask is asked for: a causal one, and a program's loop is long."""
    return facts.diagonal and facts.keys >= _MANY_KEYS


def _may_have_two_tiles(facts: AttentionFacts) -> bool:
    """Whether two tiles of queries are asked for: long loops over keys, of operands that wgmma multiplies as loaded.

    At 4x16x2048x128 (bf16, H200) the best of them takes 273 us and the best of one tile 283; under a causal mask it was
    184 against 162, so masks are for one tile.
    """
    loaded = not facts.query.computed and not facts.key.computed and facts.element_bytes == 2
    return loaded and facts.unmasked and min(facts.rows, facts.keys) >= _MANY_KEYS


def stage_bytes(facts: AttentionFacts, v: Values, *, least: bool = False) -> int:
    """Shared memory of one stage: a block of keys and one of values; of computed keys, all that they are computed from,
    or at `least` nothing, since how far Triton pipelines those loads is its own choice."""
    key = facts.depth_block * facts.element_bytes
    if facts.key.computed:
        key = 0 if least else facts.depth_block * facts.key.streamed_bytes
    return int(v["BLOCK_N"]) * (key + facts.width_block * facts.element_bytes)


def _tile_limit(facts: AttentionFacts) -> Check:
    def broken(v: Values) -> str | None:
        m, n = int(v["BLOCK_M"]), int(v["BLOCK_N"])
        widest = max(facts.depth_block, facts.width_block)
        if max(m * n, m * widest, n * widest) > TILE_ELEMENTS:
            return f"A tile of {m} x {n} x {widest} is larger than the {TILE_ELEMENTS} elements of a Triton block."
        return None

    return broken


def _descriptors(facts: AttentionFacts) -> Check:
    """For each operand that a descriptor would load."""

    def broken(v: Values) -> str | None:
        if all(loaded.rows is None for loaded in (facts.query, facts.key, facts.value)):
            return f"LOADS=descriptor has no operand to load: {facts.query.no_rows}; {facts.key.no_rows}."
        n = int(v["BLOCK_N"])
        if max(_tile_rows(v), n) > TMA_SIDE:
            return f"A TMA block has at most {TMA_SIDE} elements along an axis."
        joined = any(loaded.rows is not None and loaded.rows.row_digits for loaded in (facts.key, facts.value))
        if joined and facts.keys % n:
            return f"BLOCK_N={n} doesn't divide {facts.keys}, so a TMA block would read keys of the next head."
        return None

    return broken


def _accumulators(facts: AttentionFacts) -> Check:
    def broken(v: Values) -> str | None:
        each = int(v["BLOCK_M"]) * facts.width_block // (32 * int(v["NUM_WARPS"]))
        return too_many_accumulators(each)

    return broken


def _shared(facts: AttentionFacts, target: Target) -> Check:
    """A pipelined loop keeps at least one buffer a stage, less one, of the keys and values it streams."""

    def broken(v: Values) -> str | None:
        return too_deep_pipeline((int(v["NUM_STAGES"]) - 1) * stage_bytes(facts, v, least=True), target)

    return broken


def _mask(facts: AttentionFacts) -> Check:
    """`cut` won at 4x16x2048x128 (bf16, H200): 162 us against 165 with descriptors, 165 against 181 with pointers."""

    def broken(v: Values) -> str | None:
        if v.get("MASK", "every") != "cut":
            return None
        if not facts.diagonal:
            return "MASK=cut is for a causal mask, and here it is another one, or not the only one."
        if facts.keys % int(v["BLOCK_N"]):
            return f"MASK=cut needs blocks of keys that divide all {facts.keys}."
        return None

    return broken


def _query_tiles(facts: AttentionFacts) -> Check:
    def broken(v: Values) -> str | None:
        tiles = int(v.get("QUERY_TILES", 1))
        if tiles == 1:
            return None
        if tiles != 2 or int(v["BLOCK_M"]) < 2 * SMALLEST_SIDE:
            return f"QUERY_TILES={tiles} is no number of tiles that BLOCK_M={v['BLOCK_M']} is halved into."
        if facts.query.computed or facts.key.computed:
            return "QUERY_TILES=2 takes queries and keys from memory, and here they are computed."
        if not facts.unmasked:
            return "QUERY_TILES=2 takes scores as they are, and here they are masked or changed."
        if facts.keys % int(v["BLOCK_N"]):
            return f"QUERY_TILES=2 needs blocks of keys that divide all {facts.keys}."
        return None

    return broken


def _query_tiles_pay(facts: AttentionFacts, target: Target) -> Check:
    """Two tiles pay where a warp group multiplies each of them by one wgmma a step: ptxas (sm_90) then neither spills
    nor waits between a product and the softmax beside it."""

    def broken(v: Values) -> str | None:
        if int(v.get("QUERY_TILES", 1)) == 1:
            return None
        m, threads = int(v["BLOCK_M"]), 32 * int(v["NUM_WARPS"])
        if not _on_wgmma(facts, v, target) or _tile_rows(v) != WGMMA_ROWS * threads // 128:
            return f"Two tiles of {_tile_rows(v)} queries are no wgmma each for {v['NUM_WARPS']} warps."
        if int(v["BLOCK_N"]) > WGMMA_ROWS:
            return f"The scores of {m} queries and {v['BLOCK_N']} keys leave no registers for two softmaxes."
        if int(v["BLOCK_N"]) < _FEWEST_KEYS:
            return f"{v['BLOCK_N']} keys a step are too short a product for a softmax to run beside it."
        return None

    return broken


def _tile_rows(v: Values) -> int:
    """Queries of one tile."""
    return int(v["BLOCK_M"]) // int(v.get("QUERY_TILES", 1))


def _all_shared_bytes(facts: AttentionFacts, v: Values) -> int:
    query = int(v["BLOCK_M"]) * max(facts.depth_block, facts.width_block) * facts.element_bytes
    needed = int(v["NUM_STAGES"]) * stage_bytes(facts, v) + query
    return needed + int(v["BLOCK_N"]) * facts.depth_block * facts.element_bytes if facts.key.computed else needed


def _shared_in_all(facts: AttentionFacts, target: Target) -> Check:
    return lambda v: too_much_shared(_all_shared_bytes(facts, v), target)


def _on_wgmma(facts: AttentionFacts, v: Values, target: Target) -> bool:
    if facts.dtype == "float32" and v["PRECISION"] != "tf32":
        return False
    groups = _tile_rows(v) >= WGMMA_ROWS and int(v["NUM_WARPS"]) % 4 == 0
    return groups and target.capability // 10 == 9


def _warps(facts: AttentionFacts, target: Target) -> Check:
    def broken(v: Values) -> str | None:
        m, n, warps = int(v["BLOCK_M"]), int(v["BLOCK_N"]), int(v["NUM_WARPS"])
        rows = _tile_rows(v)
        if max(rows, n) > _MOST_BLOCK:
            return f"A block of {rows} queries and {n} keys leaves no registers beside its accumulators."
        each = m * (n + facts.width_block) // (32 * warps)
        limit = _MOST_OF_A_THREAD if _on_wgmma(facts, v, target) else _MOST_MMA_OF_A_THREAD
        limit = _MOST_OF_TWO_TILES if rows < m else limit
        if v["LOADS"] == "pointer":
            each += stage_bytes(facts, v) // (8 * 32 * warps)
        if each > limit:
            return f"{each} scores, accumulators and addresses a thread leave no registers for the rest."
        share = 8 if facts.key.computed else 16
        if max(rows, n) < share * warps:
            return f"{warps} warps share a tile of {rows} x {n}."
        return wgmma_warps(facts.element_bytes, rows, warps)

    return broken


def _computed_tiles(facts: AttentionFacts) -> Check:
    def broken(v: Values) -> str | None:
        sides = (("BLOCK_M", facts.query, "queries"), ("BLOCK_N", facts.key, "keys"))
        for side, loaded, name in sides:
            each = int(v[side]) * facts.depth_block // (32 * int(v["NUM_WARPS"]))
            if loaded.computed and each > _MOST_COMPUTED_OF_A_THREAD:
                return f"Computing its {name} takes {each} elements a thread, more than its registers hold."
        return None

    return broken


def _stages(facts: AttentionFacts) -> Check:
    def broken(v: Values) -> str | None:
        steps = -(-facts.keys // int(v["BLOCK_N"]))
        stages = int(v["NUM_STAGES"])
        if deeper := deeper_than_loop(stages, steps):
            return deeper
        if stages == 1 and steps > 2:
            return "NUM_STAGES=1 loads and multiplies in turn."
        return None

    return broken


def _float32_work(facts: AttentionFacts) -> Check:
    """`ieee` products of float32 have no tensor core, and scalar multiplications unroll."""

    def broken(v: Values) -> str | None:
        if facts.dtype != "float32" or v["PRECISION"] == "tf32":
            return None
        widest = max(facts.depth_block, facts.width_block)
        m, n, threads = int(v["BLOCK_M"]), int(v["BLOCK_N"]), 32 * int(v["NUM_WARPS"])
        each = m * n * widest // threads
        if v["PRECISION"] == "ieee" and each > _MOST_UNROLLED:
            return f"{each} scalar multiplications a thread and step are more than is worth unrolling."
        split = ((m + n) * widest + m * n) // threads
        if v["PRECISION"] == "tf32x3" and split > _MOST_MMA_OF_A_THREAD:
            return f"Splitting its tiles for tf32x3 takes about {split} values a thread."
        return None

    return broken
