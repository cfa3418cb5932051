"""Knobs as a person reads and types them: in full, short for a column, and back from what was typed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.knobs import KNOBS, BadKnobs, canonical_position, parse_knobs
from engine.vocabulary import KnobValue

__all__ = [
    "BadKnobs",
    "in_order",
    "long_name",
    "long_value",
    "long_words",
    "parse_knobs",
    "read_short_word",
    "short_words",
    "value_text",
]

_SHORT = {
    "BLOCK_M": "M",
    "BLOCK_N": "N",
    "BLOCK_K": "K",
    "GROUP_M": "G",
    "ROWS": "R",
    "COLUMNS": "C",
    "BLOCK": "B",
    "NUM_WARPS": "w",
    "NUM_STAGES": "s",
    "QUERY_TILES": "q",
}
"""Knobs with numbers; the letter and the number are one word, as in M64. Other values stand for themselves."""


ACF_DIGITS = 8
"""Of the sha256 of a controls file, what tells the files of one search apart."""
_SHORT_VALUES = {"descriptor": "desc", "pointer": "ptr", "evict_first": "first", "evict_last": "last"}


def in_order(knobs: Mapping[str, KnobValue]) -> list[tuple[str, KnobValue]]:
    return sorted(knobs.items(), key=lambda knob: (canonical_position(knob[0], knob[1])[0], knob[0]))


def long_words(knobs: Mapping[str, KnobValue]) -> str:
    """Every knob as NAME=value, in the order of the forks."""
    return " ".join(f"{name}={value_text(value)}" for name, value in in_order(knobs))


def value_text(value: KnobValue) -> str:
    return str(value)


def short_words(knobs: Mapping[str, KnobValue]) -> str:
    """The knobs that aren't off, in few cells: M64 N128 K32 w4 s3 tf32x3 desc."""
    words = []
    for name, value in in_order(knobs):
        knob = KNOBS.get(name)
        if knob is not None and value == knob.off and type(value) is type(knob.off):
            continue
        if name == "ACF":
            words.append(f"ACF={value_text(value)[:ACF_DIGITS]}")
        elif name in _SHORT:
            words.append(f"{_SHORT[name]}{value_text(value)}")
        elif isinstance(value, bool) and knob is not None:
            words.append(name.lower()[:4])
        elif isinstance(value, str) and knob is not None:
            words.append(_SHORT_VALUES.get(value, value))
        else:
            words.append(f"{name}={value_text(value)}")
    return " ".join(words)


_NAMES = {short: name for name, short in _SHORT.items()}
_LONG_VALUES = {short: value for value, short in _SHORT_VALUES.items()}
_SHORT_WORD = re.compile(r"([A-Za-z]+)([0-9]+)")


def long_name(short: str) -> str | None:
    """The knob that a letter of a short word stands for, as M for BLOCK_M; None for another text."""
    return _NAMES.get(short)


def long_value(name: str, value: str) -> str:
    """A knob's value as it is in full: desc is descriptor; another text as it is."""
    knob = KNOBS.get(name)
    full = _LONG_VALUES.get(value)
    return full if knob is not None and full in knob.values and value not in knob.values else value


def read_short_word(word: str) -> tuple[str, str] | None:
    """Name and value of one word that `short_words` wrote, as M128, pers or desc; None for another text."""
    found = _SHORT_WORD.fullmatch(word)
    if found is not None and found[1] in _NAMES:
        return _NAMES[found[1]], found[2]
    for name, knob in KNOBS.items():
        if isinstance(knob.off, bool):
            if word == name.lower()[:4]:
                return name, "true"
        elif isinstance(knob.off, str) and name != "ACF":
            shown = (one for one in knob.values if one != knob.off)
            value = next((one for one in shown if _SHORT_VALUES.get(str(one), one) == word), None)
            if value is not None:
                return name, str(value)
    return None
