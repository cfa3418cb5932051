"""The panels of the Prior tab: the verdict, predicted against measured, what the trees look at, and two lists."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from emmy_tui import format as fmt
from emmy_tui.recorded import recorded
from emmy_tui.text import Glyphs, Line, Tone, clean, crop, fit_line, left, line_width, right, wrap
from emmy_tui.view import View
from emmy_tui.widgets.braille import Canvas
from emmy_tui.widgets.kernel_name import suffixed, told_apart
from emmy_tui.widgets.panel import ListPanel, Panel, titled
from engine.prior import models_path

if TYPE_CHECKING:
    from engine.deploy import PriorReport
    from engine.deploy.prior_report import KernelTrust, PredictedPair

AXIS = 7
WORST = 50


class Told(Panel):
    """A panel of the report; `said` stands there until it has come."""

    def __init__(self, view: View, *, id: str) -> None:
        super().__init__(view, id=id)
        self.report: PriorReport | None = None
        self.said = "Reading the database"

    def show(self, report: PriorReport | None, said: str = "") -> None:
        self.report, self.said = report, said
        self.repaint()


def verdict_spans(report: PriorReport) -> Line:
    """Whether the learned model steers, in one word and its reason."""
    if not report.learned:
        return [("COLD", Tone.BUSY), (f"  {report.reason}", Tone.PLAIN)]
    word, tone = ("TRUSTED", Tone.GOOD) if report.trusted else ("QUARANTINED", Tone.BAD)
    reason = report.reason.removeprefix(word.lower()).lstrip(" :,")
    return [(word, tone), (f"  {reason}", Tone.PLAIN)]


class Trust(Told):
    """Which prior steers the next run, and why."""

    def title(self) -> Line:
        return titled(recorded("Prior", self.view))

    def note(self) -> Line:
        return [(clean(self.report.version, self.view.glyphs), Tone.DIM)] if self.report else []

    def lines(self, width: int, height: int) -> list[Line]:
        report = self.report
        if report is None:
            return [[(row, Tone.DIM)] for row in wrap(self.said, max(1, width))]
        learned = f"learned {_number(report.spearman)}   " if report.learned else ""
        numbers = f"rank correlation: {learned}cold {_number(report.cold_spearman)}"
        counts = f"over {fmt.plural(len(report.kernels), 'kernel')}{_sample_text(report)}"
        lines: list[Line] = [verdict_spans(report), [(f"{numbers}   {counts}", Tone.PLAIN)]]
        if report.problem:
            lines.append([(clean(report.problem, self.view.glyphs), Tone.BAD)])
        elif missing := missing_model(self.view, report):
            lines.append([(clean(missing, self.view.glyphs), Tone.BUSY)])
        elif report.trained_on:
            fitted = f"{fmt.plural(report.rows, 'row')} of {fmt.plural(len(report.trained_on), 'kernel')}"
            lines.append([(f"trained on {fitted}: {self.view.key('trained')} lists them", Tone.DIM)])
        else:
            lines.append([("nothing was trained yet: emmy fit learns from this database", Tone.DIM)])
        return lines


def _sample_text(report: PriorReport) -> str:
    """On how many rows of how many the kernels were judged, where it wasn't on all of them."""
    sampled = report.sampled
    return f", {fmt.count(sampled[0])} of {fmt.count(sampled[1])} rows" if sampled else ""


def missing_model(view: View, report: PriorReport) -> str:
    """A sentence where the shown runs fitted another model than the one that is here, as in a copy of the database
    alone; else ""."""
    fitted = view.snapshot.prior_refit
    if fitted is None or fitted.version in (report.learned, report.version):
        return ""
    which = "the shipped model" if report.shipped else report.version
    file = models_path(Path(view.database)).name if view.database else "the models file"
    return f"{which} is shown: {file} with {fitted.version.rpartition('-')[0]} is missing"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


class Scatter(Told, can_focus=True):
    """Predicted against measured, both on one logarithmic scale; on the line they agree. `kernel` "" shows all."""

    def __init__(self, view: View, *, id: str = "scatter") -> None:
        super().__init__(view, id=id)
        self.kernel = ""
        self.label = ""

    def title(self) -> Line:
        return titled("Predicted vs measured")

    def note(self) -> Line:
        if not self.kernel:
            return [("all kernels", Tone.DIM)]
        room = max(8, self.inner_size.width - line_width(self.title()) - 5)
        return [(crop(clean(self.label, self.view.glyphs), room, self.view.glyphs), Tone.DIM)]

    def lines(self, width: int, height: int) -> list[Line]:
        pairs = self.report.pairs if self.report else ()
        own = [pair for pair in pairs if not self.kernel or pair.kernel == self.kernel]
        if not own:
            return [[("No measured candidate has a prediction", Tone.DIM)]] if self.report else []
        if width < AXIS + 8 or height < 5:
            return [[(f"{len(own)} candidates", Tone.PLAIN)]]
        return scatter_lines(own, width, height, self.view.glyphs)


