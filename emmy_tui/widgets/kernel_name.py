"""What a kernel is called in a word or two: its label, and its shape where another kernel has the same label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

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


SUFFIX = 4
"""Characters of a structural key that tell kernels of one label apart, where that many do."""


def told_apart(kernels: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What each kernel's label needs beside it, by its key, of (key, label): "" where the label is the only one of its
    kind, else as many characters of the key as tell all of that label apart."""
    keys: dict[str, set[str]] = {}
    for key, label in kernels:
        keys.setdefault(label, set()).add(key)
    suffixes: dict[str, str] = {}
    for alike in keys.values():
        longest = max(len(key) for key in alike)
        least = next(
            (size for size in range(SUFFIX, longest) if len({key[:size] for key in alike}) == len(alike)), longest
        )
        suffixes |= {key: key[:least] if len(alike) > 1 else "" for key in alike}
    return suffixes


def suffixed(label: str, suffix: str, width: int, glyphs: Glyphs = UNICODE) -> str:
    """Label and suffix in at most `width` cells; the label is cut before the suffix is."""
    if not suffix:
        return crop(label, width, glyphs)
    return crop(f"{crop(label, max(1, width - width_of(suffix) - 1), glyphs)} {suffix}", width, glyphs)
