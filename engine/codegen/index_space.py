"""What a kernel iterates over: named axes with their edges, and the values that move with them.

A tile may be written in parts, each a space of its own in which one axis runs over some of its indices. Extents stay
those of the whole axis, so that every frame says the same in a part as in the whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """One program axis of an index space: the text of its index, its extent, and the mask that its edge needs.

    `start` is a scalar that moves in a loop and is added to `name`; `loop` says in which one ("" = in none). The index
    of an axis of 2**31 elements or more is in 64 bits. `span` are the first index and the one behind the last where the
    axis runs over a part of its extent.
    """

    name: str
    extent: int
    mask: str = ""
    start: str = ""
    loop: str = ""
    span: tuple[int, int] | None = None

    @property
    def reach(self) -> tuple[int, int]:
        """The first index and the one behind the last."""
        return self.span or (0, self.extent)


@dataclass(frozen=True, slots=True)
class IndexSpace:
    """The axes of one flat iteration, innermost first.

    `whole` is the space that this one is a part of along its innermost axis, if it is one.
    """

    name: str
    axes: tuple[Axis, ...]
    whole: IndexSpace | None = None

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
