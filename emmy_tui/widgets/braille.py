"""A curve in braille dots: 2 x 4 dots a cell, sharp enough for a search's progress in eighty columns.

A search of many trials has more points than dot columns. Each column shows the best and the worst of the trials that
fall into it, so that no dip is lost, and the best time so far as a step line; failures are marks on the axis.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
BLANK = 0x2800
SAMPLES = 12


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps a value to a dot row, 0 at the top; both ends are shown."""

    low: float
    high: float
    rows: int
    log: bool

    @classmethod
    def over(cls, low: float, high: float, rows: int, log: bool) -> Scale:
        if log and low <= 0:
            log = False
        if not high > low:
            low, high = (low / 1.01, low * 1.01) if low > 0 else (low - 1.0, low + 1.0)
        return cls(low, high, rows, log)

    def row(self, value: float) -> int:
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low) if value > 0 else 0.0
        else:
            part = (value - self.low) / (self.high - self.low)
        part = min(1.0, max(0.0, part))
        return round((1.0 - part) * (self.rows - 1))


class Canvas:
    """Dots of two kinds: the line goes over the points wherever both want a cell."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._points = [[0] * width for _ in range(height)]
        self._line = [[0] * width for _ in range(height)]

    @property
    def columns(self) -> int:
        return self.width * 2

    @property
    def rows(self) -> int:
        return self.height * 4

    def point(self, column: int, row: int) -> None:
        self._points[row // 4][column // 2] |= DOTS[row % 4][column % 2]

    def line(self, column: int, from_row: int, to_row: int) -> None:
        """A vertical stroke; equal rows make a dot."""
        for row in range(min(from_row, to_row), max(from_row, to_row) + 1):
            self._line[row // 4][column // 2] |= DOTS[row % 4][column % 2]

    def cell(self, x: int, y: int) -> tuple[str, bool]:
        """The character of a cell, and whether the line runs through it."""
        line = self._line[y][x]
        dots = line | self._points[y][x]
        return (chr(BLANK + dots) if dots else " "), bool(line)

    def cell_of_points(self, x: int, y: int) -> tuple[str, bool]:
        """The character of a cell, and whether there is a point in it."""
        points = self._points[y][x]
        dots = points | self._line[y][x]
        return (chr(BLANK + dots) if dots else " "), bool(points)


def column_edges(xs: Sequence[float], columns: int, end: float) -> list[int]:
    """Index of the first point of each dot column, and one past the last point; `xs` ascends from 0 to `end`."""
    if end <= 0:
        return [0, *[len(xs)] * columns]
    return [bisect_left(xs, end * column / columns) for column in range(columns)] + [len(xs)]


def draw(canvas: Canvas, xs: Sequence[float], ys: Sequence[float], end: float, scale: Scale) -> list[bool]:
    """Draw points and best-so-far line; NaN in `ys` is a failure. Returns which cells of the axis have a failure.

    `end` is the right edge of the horizontal axis, at least the last of `xs`. Each column shows its best, its worst
    and up to SAMPLES points between.
    """
    edges = column_edges(xs, canvas.columns, end)
    failed = [False] * canvas.width
    best = math.inf
    last_row: int | None = None
    last_used = max((column for column in range(canvas.columns) if edges[column + 1] > edges[column]), default=-1)
    for column in range(last_used + 1):
        values = ys[edges[column] : edges[column + 1]]
        timed = [value for value in values if value == value]
        failed[column // 2] |= len(timed) < len(values)
        if timed:
            low, high = min(timed), max(timed)
            step = max(1, len(timed) // SAMPLES)
            for value in (low, high, *timed[::step]):
                canvas.point(column, scale.row(value))
            best = min(best, low)
        if best < math.inf:
            row = scale.row(best)
            canvas.line(column, row if last_row is None else last_row, row)
            last_row = row
    return failed
