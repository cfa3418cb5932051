"""Contractions of at most eight rows without tl.dot: which tiles they take, and which are worth offering.

A tile of BLOCK_M below 16 holds every row of the product. Each row of the left operand, spread over the columns,
multiplies the right operand's tile element by element, and the sums over the depth are kept apart until the end: no
tensor core multiplies padding, and each element of the right operand goes from memory to the thread that adds it up.
"""

from __future__ import annotations

from engine.codegen.contraction_facts import ContractionFacts
from engine.codegen.dot_rules import SMALLEST_SIDE
from engine.codegen.family import Values
from engine.vocabulary import KnobValue

MOST_ROWS = 8
_FEWEST_BYTES = 16
"""Of a step's tile a thread loads at least one access of this size."""
_MOST_BYTES = 128
_MOST_ACCUMULATORS = 128


def is_vector(v: Values) -> bool:
    """Whether the tile is multiplied without tl.dot."""
    return int(v["BLOCK_M"]) < SMALLEST_SIDE


def vector_rows(rows: int) -> tuple[KnobValue, ...]:
    """The BLOCK_M that holds so many rows without tl.dot, if one does.

    >>> vector_rows(1), vector_rows(3), vector_rows(9)
    ((1,), (4,), ())
    """
    return (1 << max(rows - 1, 0).bit_length(),) if rows <= MOST_ROWS else ()


def vector_law(v: Values) -> str | None:
    """What a product without tl.dot can't have."""
    if not is_vector(v):
        return None
    if v["PRECISION"] != "ieee":
        return f"PRECISION={v['PRECISION']} says how tl.dot multiplies, and BLOCK_M={v['BLOCK_M']} has none."
    if v["LOADS"] != "pointer":
        return f"LOADS={v['LOADS']} loads tiles for tl.dot, and BLOCK_M={v['BLOCK_M']} has none."
    return None


def vector_accumulators(facts: ContractionFacts, v: Values) -> int:
    """Sums that a thread keeps: one for each row and element of the right operand's tile."""
    tile = int(v["BLOCK_K"]) * int(v["BLOCK_N"])
    return max(facts.products * facts.m * tile // (32 * int(v["NUM_WARPS"])), 1)


def vector_warps(facts: ContractionFacts, v: Values) -> str | None:
    """Why so many warps don't suit the tile, or None."""
    each = vector_accumulators(facts, v)
    if each > _MOST_ACCUMULATORS:
        return f"{each} sums a thread leave no registers for the loads."
    loaded = facts.products * int(v["BLOCK_K"]) * int(v["BLOCK_N"]) * facts.element_bytes // (32 * int(v["NUM_WARPS"]))
    if loaded < _FEWEST_BYTES:
        return f"A thread loads {loaded} bytes a step, less than one access."
    if loaded > _MOST_BYTES * facts.products:
        return f"A thread loads {loaded} bytes a step, more than it holds beside its sums."
    return None
