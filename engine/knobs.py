"""Every knob: its name, its values in canonical order, the value that means "off", and what it does.

The order of this table is the canonical order: forks ask their knobs in it, and ties between candidates break by it.

What lost on an H200 is no knob: caps of a thread's registers (attention) and a loop of its own for the diagonal of a
causal mask. Nor is stream-K, which fills the last wave of tiles, by arithmetic alone, not measured: the 512 tiles of
4096x4096x4096 fill 97 % of four waves, and products of less than a wave are split along their depth
(`engine.grouping.split_k`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from engine.vocabulary import KnobValue, Schedule


@dataclass(frozen=True, slots=True)
class Knob:
    """A named tuning dimension. `off` is stamped into a finished schedule where the knob has no effect.

    An `optional` knob is asked only of the kernels that it can pay for; a schedule without it has it off. `won` says
    where a value was seen to win on an H200 (bf16 unless it says otherwise), and by how much the best schedule that was
    tried with another value was slower. Most searches were steered by a prior, and some margins rest on one candidate:
    they are sightings, no laws.
    """

    name: str
    values: tuple[KnobValue, ...]
    off: KnobValue
    meaning: str
    optional: bool = False
    won: str = ""


_TABLE = (
    Knob(
        *("BLOCK_M", (1, 2, 4, 8, 16, 32, 64, 128, 256), 0, "rows of the output tile; below 16 no dot multiplies it"),
        won="2: 128 x 2x256x128 by 6 %; 16: 32x4096x1024 by 27 %; 64, 128: 512x3072x1024; 256 in none that is recorded",
    ),
    Knob(
        *("BLOCK_N", (16, 32, 64, 128, 256), 0, "columns of the output tile of a contraction"),
        won="16: 32x3072x1024 by 7 %; 128: 512x4096x1024; 256: 1024x2048x1024 by 12 %",
    ),
    Knob(
        *("BLOCK_K", (16, 32, 64, 128, 256), 0, "depth of one step of the contraction's main loop"),
        won="32: 128 x 2x256x128 by 11 %; 64: most; 128: 512x1024x3072; 256: 32x4096x1024 by 9 %; 16 in none",
    ),
    Knob(
        *("PRECISION", ("ieee", "tf32x3", "tf32"), "ieee", "how fp32 operands are multiplied"),
        won="tf32x3: 512x512x512 of fp32 by 27 %; ieee stays where that isn't exact enough",
    ),
    Knob(
        *("LOADS", ("pointer", "descriptor"), "pointer", "pointer arithmetic or TMA tensor descriptors"),
        won="descriptor: seen in matmuls and attention of 512 tokens and more, by 3 to 40 %; pointer: in 32 and fewer",
    ),
    Knob(
        *("GROUP_M", (1, 4, 8), 1, "tile rows visited before the raster moves to the next column"),
        won="8: 512x4096x1024 by 8 %; 1: 8 x 32x1024x384 by 10 %; 4 is not offered, recordings may hold it",
    ),
    Knob(
        *("PERSISTENT", (False, True), False, "one program a multiprocessor walks the tiles in a loop"),
        won="4096x4096x1024 by 8 %, 4096x4096x4096; seen nowhere for rows of reductions: not offered there",
    ),
    Knob(
        *("MASK", ("every", "cut"), "every", "a causal mask in every block of keys or those that it cuts"),
        optional=True,
        won="cut: 4x16x2048x128, 162 us against 165",
    ),
    Knob(
        *("ROWS", (1, 2, 4, 8, 16), 0, "rows that one program of a rowwise kernel handles at once"),
        won="1: softmax 2048x32768 by 34 %; 2: softmax 65536x384 by 6 %; 16: sums of 16384 rows of 32 by 37 %",
    ),
    Knob(
        *("COLUMNS", (256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536), 0),
        "row elements in one step; all = one pass",
        won="one pass: seen up to 4096, by 7 to 14 %; a loop: softmax 2048x32768 and mean 16384x4096 in halves",
    ),
    Knob(
        *("BLOCK", (128, 256, 512, 1024, 2048, 4096, 8192), 0),
        "elements that one program of a pointwise kernel handles",
        won="128: 2048 elements by 11 %; 512, 1024: half a million by 2 to 5 %; 4096, 8192: within 1 % of others",
    ),
    Knob(
        *("EVICTION", ("", "evict_first", "evict_last"), "", "L2 eviction hint of streamed loads"),
        won="evict_first: mean 16384x4096 by 5 %; evict_last: add 512x1024 by 15 %, rms_norm by 4 %",
    ),
    Knob(
        *("NUM_WARPS", (1, 2, 4, 8, 16, 32), 4, "warps a program"),
        won="1, 2: seen at 32 tokens by 5 and 4 %; 4: most; 8: 4096x4096x4096 by 8 %; 16: layer_norm 4096x12288 by 9 %",
    ),
    Knob(
        *("NUM_STAGES", (1, 2, 3, 4, 5), 1, "software pipelining depth of the main loop"),
        won="1: loops of few steps; 2: attention 4x16x2048x128, no matmul; 3: 2 x 512x3072x1024; 5: 512x1024x3072",
    ),
    Knob(
        *("QUERY_TILES", (1, 2), 1, "tiles of unmasked queries a program; a softmax beside a product"),
        optional=True,
        won="2: 4x16x2048x128 without a mask, 273 us against 283",
    ),
    Knob(
        *("OVERLAP", ("none", "specialized", "persistent"), "none"),
        "warps have roles, one loads and two groups multiply; persistent: a program a multiprocessor walks the tiles",
        optional=True,
        won="persistent: 4x16x2048x128, causal, by 7 %; specialized: seen where tiles are too few to walk",
    ),
    Knob(
        *("STORES", ("pointer", "whole", "halves", "quarters"), "pointer"),
        "how a tile is stored: pointer arithmetic, or TMA, whole or in parts",
        optional=True,
        won="halves: 4096x4096x1024 by 4 %, 4096x4096x4096, 177 us against 181; whole and quarters in none",
    ),
    Knob(
        *("ACF", ("",), "", "sha256 of the controls file that ptxas assembles with; none is empty"),
        optional=True,
        won="as `emmy eval acf` tells, file by file",
    ),
)

KNOBS: dict[str, Knob] = {knob.name: knob for knob in _TABLE}
WITHOUT_EFFECT: dict[str, KnobValue] = {"DIAGONAL": False, "MAXNREG": 0}
"""Names outside the table that a recorded schedule may hold, at the values that change nothing."""
STRUCTURAL_VALUES: tuple[KnobValue, ...] = (
    *("fused", "apart", "merged"),
    *("scaled", "producer", "whole", "halves", "quarters", "eighths"),
    *("sixteenths", "thirtyseconds", "stored", "turned"),
)
"""Answers of a structural fork, in canonical order. Its knobs are numbered by site, so they stand in no table."""

KNOB_ORDER: dict[str, int] = {knob.name: position for position, knob in enumerate(_TABLE)}


def canonical_position(name: str, value: KnobValue) -> tuple[int, int]:
    """Sort key of one knob value: table position of the knob, then of the value; unknown ones come last.

    A value outside the table (a pin may hold one) sorts after the offered values.
    """
    knob = KNOBS.get(name)
    if knob is None:
        return len(KNOBS), STRUCTURAL_VALUES.index(value) if value in STRUCTURAL_VALUES else 0
    values: tuple[KnobValue, ...] = (*knob.values, knob.off)
    return KNOB_ORDER[name], values.index(value) if value in values else len(values)


class BadKnobs(ValueError):
    """One sentence for a person: what can't be understood of the knobs that were typed, and what to write."""


