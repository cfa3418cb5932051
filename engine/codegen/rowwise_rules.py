"""Which schedules of a rowwise kernel can be built (laws, which bind pins too) and which are worth offering."""

from __future__ import annotations

from collections.abc import Callable

from engine.codegen.family import Rule, Values
from engine.codegen.rowwise_facts import RowwiseFacts
from engine.vocabulary import Target

TILE_ELEMENTS = 2**20
"""Triton's own limit on the elements of one block (triton.language.core.TRITON_MAX_TENSOR_NUMEL)."""
_MOST_OF_A_THREAD = 128
_FEWEST_OF_A_THREAD = 4
_Check = Callable[[Values], str | None]


def rowwise_rules(facts: RowwiseFacts, target: Target) -> tuple[Rule, ...]:
    """All rules: laws first, each with the knobs that it reads."""
    return (
        Rule(("ROWS", "COLUMNS"), _tile),
        Rule(("ROWS", "COLUMNS", "NUM_STAGES"), _shared(facts, target)),
        Rule(("COLUMNS",), _width(facts), law=False),
        Rule(("ROWS", "COLUMNS", "NUM_WARPS"), _thread_load, law=False),
        Rule(("PERSISTENT", "COLUMNS", "NUM_STAGES"), _stages(facts), law=False),
    )


def power_of_two(extent: int) -> int:
    """The smallest power of two that is at least `extent`."""
    return 1 << max(extent - 1, 0).bit_length()


def _tile(v: Values) -> str | None:
    for name in ("ROWS", "COLUMNS"):
        if int(v[name]) < 1:
            return f"{name}={v[name]} leaves a rowwise kernel without a tile."
    elements = int(v["ROWS"]) * int(v["COLUMNS"])
    if elements <= TILE_ELEMENTS:
        return None
    return f"A tile of {v['ROWS']} x {v['COLUMNS']} holds {elements} elements, and Triton allows {TILE_ELEMENTS}."


def _shared(facts: RowwiseFacts, target: Target) -> _Check:
    """A pipelined loop keeps one buffer a stage, less one, of what it streams."""
    row = [s.element_bytes for s in facts.body.input_specs() if s.numel == facts.rows * facts.columns]

    def broken(v: Values) -> str | None:
        needed = (int(v["NUM_STAGES"]) - 1) * int(v["ROWS"]) * int(v["COLUMNS"]) * sum(row)
        if needed <= target.shared_bytes:
            return None
        return f"Its pipeline needs about {needed} bytes of shared memory, and a block has {target.shared_bytes}."

    return broken


def _width(facts: RowwiseFacts) -> _Check:
    def broken(v: Values) -> str | None:
        if int(v["COLUMNS"]) <= max(power_of_two(facts.columns), 16):
            return None
        return f"COLUMNS={v['COLUMNS']} is wider than a row of {facts.columns}."

    return broken


def _thread_load(v: Values) -> str | None:
    each = int(v["ROWS"]) * int(v["COLUMNS"]) // (32 * int(v["NUM_WARPS"]))
    if each > _MOST_OF_A_THREAD:
        return f"{each} elements a thread don't fit its registers."
    if each < _FEWEST_OF_A_THREAD and int(v["NUM_WARPS"]) > 1:
        return f"{each} elements a thread leave most of its loads unused."
    return None


def _stages(facts: RowwiseFacts) -> _Check:
    def broken(v: Values) -> str | None:
        steps = -(-facts.columns // int(v["COLUMNS"]))
        if int(v["NUM_STAGES"]) > 1 and steps == 1 and not v["PERSISTENT"]:
            return "NUM_STAGES has an effect only where a loop is pipelined."
        if steps > 1 and int(v["NUM_STAGES"]) > steps:
            return f"NUM_STAGES={v['NUM_STAGES']} is deeper than the loop's {steps} steps."
        return None

    return broken
