"""Knobs as every command prints them: NAME=value, in the canonical order of the knobs.

A schedule reaches the command line as text or as values; both are spelled alike, so that a line of one command can be
searched for in the output of another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.cli.output import printable
from engine.knobs import canonical_position
from engine.vocabulary import KnobValue

_NEXT_KNOB = re.compile(r" (?=[A-Za-z_]\w*=)")


def knob_word(name: str, value: KnobValue) -> str:
    """One knob with its value, as `Schedule` writes it."""
    return printable(f"{name}={value}")


def names_in_order(names: Iterable[str]) -> list[str]:
    """Names of knobs in canonical order, each once; unknown ones last, by name."""
    return sorted(set(names), key=lambda name: (canonical_position(name, 0), name))


def schedule_line(schedule: str) -> str:
    """The text of a schedule, "NAME=value NAME=value ...", with its knobs in canonical order."""
    words = {word.partition("=")[0]: word for word in _NEXT_KNOB.split(schedule)}
    return " ".join(words[name] for name in names_in_order(words))
