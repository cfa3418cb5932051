"""How a contraction's tile leaves its program: through pointers, or through TMA, whole or in parts.

A store through pointers turns the tile in shared memory, waits for all threads, and holds an address for every 16
bytes. TMA takes the tile as wgmma leaves it, and it is written while the next tile's loop runs already. In parts that
take turns, it needs a part of the shared memory, which leaves room for one stage more (128 x 256 tiles of bfloat16 on
sm_90: 187 registers through pointers, 154 through TMA, halves with four stages where a whole tile has three). An
epilogue in parts holds what it computes of one part at a time (bias and GELU of float32 on such tiles: 200 registers
and no spills in halves, 255 and 80 bytes spilled at once).
"""

from __future__ import annotations

from engine.codegen.contraction_facts import ContractionFacts, tiles_of
from engine.codegen.dot_rules import NEEDS_TMA, TMA_CAPABILITY, Check, too_wide_block
from engine.codegen.family import Rule, Values
from engine.codegen.module_text import descriptor_type
from engine.codegen.outputs import Output
from engine.codegen.source import Argument
from engine.codegen.tile_groups import halves_text
from engine.codegen.vector_rules import is_vector
from engine.knobs import KNOBS
from engine.vocabulary import KnobValue, Target

KNOB = "STORES"
_PARTS: dict[KnobValue, int] = {"pointer": 0, "whole": 1, "halves": 2, "quarters": 4}
_STORED = ("float32", "float16", "bfloat16")
_ASKED_TILE = (128, 256)
"""Where tiles of this size, the largest, are one wave or less, no program has a second tile to work on."""
_COMPUTED_TILE = (128, 128)
"""Where tiles of this size occupy half of the chip, an epilogue's registers bound the tile of a product; the tiles of
several products are small anyway."""
_WORTH_ELEMENTS = 128 * 128
"""Stores of smaller tiles are a matter of their count, not of how they are written."""
_ROW_BYTES = 128
"""Rows of a part of at least this size are whole lines, without conflicts between the banks of shared memory."""


def parts_of(v: Values) -> int:
    """In how many parts TMA stores a tile; 0 through pointers, which is what a schedule without the knob does.

    >>> parts_of({}), parts_of({"STORES": "whole"}), parts_of({"STORES": "halves"})
    (0, 1, 2)
    """
    return _PARTS[v.get(KNOB, KNOBS[KNOB].off)]


def store_rules(facts: ContractionFacts, target: Target) -> tuple[Rule, ...]:
    """What binds the knob: laws first."""
    return (
        Rule(("BLOCK_M", "BLOCK_N", KNOB), _law(facts, target)),
        Rule(("BLOCK_M", "BLOCK_N", "LOADS", "PERSISTENT", KNOB), _worth(facts), law=False),
    )


def offered_stores(facts: ContractionFacts, target: Target) -> tuple[KnobValue, ...]:
    """The values to choose from: one, so no question, where TMA can't store the outputs or it is worth nothing."""
    walked = tiles_of(facts, *_ASKED_TILE) > target.multiprocessors
    computed = facts.computes and facts.products == 1 and 2 * tiles_of(facts, *_COMPUTED_TILE) > target.multiprocessors
    if _unsuited(facts, target) or not (walked or computed):
        return (KNOBS[KNOB].off,)
    return KNOBS[KNOB].values if walked else (KNOBS[KNOB].off, "halves")


def store_bytes(facts: ContractionFacts, v: Values) -> int:
    """Shared memory in bytes of the part that TMA reads while the next one is computed; 0 through pointers."""
    parts = parts_of(v)
    widest = max(output.spec.element_bytes for output in facts.outputs)
    return int(v["BLOCK_M"]) * int(v["BLOCK_N"]) // parts * widest if parts else 0


