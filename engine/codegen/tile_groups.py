"""Groups of neighbouring columns inside a tile: their sums, and their halves in exchange.

A head's norm and its rotary embedding need a head whole and nothing beside it, so that a tile of whole heads computes
them in registers. The texts hold for a tile of rows x columns where a group is all of the columns, for one of
rows x groups x columns of a group, and for the two halves of a tile that is one group wide.
"""

from __future__ import annotations

from collections.abc import Sequence

HALF_ROLL = "half_roll"


def group_reduction_text(kind: str, text: str, axis: int, group: int) -> str:
    """A reduction of each group of the tile `text`, the reduced `axis`, its last, kept with extent 1.

    `kind` is a reduction of `engine.ir.ops`; of a mean the `group`'s size is the divisor.
    """
    if kind in ("sum", "mean"):
        total = f"tl.sum({text}, {axis}, keep_dims=True)"
        return total if kind == "sum" else f"{total} / {float(group)!r}"
    return f"tl.reduce({text}, {axis}, {'maximum_nan' if kind == 'amax' else 'minimum_nan'}, keep_dims=True)"


def merged_text(kind: str, parts: Sequence[str]) -> str:
    """A tile whose reduction of that `kind` is the one of all tiles `parts`, which lie side by side."""
    if kind in ("sum", "mean"):
        return " + ".join(parts)
    merged = parts[0]
    for part in parts[1:]:
        merged = f"{'maximum_nan' if kind == 'amax' else 'minimum_nan'}({merged}, {part})"
    return merged


def half_roll_text(text: str, rows: int, columns: int, group: int) -> str:
    """The tile `text` with the halves of each group exchanged: of (rows, columns), or of (rows, groups, group)."""
    return f"{HALF_ROLL}({text}, {rows}, {columns // group}, {group // 2})"


def halves_text(text: str, rows: int, columns: int) -> str:
    """The left and the right half of the tile `text`, each of (rows, columns // 2), as a tuple.

    Neighbours of the split axis are registers of one thread where each of its rows is in one warp, as wgmma leaves
    them, so that nothing is exchanged.
    """
    return f"tl.split(tl.permute(tl.reshape({text}, ({rows}, 2, {columns // 2})), (0, 2, 1)))"
