"""The kernels of two runs side by side: times, ratio, interval and verdict."""

from __future__ import annotations

from enum import StrEnum

from textual.message import Message

from emmy_tui import format as fmt
from emmy_tui.comparison import Comparison, Pair, Side, Verdict
from emmy_tui.knob_words import value_text
from emmy_tui.text import Glyphs, Line, Tone, clean, crop, left, right, width_of
from emmy_tui.view import View
from emmy_tui.widgets.panel import ListPanel, Panel, titled
from engine.vocabulary import KnobValue, Regime

TIME, RATIO, INTERVAL, VERDICT, BY = 8, 7, 13, 16, 6
WIDE_FROM = 100
INTERVAL_FROM = 68
"""Cells from which the interval has room beside a whole verdict."""
LEAST_TARGET = 8
_TONES = {Verdict.A_FASTER: Tone.GOOD, Verdict.B_FASTER: Tone.BAD}
_BY = {Regime.DEPLOY: "deploy", Regime.RANKING: "rank"}


class PairOrder(StrEnum):
    """The orders that `s` goes through."""

    RUN = "run"
    RATIO = "ratio"
    TIME = "time"


_ORDERS = {
    "kernel": PairOrder.RUN,
    **dict.fromkeys(("A", "B", "us"), PairOrder.TIME),
    **dict.fromkeys(("A/B", "interval", "verdict"), PairOrder.RATIO),
}


def pair_order_of(heading: str) -> PairOrder | None:
    """The order that a word of the headings stands for."""
    return _ORDERS.get(heading)


