"""The rows of the Variants tab: numbers of all candidates in memory, and of the rows only the pages around the view."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from textual.message import Message

from emmy_tui import format as fmt
from emmy_tui.desk import Desk
from emmy_tui.knob_words import short_words
from emmy_tui.predicting import Predictions, time_beside
from emmy_tui.recorded import recorded
from emmy_tui.text import Glyphs, Line, Tone, clean, crop, left, line_width, right
from emmy_tui.view import View
from emmy_tui.widgets.kernel_name import Names
from emmy_tui.widgets.panel import ListPanel, titled
from engine.store import Candidate, Store
from engine.vocabulary import Regime

ROWS_ROOM, FILTER_FROM = 22, 6
"""Cells of the frame kept for the number of rows, and the least in which a part of the filter says something."""
AROUND = 64
KEPT = 2048

SORTS = ("best", "us", "registers", "spills", "shared", "error", "trial")
"""What `s` goes through: columns that the store sorts by."""

_HEADS = {
    "best": "us",
    "us": "ranking",
    "registers": "regs",
    "spills": "spill",
    "shared": "smem",
    "error": "error",
    "trial": "trial",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """What the numbers are numbers of: how they are sorted, and what is said above them; `why` there are none."""

    sort: str = "best"
    descending: bool = False
    filter_text: str = ""
    kernel: str = ""
    gpu: str = ""
    several: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths for a panel; 0 leaves a column out. A size from 1 KiB on is in KiB.

    `regime` is the column that says in which regime the time that counts was taken, `predicted` the prior's time and
    how far the measured one is from it. Where there is little room, a column that is left out comes in while rows are
    sorted by it, at the cost of `regime` in a very narrow panel.
    """

    number: int
    label: int
    knobs: int
    regime: int
    spread: int
    error: int
    trial: int
    predicted: int
    ranking: int

    @classmethod
    def of(cls, width: int, several: bool, sort: str = "best", rows: int = 0) -> Columns:
        wide = width >= 100
        label = 0 if not several or not wide else 18 if width >= LABEL_FROM else 8
        spread = 7 if wide and (not several or width >= LABEL_FROM) else 0
        error, trial = 8 if wide or sort == "error" else 0, 6 if wide or sort == "trial" else 0
        number, regime = (7, 6) if wide else (4, 4)
        number = max(number, len(str(rows)))
        if width < BY_FROM and sort in ("us", "error", "trial"):
            regime = 0
        predicted = 15 if width >= PREDICTED_FROM else 0
        ranking = 8 if wide or sort == "us" else 0
        sizes = (*NUMBERS.values(), label, regime, spread, error, trial, predicted, ranking)
        fixed = number + 3 + sum(size + 1 for size in sizes if size)
        return cls(number, label, max(8, width - fixed - STATE - 1), regime, spread, error, trial, predicted, ranking)


NUMBERS = {"best": 7, "registers": 5, "spills": 6, "shared": 5}
_REGIMES = {Regime.DEPLOY: ("deploy", "dep"), Regime.RANKING: ("rank", "rank")}
"""How the regime of a time is written, and where there is little room."""
STATE = 4
PREDICTED_FROM = 130
BY_FROM, LABEL_FROM = 70, 120


def sort_of(heading: str, glyphs: Glyphs) -> str:
    """What a heading sorts by; "" for one that doesn't."""
    word = heading.rstrip(glyphs.rising + glyphs.falling)
    return next((sort for sort, head in _HEADS.items() if head == word), "")


def order_text(shown: Shown) -> str:
    """What comes first where rows are sorted by the time that counts: times of two regimes don't compare."""
    if shown.sort != "best":
        return f"by {_HEADS[shown.sort]}"
    return "ranking times, then deploy" if shown.descending else "deploy times, then ranking"


def header_line(columns: Columns, shown: Shown, glyphs: Glyphs) -> Line:
    def head(name: str, width: int) -> str:
        arrow = (glyphs.falling if shown.descending else glyphs.rising) if shown.sort == name else ""
        return " " + right(_HEADS[name] + arrow, width)

    text = right("#", columns.number) + "   "
    text += left("kernel", columns.label) + " " if columns.label else ""
    text += left("knobs", columns.knobs) + head("best", NUMBERS["best"])
    text += " " + left("by", columns.regime) if columns.regime else ""
    text += head("us", columns.ranking) if columns.ranking else ""
    text += " " + right("+-", columns.spread) if columns.spread else ""
    text += " " + right("predicted", 9) + right("off%", columns.predicted - 9) if columns.predicted else ""
    text += "".join(head(name, width) for name, width in NUMBERS.items() if name != "best")
    text += head("error", columns.error) if columns.error else ""
    text += head("trial", columns.trial) if columns.trial else ""
    return [(text + " " + left("st", STATE), Tone.DIM)]


