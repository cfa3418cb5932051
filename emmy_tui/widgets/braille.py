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
    """Maps a value to a dot row, 0 at the top; both ends are shown. `span` is what lies between them, as a logarithm
    where the scale is one."""

    low: float
    span: float
    rows: int
    log: bool

    @classmethod
    def over(cls, low: float, high: float, rows: int, log: bool) -> Scale:
        if log and low <= 0:
            log = False
        if not high > low:
            low, high = (low / 1.01, low * 1.01) if low > 0 else (low - 1.0, low + 1.0)
        return cls(low, math.log(high / low) if log else high - low, rows, log)

    def row(self, value: float) -> int:
        if self.log:
            part = math.log(value / self.low) / self.span if value > 0 else 0.0
        else:
            part = (value - self.low) / self.span
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

    def clear(self, column: int) -> None:
        """Take the dots of both kinds out of a column."""
        x, others = column // 2, ~sum(dots[column % 2] for dots in DOTS)
        for y in range(self.height):
            self._points[y][x] &= others
            self._line[y][x] &= others

    def line(self, column: int, from_row: int, to_row: int) -> None:
        """A vertical stroke; equal rows make a dot."""
        for row in range(min(from_row, to_row), max(from_row, to_row) + 1):
            self._line[row // 4][column // 2] |= DOTS[row % 4][column % 2]

    def cells(self, y: int) -> list[tuple[str, bool]]:
        """The characters of a line of cells, and whether the curve runs through each."""
        pairs = zip(self._line[y], self._points[y], strict=True)
        return [(chr(BLANK + dots) if (dots := line | points) else " ", bool(line)) for line, points in pairs]

    def cell_of_points(self, x: int, y: int) -> tuple[str, bool]:
        """The character of a cell, and whether there is a point in it."""
        points = self._points[y][x]
        dots = points | self._line[y][x]
        return (chr(BLANK + dots) if dots else " "), bool(points)


class Drawing:
    """A curve that is drawn on as points come at the end of `xs`, while its axes stay as they are. `xs` ascends from 0,
    `end` is the right edge of their axis, at least the last of them; `failed` says which of its cells have a failure.
    """

    def __init__(self, canvas: Canvas, end: float, scale: Scale, xs: Sequence[float]) -> None:
        self.canvas, self.end, self.scale, self._xs = canvas, end, scale, xs
        self.failed = [False] * canvas.width
        self._column = self._first = 0
        """The column that was drawn last, and the index of its first point: more points may fall into it."""
        self._before: tuple[float, int | None] = (math.inf, None)
        """The best of the columns before it, and its row."""

    def goes_on_as(self, other: Drawing) -> bool:
        """Whether both have the same axes, for the same places."""
        axes = [(one.canvas.width, one.canvas.height, one.end, one.scale) for one in (self, other)]
        return self._xs is other._xs and axes[0] == axes[1]

    def draw(self, ys: Sequence[float]) -> None:
        """Points and best-so-far line; NaN in `ys` is a failure. Each column shows its best, its worst and up to
        SAMPLES points between."""
        xs = self._xs
        column, first = self._column, self._first
        best, last_row = self._before
        self.canvas.clear(column)
        while first < len(xs):
            self._column, self._first, self._before = column, first, (best, last_row)
            past = self._past(column, xs, first)
            best = min(best, self._points(column, ys[first:past]))
            if best < math.inf:
                row = self.scale.row(best)
                self.canvas.line(column, row if last_row is None else last_row, row)
                last_row = row
            column, first = column + 1, past

    def _past(self, column: int, xs: Sequence[float], first: int) -> int:
        """One past the last point of a column."""
        if self.end <= 0 or column == self.canvas.columns - 1:
            return len(xs)
        return bisect_left(xs, self.end * (column + 1) / self.canvas.columns, first)

    def _points(self, column: int, values: Sequence[float]) -> float:
        """Draw a column's points; returns the best, infinite where it has none."""
        timed = [value for value in values if value == value]
        self.failed[column // 2] |= len(timed) < len(values)
        if not timed:
            return math.inf
        low, high = min(timed), max(timed)
        step = max(1, len(timed) // SAMPLES)
        for value in (low, high, *timed[::step]):
            self.canvas.point(column, self.scale.row(value))
        return low