def _widths(width: int) -> tuple[int, int, int, int]:
    """Of kernel, interval, regime and what differs; 0 leaves a column out."""
    fixed = 2 * (TIME + 1) + RATIO + 1 + VERDICT + 1
    interval = INTERVAL if width >= INTERVAL_FROM else 0
    rest = width - fixed - (interval + 1 if interval else 0)
    if width < WIDE_FROM:
        return max(10, rest - 1), interval, 0, 0
    kernel = min(36, max(18, rest // 2 - BY))
    return kernel, interval, BY, max(0, rest - kernel - BY - 3)


def header_line(width: int) -> Line:
    kernel, interval, by, differs = _widths(width)
    text = " " + left("kernel", kernel) + right("A us", TIME + 1) + right("B us", TIME + 1) + right("A/B", RATIO + 1)
    text += (" " + right("interval", interval) if interval else "") + " " + left("verdict", VERDICT)
    text += (" " + left("by", by) if by else "") + (" " + left("where they differ", differs) if differs else "")
    return [(text, Tone.DIM)]


def pair_line(pair: Pair, width: int, glyphs: Glyphs) -> Line:
    kernel, interval, by, differs = _widths(width)
    name = clean(f"{pair.label} {pair.shape}", glyphs)
    spans: Line = [(" " + left(name, kernel, glyphs), Tone.PLAIN)]
    spans.append((right(fmt.us(pair.a.us if pair.a else None), TIME + 1), Tone.PLAIN))
    spans.append((right(fmt.us(pair.b.us if pair.b else None), TIME + 1), Tone.PLAIN))
    spans.append((right(ratio_text(pair), RATIO + 1), Tone.PLAIN))
    if interval:
        spans.append((" " + right(interval_text(pair), interval), Tone.DIM))
    spans.append((" " + left(str(pair.verdict), VERDICT, glyphs), _TONES.get(pair.verdict, Tone.PLAIN)))
    if by:
        spans.append((" " + left(_BY[pair.regime] if pair.regime else "-", by), Tone.DIM))
    if differs:
        spans.append((" " + left(clean(difference(pair), glyphs), differs, glyphs), Tone.DIM))
    return spans


def ratio_text(pair: Pair) -> str:
    return "-" if pair.ratio is None else fmt.ratios((pair.ratio,), apart=pair.verdict in _TONES)[0]


def interval_text(pair: Pair) -> str:
    """Both ends, in as many decimals as the verdict needs to be seen in them."""
    if pair.low is None or pair.high is None:
        return "-"
    return "-".join(fmt.ratios((pair.low, pair.high), apart=pair.verdict in _TONES))


def difference(pair: Pair) -> str:
    """The knobs that the two schedules disagree on: BLOCK_K 16|32."""
    if pair.a is None or pair.b is None:
        return ""
    names = sorted({*pair.a.schedule, *pair.b.schedule})
    words = []
    for name in names:
        a, b = pair.a.schedule.get(name), pair.b.schedule.get(name)
        if (a, type(a)) != (b, type(b)):
            words.append(f"{name} {_value(a)}|{_value(b)}")
    return ", ".join(words) or "same knobs"


class CompareList(ListPanel):
    """The pairs of one comparison."""

    class Opened(Message):
        """A person opened a kernel."""

        def __init__(self, pair: Pair) -> None:
            super().__init__()
            self.pair = pair

    def __init__(self, view: View, *, id: str = "pairs") -> None:
        super().__init__(view, id=id)
        self.comparison: Comparison | None = None
        self.order = PairOrder.RUN
        self.reversed = False
        self.said = "Reading the database"

    def title(self) -> Line:
        return titled("Compare")

    def note(self) -> Line:
        one = self.comparison
        if one is None:
            return []
        arrow = self.view.glyphs.rising if self.reversed else self.view.glyphs.falling
        by = f"by {self.order} {arrow}  " if self.order is not PairOrder.RUN or self.reversed else ""
        common = sum(pair.ratio is not None for pair in one.pairs)
        mean = f"  geomean A/B {one.geomean:.3f}" if one.geomean is not None else ""
        return [(by, Tone.ACCENT), (f"common {common}/{len(one.pairs)}{mean}", Tone.DIM)]

    def empty(self) -> str:
        return self.said

    def count(self) -> int:
        return len(self.comparison.pairs) if self.comparison else 0

    def header(self, width: int) -> Line | None:
        return header_line(width)

    def ordered(self) -> list[Pair]:
        """The pairs in the order of the list; what lacks the number comes last, or first where it is reversed."""
        pairs = list(self.comparison.pairs) if self.comparison else []
        if self.order is PairOrder.RATIO:
            pairs.sort(key=lambda pair: -(pair.ratio or 0.0))
        elif self.order is PairOrder.TIME:
            pairs.sort(key=lambda pair: -max(pair.a.us if pair.a else 0.0, pair.b.us if pair.b else 0.0))
        return pairs[::-1] if self.reversed else pairs

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        return [pair_line(pair, width, self.view.glyphs) for pair in self.ordered()[start : start + count]]

    def current(self) -> Pair | None:
        return self.under_cursor(self.ordered())

    def show(self, comparison: Comparison) -> None:
        self.comparison, self.said = comparison, "These runs measured nothing"
        self.repaint()

    def forget(self, sentence: str) -> None:
        self.comparison, self.said = None, sentence
        self.repaint()

    def action_select(self) -> None:
        pair = self.current()
        if pair is not None:
            self.post_message(self.Opened(pair))


class Sides(Panel):
    """Which run is A and which is B."""

    def __init__(self, view: View, pairs: CompareList, *, id: str = "sides") -> None:
        super().__init__(view, id=id)
        self._pairs = pairs

    def title(self) -> Line:
        return titled("Runs")

    def lines(self, width: int, height: int) -> list[Line]:
        one, glyphs = self._pairs.comparison, self.view.glyphs
        if one is None:
            return []
        lines: list[Line] = [
            [(crop(f" {name} {side_text(side, glyphs, width - 3)}", width, glyphs), Tone.PLAIN)]
            for name, side in (("A", one.a), ("B", one.b))
        ]
        if not one.one_context:
            lines.append(
                [(" Another GPU or toolchain: the ratio says how these differ, not the schedules.", Tone.BUSY)]
            )
        return lines


def side_text(side: Side, glyphs: Glyphs, width: int) -> str:
    """The run in `width` cells: what was tuned is cut first, as the GPU and the file tell two databases apart."""
    run = side.run
    before = "  ".join((run.id[:8], fmt.moment(run.started_at)))
    after = clean("  ".join(word for word in (run.gpu, side.path.name, side.controls) if word), glyphs)
    room = width - width_of(before) - width_of(after) - 4
    target = crop(clean(run.target, glyphs), max(LEAST_TARGET, room), glyphs)
    return "  ".join(word for word in (before, target, after) if word)


def _value(value: KnobValue | None) -> str:
    return "-" if value is None else value_text(value) or "off"