_WORD = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(\S*)")


def parse_knobs(text: str) -> Schedule:
    """The schedule that a person typed or a command printed, NAME=value NAME=value. Raises BadKnobs.

    A name is typed in any case; the values are those of a text, whether legal or not.
    """
    knobs: dict[str, KnobValue] = {}
    for word in text.split():
        found = _WORD.fullmatch(word)
        if found is None:
            raise BadKnobs(f"{word} is no knob value: write NAME=value, as in BLOCK_M=64")
        name = found[1].upper() if found[1].upper() in KNOBS else found[1]
        if name in knobs:
            raise BadKnobs(f"{name} stands twice: leave one of them away")
        knobs[name] = _typed_value(name, found[2])
    if not knobs:
        raise BadKnobs("no knob is given: write NAME=value for each, as in BLOCK_M=64 NUM_WARPS=4")
    return Schedule.of(knobs)


NEAR = 4
ALIKE = 0.55


def near_names(name: str, names: Iterable[str], most: int = NEAR, alike_from: float = ALIKE) -> list[str]:
    """The names that somebody may have meant, at most `most`: those of these initials, then those that are spelt alike.

    `alike_from` is the least likeness, from 0 to 1: where the names are many and short, more is alike by chance.
    """
    by_text = {one.casefold(): one for one in names}
    wanted = name.casefold()
    initials = [one for text, one in by_text.items() if "".join(part[:1] for part in text.split("_")) == wanted]
    alike = get_close_matches(wanted, by_text, most, alike_from)
    return list(dict.fromkeys([*initials, *(by_text[text] for text in alike)]))[:most]


def _typed_value(name: str, text: str) -> KnobValue:
    knob = KNOBS.get(name)
    if knob is not None and isinstance(knob.values[0], str):
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    # int() alone takes 1_6 and the digits of every script too
    try:
        return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else text
    except ValueError:  # more digits than Python reads
        return text
