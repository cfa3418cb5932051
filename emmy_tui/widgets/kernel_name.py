"""What a kernel is called in a word or two: its label, and its shape where another kernel has the same label."""

from __future__ import annotations

from collections import Counter

from emmy_tui.text import UNICODE, Glyphs, crop, width_of
from engine.snapshot import KernelRow, Snapshot

SHORT = 4
"""Cells of a label beside its shape in a narrow place."""


def equal_labels(snapshot: Snapshot) -> frozenset[str]:
    """The labels that several kernels have."""
    counts = Counter(row.label for row in snapshot.kernels.values())
    return frozenset(label for label, count in counts.items() if count > 1)


def telling_shape(row: KernelRow, snapshot: Snapshot) -> str:
    """The shape as far as it tells the kernel from those of the same label: without the dtype where that is enough."""
    others = [other for other in snapshot.kernels.values() if other.label == row.label and other is not row]
    sizes = row.shape.partition(" ")[0]
    return row.shape if any(other.shape.partition(" ")[0] == sizes for other in others) else sizes


def kernel_name(row: KernelRow, snapshot: Snapshot) -> str:
    """The label, or label and shape where the label alone is ambiguous."""
    return f"{row.label} {telling_shape(row, snapshot)}" if row.label in equal_labels(snapshot) else row.label


def short_name(row: KernelRow, snapshot: Snapshot, width: int, glyphs: Glyphs = UNICODE) -> str:
    """The name in `width` cells: the label is cut before the shape is."""
    if row.label not in equal_labels(snapshot):
        return row.label
    shape = telling_shape(row, snapshot)
    room = max(SHORT, width - width_of(shape) - 1)
    return f"{crop(row.label, room, glyphs)} {shape}"