def variant_line(
    place: int,
    row: Candidate,
    marked: bool,
    columns: Columns,
    glyphs: Glyphs,
    predicted: float | None = None,
    name: str = "",
) -> Line:
    """One candidate; `place` is its place in the list, from 1, `name` its kernel's where that has a column. One without
    any time says why in place of numbers."""
    mark = glyphs.pinned if row.pinned else "A" if marked else " "
    spans: Line = [(right(str(place), columns.number) + " ", Tone.DIM), (f"{mark} ", Tone.ACCENT)]
    if columns.label:
        spans.append((left(name or clean(row.label, glyphs), columns.label, glyphs) + " ", Tone.DIM))
    spans.append((left(clean(short_words(row.schedule), glyphs), columns.knobs, glyphs), Tone.PLAIN))
    if row.best_us is None:
        spans.append((f" {glyphs.failed} {clean(row.failure or row.status, glyphs)}", Tone.BAD))
        return spans
    return [*spans, *_numbers(row, columns, glyphs, predicted)]


def _numbers(row: Candidate, columns: Columns, glyphs: Glyphs, predicted: float | None) -> Line:
    words = _REGIMES[row.regime] if row.regime is not None else ("-", "-")
    spans: Line = [(" " + right(fmt.us(row.best_us), NUMBERS["best"]), Tone.PLAIN)]
    if columns.regime:
        spans.append((" " + left(words[columns.regime < 6], columns.regime), Tone.DIM))
    if columns.ranking:
        spans.append((" " + right(fmt.us(row.us), columns.ranking), Tone.PLAIN))
    if columns.spread:
        half = (row.high_us - row.low_us) / 2 if row.high_us is not None and row.low_us is not None else None
        spans.append((" " + right(fmt.us(half), columns.spread), Tone.DIM))
    if columns.predicted:
        off = fmt.change(predicted, time_beside(row))
        spans.append((" " + right(fmt.us(predicted), 9) + right(off, columns.predicted - 9), Tone.DIM))
    shared = None if row.shared_bytes is None else fmt.size(row.shared_bytes)
    texts = (row.registers, row.spills, shared)
    widths = [NUMBERS[name] for name in ("registers", "spills", "shared")]
    cells = (right("-" if text is None else str(text), width) for text, width in zip(texts, widths, strict=True))
    spans.append((" " + " ".join(cells), Tone.PLAIN))
    if columns.error:
        spans.append((" " + right("-" if row.error is None else f"{row.error:.1e}", columns.error), Tone.DIM))
    if columns.trial:
        spans.append((" " + right(str(row.trial), columns.trial), Tone.DIM))
    failed = bool(row.failure)
    spans.append((" " + left(glyphs.failed if failed else "ok", STATE), Tone.BAD if failed else Tone.GOOD))
    return spans