def scatter_lines(pairs: Sequence[PredictedPair], width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Measured up, predicted to the right, in exactly `height` lines."""
    canvas = Canvas(width - AXIS - 1, height - 2)
    values = [us for pair in pairs for us in (pair.predicted_us, pair.measured_us)]
    low, high = min(values), max(values)
    low, high = (low / 1.1, high * 1.1) if high <= low * 1.05 else (low, high)

    def part(us: float) -> float:
        return math.log(us / low) / math.log(high / low)

    for column in range(canvas.columns):
        row = round((1 - column / max(1, canvas.columns - 1)) * (canvas.rows - 1))
        canvas.line(column, row, row)
    for pair in pairs:
        column = round(part(pair.predicted_us) * (canvas.columns - 1))
        canvas.point(column, round((1 - part(pair.measured_us)) * (canvas.rows - 1)))
    lines: list[Line] = []
    for y in range(canvas.height):
        label = fmt.us(high) if y == 0 else fmt.us(low) if y == canvas.height - 1 else ""
        bar = "|" if glyphs.ascii else "┤" if label else "│"
        lines.append([(right(label, AXIS) + bar, Tone.DIM), *_cells(canvas, y, glyphs.ascii)])
    lines.append([(" " * AXIS + ("+" if glyphs.ascii else "└") + glyphs.horizontal * canvas.width, Tone.DIM)])
    ends = f"{fmt.us(high)} us"
    room = max(0, canvas.width - len(ends))
    said = f"{fmt.us(low)}  predicted; up: measured"
    middle = left(said if len(said) < room else f"{fmt.us(low)}  predicted", room, glyphs)
    lines.append([(" " * (AXIS + 1) + middle + ends, Tone.DIM)])
    return [fit_line(line, width, glyphs) for line in lines]


def _cells(canvas: Canvas, y: int, ascii_only: bool) -> Line:
    """Points go over the line here: the line is only where they should be."""
    spans: Line = []
    for x in range(canvas.width):
        dots, point = canvas.cell_of_points(x, y)
        character = ("#" if point else ".") if ascii_only and dots != " " else dots
        tone = Tone.ACCENT if point else Tone.DIM
        if spans and (spans[-1][1] == tone or character == " "):
            spans[-1] = (spans[-1][0] + character, spans[-1][1])
        else:
            spans.append((character, tone))
    return spans


class Importance(Told):
    """What the trees gain from each column; where nothing was learned, how each family is ranked."""

    def title(self) -> Line:
        return titled("What decides" if self.report and self.report.importance else "Families")

    def note(self) -> Line:
        return [("% of what the trees gain", Tone.DIM)] if self.report and self.report.importance else []

    def lines(self, width: int, height: int) -> list[Line]:
        if self.report is None:
            return []
        if self.report.importance:
            return importance_lines(self.report.importance, width, height, self.view.glyphs)
        return family_lines(self.report, width, self.view.glyphs)


def importance_lines(importance: Sequence[tuple[str, float]], width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """A bar a column, the most important first."""
    top = sorted(importance, key=lambda one: -one[1])[:height]
    name = min(22, max(8, width // 2))
    room = max(1, width - name - 7)
    most = max((share for _, share in top), default=0.0) or 1.0
    return [
        [
            (left(clean(column, glyphs), name, glyphs) + " ", Tone.PLAIN),
            (right(f"{share * 100:.1f}", 5) + " ", Tone.DIM),
            (glyphs.bar * max(1 if share > 0 else 0, round(share / most * room)), Tone.ACCENT),
        ]
        for column, share in top
    ]


def family_lines(report: PriorReport, width: int, glyphs: Glyphs) -> list[Line]:
    name = max(8, width - 29)
    head = left("family", name) + right("rank r", 8) + right("winner", 8) + right("regret 10", 11)
    lines: list[Line] = [[(head, Tone.DIM)]]
    for one in report.families:
        numbers = right(f"{one.spearman:.2f}", 8) + right(f"#{one.winner_rank:.0f}", 8)
        numbers += right(f"{one.regret_10 * 100:.1f}%", 11)
        lines.append([(left(clean(one.family, glyphs), name, glyphs) + numbers, Tone.PLAIN)])
    return lines


class TrustList(ListPanel):
    """How each kernel is ranked, the worst first. Enter shows its candidates alone."""

    class Chosen(Message):
        def __init__(self, kernel: KernelTrust) -> None:
            super().__init__()
            self.kernel = kernel

    def __init__(self, view: View, *, id: str = "ranked") -> None:
        super().__init__(view, id=id)
        self.kernels: Sequence[KernelTrust] = ()
        self.said = ""

    def title(self) -> Line:
        return titled("Kernels, worst first")

    def note(self) -> Line:
        return [("winner: its predicted place  regret: best of first 1, 10", Tone.DIM)] if self.kernels else []

    def empty(self) -> str:
        return self.said

    def show(self, report: PriorReport | None, said: str = "") -> None:
        self.kernels = sorted(report.kernels, key=lambda one: one.learned.spearman) if report else ()
        self.said = said or ("No kernel has candidates enough to be ranked" if report else "")
        self.repaint()

    def count(self) -> int:
        return len(self.kernels)

    def _widths(self, width: int) -> tuple[int, int]:
        rest = width - 7 - 8 - 8 - 8 - 9 - 9
        shape = max(0, rest - 21) if width >= 90 else 0
        return max(8, rest - shape - (shape > 0)), shape

    def header(self, width: int) -> Line | None:
        name, shape = self._widths(width)
        text = left("kernel", name) + (" " + left("shape", shape) if shape else "")
        text += right("rows", 7) + right("rank r", 8) + right("cold", 8) + right("winner", 8)
        return [(text + right("regret 1", 9) + right("of 10", 9), Tone.DIM)]

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        name, shape = self._widths(width)
        suffixes = told_apart((one.kernel, one.label or one.family) for one in self.kernels)
        shown = self.kernels[start : start + count]
        return [self._line(one, name, shape, "" if shape else suffixes[one.kernel]) for one in shown]

    def _line(self, one: KernelTrust, name: int, shape: int, suffix: str) -> Line:
        glyphs, ranked = self.view.glyphs, one.learned
        label = one.label or one.family or one.kernel
        spans: Line = [(left(suffixed(clean(label, glyphs), suffix, name, glyphs), name), Tone.PLAIN)]
        if shape:
            spans.append((" " + left(clean(one.shape, glyphs), shape, glyphs), Tone.DIM))
        cold = _number(one.cold.spearman if one.cold else None)
        tone = Tone.BAD if ranked.spearman < 0.5 else Tone.PLAIN
        numbers = right(cold, 8) + right(f"#{ranked.winner_rank}", 8)
        regrets = "".join(right(f"{share * 100:.1f}%", 9) for share in ranked.regrets[:2])
        return [
            *spans,
            (right(fmt.count(one.rows), 7), Tone.DIM),
            (right(f"{ranked.spearman:.2f}", 8), tone),
            (numbers + regrets, Tone.PLAIN),
        ]

    def action_select(self) -> None:
        if self.cursor < len(self.kernels):
            self.post_message(self.Chosen(self.kernels[self.cursor]))


class ResidualList(ListPanel):
    """The candidates that the prior is most wrong about."""

    def __init__(self, view: View, *, id: str = "residuals") -> None:
        super().__init__(view, id=id)
        self._pairs: list[PredictedPair] = []
        self._labels: dict[str, str] = {}
        self._suffixes: dict[str, str] = {}

    def title(self) -> Line:
        return titled("Worst residuals")

    def empty(self) -> str:
        return "No candidate was predicted"

    def show(self, report: PriorReport | None, said: str = "") -> None:
        pairs = report.pairs if report else ()
        self._pairs = sorted(pairs, key=lambda pair: -abs(pair.residual))[:WORST]
        self._labels = {one.kernel: one.label or one.family for one in report.kernels} if report else {}
        self._suffixes = told_apart(self._labels.items())
        self.repaint()

    def count(self) -> int:
        return len(self._pairs)

    def header(self, width: int) -> Line | None:
        text = left("kernel", max(8, width - 34)) + right("predicted", 10) + right("measured", 10)
        return [(text + right("off", 14), Tone.DIM)]

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        lines: list[Line] = []
        for pair in self._pairs[start : start + count]:
            label = clean(self._labels.get(pair.kernel) or pair.family or pair.kernel, self.view.glyphs)
            off = 2 ** abs(pair.residual)
            words = f"{off:.2f}{self.view.glyphs.times} {'slower' if pair.residual > 0 else 'faster'}"
            room = max(8, width - 34)
            text = left(suffixed(label, self._suffixes.get(pair.kernel, ""), room, self.view.glyphs), room)
            numbers = right(fmt.us(pair.predicted_us), 10) + right(fmt.us(pair.measured_us), 10)
            lines.append([(text + numbers, Tone.PLAIN), (right(words, 14), Tone.BUSY)])
        return lines


def trained_lines(report: PriorReport, width: int, glyphs: Glyphs) -> list[Line]:
    """Every kernel that the model was fitted to."""
    if not report.trained_on:
        return [[("The cold model answers: it was fitted to nothing of this database.", Tone.PLAIN)]]
    ships, elsewhere = (
        (", which ships with Emmy", "recorded elsewhere") if report.shipped else ("", "not in this database")
    )
    lines: list[Line] = [
        [
            (f"{report.learned}{ships}: {fmt.plural(len(report.trained_on), 'kernel')}", Tone.HEAD),
        ],
        [],
    ]
    for one in sorted(report.trained_on, key=lambda one: -one.rows):
        known = one.label or one.family
        name = f"{known} {one.shape}" if known else f"{one.kernel[:12]}, {elsewhere}"
        text = left(clean(name, glyphs), max(20, width - 30), glyphs)
        lines.append(
            [(text + right(fmt.plural(one.rows, "row"), 12) + "  ", Tone.PLAIN), (clean(one.gpu, glyphs), Tone.DIM)]
        )
    return lines
