"""What a kernel is called in a word or two: its label, and its shape where another kernel has the same label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from emmy_tui.text import UNICODE, Glyphs, clean, crop, width_of
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


def known_name(key: str, label: str, snapshot: Snapshot) -> str:
    """The name of a kernel that a list has by its key and label; the label where the run doesn't know it."""
    row = snapshot.kernels.get(key)
    return kernel_name(row, snapshot) if row is not None else label


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


def sizes_apart(kernels: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """As `told_apart`, by shapes, of (key, label, shape): the sizes alone where those are enough, and "" too where two
    kernels of one label have one shape."""
    alike: dict[str, dict[str, str]] = {}
    for key, label, shape in kernels:
        alike.setdefault(label, {})[key] = shape
    told: dict[str, str] = {}
    for shapes in alike.values():
        sizes = Counter(shape.partition(" ")[0] for shape in shapes.values())
        counts = Counter(shapes.values())
        for key, shape in shapes.items():
            short = shape.partition(" ")[0]
            one = short if sizes[short] == 1 else shape if counts[shape] == 1 else ""
            told[key] = one if len(shapes) > 1 else ""
    return told


@dataclass(frozen=True, slots=True)
class Names:
    """What the kernels of a list are called beside each other: by their shapes where the column has room for them, else
    by the first characters of their keys. `labels` are by key."""

    labels: Mapping[str, str]
    sizes: Mapping[str, str]
    keys: Mapping[str, str]

    @staticmethod
    def of(kernels: Iterable[tuple[str, str, str]]) -> Names:
        """Of (key, label, shape)."""
        every = list(kernels)
        labels = {key: label for key, label, _ in every}
        return Names(labels, sizes_apart(every), told_apart(labels.items()))

    def column(self, least: int, room: int) -> int:
        """Cells for the longest name, from `least` on, at most `room`."""
        wanted = max((width_of(f"{self.labels[key]} {self.sizes[key]}".rstrip()) for key in self.labels), default=0)
        return max(least, min(wanted, room))

    def name(self, key: str, width: int, glyphs: Glyphs = UNICODE) -> str:
        """In at most `width` cells."""
        label, sizes = clean(self.labels[key], glyphs), clean(self.sizes[key], glyphs)
        fits = sizes and min(SHORT, width_of(label)) + 1 + width_of(sizes) <= width
        return suffixed(label, sizes if fits else self.keys[key], width, glyphs)


def suffixed(label: str, suffix: str, width: int, glyphs: Glyphs = UNICODE) -> str:
    """Label and suffix in at most `width` cells; the label is cut before the suffix is."""
    if not suffix:
        return crop(label, width, glyphs)
    return crop(f"{crop(label, max(1, width - width_of(suffix) - 1), glyphs)} {suffix}", width, glyphs)
