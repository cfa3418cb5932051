"""Groups of neighbouring columns inside a tile: their sums, and their halves in exchange.

A head's norm and its rotary embedding need a head whole and nothing beside it, so that a tile of whole heads computes
them in registers. The texts hold for a tile of rows x columns where a group is all of the columns, and for one of
rows x groups x columns of a group.
"""

from __future__ import annotations

HALF_ROLL = "half_roll"


def group_reduction_text(kind: str, text: str, rows: int, columns: int, group: int) -> str:
    """A reduction of each group of the tile `text`, the reduced axis kept with extent 1.

    The tile has the shape (rows, group) where `columns` are one group, else (rows, columns // group, group). `kind` is
    a reduction of `engine.ir.ops`; of a mean the group's size is the divisor.
    """
    axis = 1 if columns == group else 2
    if kind in ("sum", "mean"):
        total = f"tl.sum({text}, {axis}, keep_dims=True)"
        return total if kind == "sum" else f"{total} / {float(group)!r}"
    return f"tl.reduce({text}, {axis}, {'maximum_nan' if kind == 'amax' else 'minimum_nan'}, keep_dims=True)"


def half_roll_text(text: str, rows: int, columns: int, group: int) -> str:
    """The tile `text`, shaped as in `group_reduction_text`, with the halves of each group exchanged."""
    return f"{HALF_ROLL}({text}, {rows}, {columns // group}, {group // 2})"
