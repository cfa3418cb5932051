"""What a kernel iterates over: named axes with their edges, and the values that move with them."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """One program axis of an index space: the text of its index, its extent, and the mask that its edge needs.

    `start` is a scalar that moves in a loop and is added to `name`; `loop` says in which one ("" = in none). The index
    of an axis of 2**31 elements or more is in 64 bits.
    """

    name: str
    extent: int
    mask: str = ""
    start: str = ""
    loop: str = ""


@dataclass(frozen=True, slots=True)
class IndexSpace:
    """The axes of one flat iteration, innermost first."""

    name: str
    axes: tuple[Axis, ...]

    @property
    def size(self) -> int:
        return math.prod(axis.extent for axis in self.axes)


@dataclass(frozen=True, slots=True)
class Value:
    """A register value: its text, its dtype there, the names of the axes and loops it moves with."""

    text: str
    dtype: str
    axes: frozenset[str]
    number: int | float | bool | None = None