def store_argument(facts: ContractionFacts, output: Output, block: tuple[int, int], parts: int) -> Argument:
    """The descriptor of an output: rows of all products of the batch, one below the other."""
    shown = (block[0], block[1] // parts)
    kind = descriptor_type(output.spec.dtype, shown)
    shape, strides = (facts.batch * facts.m, facts.n), (facts.n, 1)
    return Argument(_name(output), "output", output.position, kind, shown, shape, strides)


def parts_text(name: str, block: tuple[int, int], parts: int) -> tuple[list[str], list[str]]:
    """Lines that cut the tile `name` of `block` elements into parts side by side, and the parts' names.

    >>> parts_text("acc", (64, 128), 2)[1]
    ['acc_2_0', 'acc_2_1']
    """
    lines: list[str] = []
    found, width = [name], block[1]
    while len(found) < parts:
        level = 2 * len(found)
        halved = [f"{name}_{level}_{number}" for number in range(level)]
        for number, part in enumerate(found):
            names = ", ".join(halved[2 * number : 2 * number + 2])
            lines.append(f"{names} = {halves_text(part, block[0], width)}")
        found, width = halved, width // 2
    return lines, found


def store_text(facts: ContractionFacts, output: Output, text: str, place: tuple[str, str]) -> str:
    """The line that stores `text`, of the output's dtype, from the row and column `place` of its matrix on."""
    row, column = place
    row = row if facts.batch == 1 else f"batch * {facts.m} + {row}"
    return f"{_name(output)}.store([{row}, {column}], {text})"


def _name(output: Output) -> str:
    return f"out{output.position}_desc"


def _law(facts: ContractionFacts, target: Target) -> Check:
    unsuited = _unsuited(facts, target)

    def broken(v: Values) -> str | None:
        parts = parts_of(v)
        if not parts:
            return None
        said = f"{KNOB}={v[KNOB]}"
        if unsuited:
            return f"{said} {unsuited}."
        m, n = int(v["BLOCK_M"]), int(v["BLOCK_N"])
        if is_vector(v):
            return f"{said} stores tiles of tl.dot, and BLOCK_M={m} has none."
        if too_wide := too_wide_block(m, n // parts):
            return too_wide
        narrow = min(output.spec.element_bytes for output in facts.outputs) * (n // parts)
        if narrow < 16:
            return f"{said} stores rows of {narrow} bytes, and TMA's are at least 16."
        if facts.batch > 1 and facts.m % m:
            return f"BLOCK_M={m} doesn't divide {facts.m}, so a TMA block would write rows of the next matrix."
        return None

    return broken


def _unsuited(facts: ContractionFacts, target: Target) -> str:
    """Why TMA can't store these outputs, as the end of a sentence; empty where it can."""
    if target.capability < TMA_CAPABILITY:
        return NEEDS_TMA
    if facts.beside:
        return "stores the tiles of one product, and several lie side by side here"
    if facts.group:
        return "stores tiles as they are multiplied, and groups of their columns are reduced or turned here"
    for output in facts.outputs:
        if output.spec.dtype not in _STORED:
            return f"stores floats of 16 or 32 bits, and output {output.position} is {output.spec.dtype}"
        if facts.n * output.spec.element_bytes % 16:
            return f"needs rows of a multiple of 16 bytes, and output {output.position} has other ones"
    if facts.batch * facts.m >= 2**31:
        return "has a larger matrix to store than a descriptor can say"
    return ""


def _worth(facts: ContractionFacts) -> Check:
    narrowest = min(output.spec.element_bytes for output in facts.outputs)

    def broken(v: Values) -> str | None:
        parts = parts_of(v)
        if not parts:
            return None
        if v["LOADS"] != "descriptor" or not (v["PERSISTENT"] or (facts.computes and parts == 2)):
            return f"{KNOB}={v[KNOB]} pays where the next tile's TMA loads are in flight meanwhile."
        m, n = int(v["BLOCK_M"]), int(v["BLOCK_N"])
        if m * n < _WORTH_ELEMENTS or n // parts * narrowest < _ROW_BYTES:
            return f"{KNOB}={v[KNOB]} saves little on a tile of {m} x {n}."
        return None

    return broken
