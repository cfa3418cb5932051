"""How the best time of one kernel fell: every trial as a dot, the best so far as a step line, failures on the axis.

Trials are timed in the ranking regime, so the curve is of ranking times; the best beside it is what deploys.
"""

from __future__ import annotations

import math
from array import array

from emmy_tui import format as fmt
from emmy_tui.known import unsearched
from emmy_tui.text import Line, Tone, clean, fit_line, left, right, wrap
from emmy_tui.view import View
from emmy_tui.widgets.braille import Canvas, Drawing, Scale
from emmy_tui.widgets.kernel_name import kernel_name
from emmy_tui.widgets.panel import Panel, titled
from engine.snapshot import KernelRow

AXIS = 7
PAUSE_S = 120.0
"""Two trials of a kernel that are further apart belong to two runs: what lies between is no time of its search."""


class Points:
    """A kernel's trials as plain arrays, grown by what is new; `paused` says that time between two runs is left out."""

    def __init__(self, row: KernelRow) -> None:
        self.row = row
        self.trials = array("d")
        self.seconds = array("d")
        self.us = array("d")
        self.low, self.high = math.inf, -math.inf
        """The best and the worst time in us; infinite while there is none."""
        self.paused = False
        self._last_at = 0.0

    def update(self) -> None:
        points = self.row.points
        for point in points[len(self.us) :]:
            gap = point.at - self._last_at if self.us else 0.0
            between_runs, self._last_at = gap > PAUSE_S, point.at
            self.paused = self.paused or between_runs
            self.trials.append(point.trial)
            self.seconds.append((self.seconds[-1] if self.us else 0.0) + (0.0 if between_runs else gap))
            self.us.append(math.nan if point.us is None else point.us)
            if point.us is not None:
                self.low, self.high = min(self.low, point.us), max(self.high, point.us)


class Curve(Panel, can_focus=True):
    """The selected kernel's curve."""

    def __init__(self, view: View, *, id: str = "curve") -> None:
        super().__init__(view, id=id)
        self._points: Points | None = None
        self._drawing: Drawing | None = None

    def title(self) -> Line:
        kernel = self.view.kernel
        glyphs = self.view.glyphs
        name = clean(kernel_name(kernel, self.view.snapshot), glyphs) if kernel else ""
        return titled("Best vs trial", f"{glyphs.dot} {name}" if kernel else "")

    def note(self) -> Line:
        scale = "log y" if self.view.log_scale else "linear y"
        return [(f"ranking us {self.view.glyphs.dot} {scale} {self.view.glyphs.dot} L", Tone.DIM)]

    def lines(self, width: int, height: int) -> list[Line]:
        kernel = self.view.kernel
        if kernel is None or not kernel.points:
            return [[(row, Tone.DIM)] for row in wrap(unsearched(kernel) or "No trial yet", max(1, width))]
        if width < AXIS + 6 or height < 4:
            return [[(f"best {fmt.us(kernel.chosen_us)} us", Tone.PLAIN)]]
        if self._points is None or self._points.row is not kernel:
            self._points, self._drawing = Points(kernel), None
        self._points.update()
        self._drawing = drawn(self._points, width, height, self.view, self._drawing)
        return plot(self._points, self._drawing, width, self.view)


def drawn(points: Points, width: int, height: int, view: View, before: Drawing | None = None) -> Drawing:
    """The dots of the curve: those that were drawn before, with what is new, or all where an axis is another one."""
    xs = points.seconds if view.by_time else points.trials
    canvas = Canvas(width - AXIS - 1, height - 2)
    low, high = (points.low, points.high) if points.low < math.inf else (1.0, 2.0)
    scale = Scale.over(low, high, canvas.rows, view.log_scale)
    drawing = Drawing(canvas, rounded_end(float(xs[-1])), scale, xs)
    if before is not None and before.goes_on_as(drawing):
        drawing = before
    drawing.draw(points.us)
    return drawing


def plot(points: Points, drawing: Drawing, width: int, view: View) -> list[Line]:
    """The curve with its axes, in two lines more than its drawing is high."""
    glyphs, canvas, end = view.glyphs, drawing.canvas, drawing.end
    timed, low, high = points.low < math.inf, points.low, points.high
    lines: list[Line] = []
    for y in range(canvas.height):
        label = "" if not timed else fmt.us(high) if y == 0 else fmt.us(low) if y == canvas.height - 1 else ""
        tick = "┤" if label else "│"
        axis = f"{right(label, AXIS)}{('|' if glyphs.ascii else tick)}"
        lines.append([(axis, Tone.DIM), *_cells(canvas, y, glyphs.ascii)])
    if not timed:
        lines[0] = [(f"{' ' * AXIS}{'|' if glyphs.ascii else '│'}", Tone.DIM), (" every trial failed", Tone.BAD)]
    lines.append(_axis(drawing.failed, view))
    unit = ("time in runs" if points.paused else "time") if view.by_time else "trials"
    last = fmt.duration(end) if view.by_time else fmt.count(int(end))
    room = canvas.width - len(last) - 2
    lines.append([(f"{' ' * AXIS}0 {left(f'{unit} (t)', max(0, room), glyphs)}{last}", Tone.DIM)])
    return [fit_line(line, width, glyphs) for line in lines]


def rounded_end(last: float) -> float:
    """The axis ends at a round number at or past `last`, so that the picture moves seldom while trials come in."""
    power = 10.0 ** math.floor(math.log10(max(last, 10.0)))
    return next(power * step for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if power * step >= last)


def _cells(canvas: Canvas, y: int, ascii_only: bool) -> Line:
    spans: Line = []
    for character, line in canvas.cells(y):
        if ascii_only and character != " ":
            character = "#" if line else "."
        tone = Tone.ACCENT if line else Tone.DIM
        if spans and (spans[-1][1] == tone or character == " "):
            spans[-1] = (spans[-1][0] + character, spans[-1][1])
        else:
            spans.append((character, tone))
    return spans


def _axis(failed: list[bool], view: View) -> Line:
    glyphs = view.glyphs
    spans: Line = [(f"{' ' * AXIS}{'+' if glyphs.ascii else '└'}", Tone.DIM)]
    for mark in failed:
        text, tone = (glyphs.failed, Tone.BAD) if mark else (glyphs.horizontal, Tone.DIM)
        if spans[-1][1] == tone:
            spans[-1] = (spans[-1][0] + text, tone)
        else:
            spans.append((text, tone))
    return spans
