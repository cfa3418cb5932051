"""How boxes of a tab share its lines: a box has room enough to say something, or it is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FRAME = 2
LEAST = 5
"""Lines below which a list with its frame and its headings tells nothing: two rows."""


@dataclass(frozen=True, slots=True)
class Box:
    """`least` lines with the frame are worth having; more than `wanted` it has no use for."""

    name: str
    least: int
    wanted: int


def shared(boxes: Sequence[Box], height: int) -> dict[str, int]:
    """Lines of each box that is seen, in an area of `height` lines. The boxes come in the order of what matters: the
    first is always seen, another one where its least is left; then each gets what it wants as long as there is some,
    and what nobody wants goes to the first."""
    heights: dict[str, int] = {}
    left = height
    for box in boxes:
        if not heights or box.least <= left:
            heights[box.name] = min(box.least, max(0, left))
            left -= heights[box.name]
    for box in boxes:
        if box.name in heights:
            more = min(max(0, box.wanted - heights[box.name]), left)
            heights[box.name] += more
            left -= more
    if heights:
        heights[boxes[0].name] += left
    return heights