class VariantList(ListPanel):
    """`show` gives it other numbers; the cursor stays on its row where that is still there."""

    class Opened(Message):
        """A person opened a row."""

        def __init__(self, row: Candidate) -> None:
            super().__init__()
            self.row = row

    def __init__(self, view: View, desk: Desk, *, id: str = "variants") -> None:
        super().__init__(view, id=id)
        self.numbers: array[int] = array("q")
        self.shown = Shown()
        self.marked: Candidate | None = None
        self.said = "Reading the database"
        self.counting = ""
        """The filter whose rows are being counted, while the rows of the one before are seen."""
        self._desk = desk
        self._rows: dict[int, Candidate] = {}
        self._predicted: dict[int, float] = {}
        self.predictions = Predictions()
        self._asked: frozenset[int] = frozenset()

    def title(self) -> Line:
        glyphs = self.view.glyphs
        shown = self.shown
        gpu = f"{glyphs.dot} {clean(shown.gpu, glyphs)}" if shown.gpu and self.size.width >= 100 else ""
        heading = recorded("Variants", self.view)
        room = max(8, self.inner_size.width - line_width(titled(heading, gpu)) - ROWS_ROOM)
        return titled(heading, crop(clean(self._kernel_here() or shown.kernel, glyphs), room, glyphs), gpu)

    def _kernel_here(self) -> str:
        """Of rows of several kernels, the kernel of the one under the cursor; "" where all are of one."""
        row = self.current_row() if self.shown.several else None
        known = self.view.snapshot.kernels.get(row.kernel) if row is not None else None
        return f"{known.label} {known.shape}" if known is not None else row.label if row is not None else ""

    def note(self) -> Line:
        glyphs = self.view.glyphs
        text = "counting" if self.counting else fmt.plural(len(self.numbers), "row")
        wanted = self.counting or self.shown.filter_text
        if not wanted:
            first = f"{order_text(self.shown)} {glyphs.dot} " if self.size.width >= BY_FROM else ""
            return [(first + text, Tone.DIM)] if self.numbers else []
        count = f"{glyphs.dot} {text}"
        room = self.inner_size.width - line_width(self.title()) - len(count) - 8
        if room < FILTER_FROM:
            return [(f"/ {count}", Tone.DIM)]
        return [(f"/ {crop(clean(wanted, glyphs), room, glyphs)} ", Tone.ACCENT), (count, Tone.DIM)]

    def empty(self) -> str:
        return self.said

    def count(self) -> int:
        return len(self.numbers)

    def header(self, width: int) -> Line | None:
        return header_line(self._columns(width), self.shown, self.view.glyphs)

    def _columns(self, width: int) -> Columns:
        return Columns.of(width, self.shown.several, self.shown.sort, len(self.numbers))

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        columns, glyphs = self._columns(width), self.view.glyphs
        numbers = self.numbers[start : start + count]
        if any(number not in self._rows for number in numbers):
            self._fetch(start, count)
        marked = self.marked.number if self.marked else None
        names = self._names() if columns.label else None
        lines: list[Line] = []
        for place, number in enumerate(numbers, start + 1):
            row = self._rows.get(number)
            if row is None:
                lines.append([(right(str(place), columns.number) + f"   {glyphs.ellipsis}", Tone.DIM)])
            else:
                predicted = self._predicted.get(number)
                name = names.name(row.kernel, columns.label, glyphs) if names else ""
                lines.append(variant_line(place, row, number == marked, columns, glyphs, predicted, name))
        return lines

    def _names(self) -> Names:
        """What tells the kernels of all rows that were read, and of the run, from each other."""
        kernels = self.view.snapshot.kernels
        read = {row.kernel: (row.kernel, row.label, "") for row in self._rows.values() if row.kernel not in kernels}
        return Names.of([*((row.kernel, row.label, row.shape) for row in kernels.values()), *read.values()])

    def _fetch(self, start: int, count: int) -> None:
        wanted = self.numbers[max(0, start - AROUND) : start + count + AROUND]
        missing = [number for number in wanted if number not in self._rows]
        if not missing or self._asked.issuperset(missing):
            return
        self._asked = frozenset(missing)

        def read(store: Store) -> tuple[dict[int, Candidate], dict[int, float]]:
            rows = store.candidate_rows(missing)
            return rows, self.predictions.of(store, rows.values()) if predicted else {}

        predicted = bool(Columns.of(self.inner_size.width, self.shown.several, self.shown.sort).predicted)
        self._desk.ask("page", read, self._fetched, self._not_fetched)

    def _fetched(self, found: tuple[dict[int, Candidate], dict[int, float]]) -> None:
        if len(self._rows) > KEPT:
            self._rows.clear()
            self._predicted.clear()
        self._rows.update(found[0])
        self._predicted.update(found[1])
        self.repaint()
        self.post_message(self.Moved(self))

    def _not_fetched(self, sentence: str) -> None:
        self.said = sentence
        self.numbers = array("q")
        self.repaint()

    def show(self, numbers: array[int], shown: Shown) -> None:
        """Other numbers, or the same ones with rows that may have changed."""
        before = self.current()
        height = self.cursor - self.top
        same_order = (shown.sort, shown.descending) == (self.shown.sort, self.shown.descending)
        self.numbers, self.shown, self.counting = numbers, shown, ""
        self._rows.clear()
        self._predicted.clear()
        self._asked = frozenset()
        key = self.view.key("clear_filter")
        away = f"{shown.why}; {key} shows all" if shown.why else f"No row passes the filter; {key} takes it away"
        self.said = away if shown.filter_text else "Nothing was measured yet"
        at_the_top = self.cursor == 0 and not same_order
        if before is not None and not at_the_top and (same_order or before in numbers):
            self.cursor = numbers.index(before) if before in numbers else 0
            self.top = self.cursor - height
        else:
            self.cursor = self.top = 0
        self.repaint()

    def forget(self, sentence: str) -> None:
        """There is nothing to show, and why."""
        self.numbers, self.said, self.counting = array("q"), sentence, ""
        self.repaint()

    def current(self) -> int | None:
        """The number under the cursor."""
        return self.under_cursor(self.numbers)

    def current_row(self) -> Candidate | None:
        """The row under the cursor, once it has been read."""
        number = self.current()
        return self._rows.get(number) if number is not None else None

    def held_rows(self) -> Sequence[Candidate]:
        return list(self._rows.values())

    def action_select(self) -> None:
        row = self.current_row()
        if row is not None:
            self.post_message(self.Opened(row))
