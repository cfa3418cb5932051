"""The Compare tab: two runs of one database, or of two, kernel by kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from emmy_tui import format as fmt
from emmy_tui.action import COMPARE
from emmy_tui.comparison import Choice, Comparison, Pair, listed_runs, read_comparison
from emmy_tui.desk import Desk
from emmy_tui.dialogs import ChoiceList, Dialog, Reading
from emmy_tui.export import Record, ask_format
from emmy_tui.knob_words import long_words
from emmy_tui.outlet import Outlet
from emmy_tui.prompt import ask_file
from emmy_tui.tabs.tab import Tab, tab_bindings
from emmy_tui.text import Glyphs, Line, Tone, clean, crop, left, wrap
from emmy_tui.view import View
from emmy_tui.widgets.compare_list import CompareList, PairOrder, Sides, difference, interval_text, pair_order_of
from emmy_tui.widgets.panel import ListPanel, Panel
from engine.store import Store, StoredRun

SIDES_LINES = 5


class CompareTab(Tab):
    """The two runs above, their kernels below."""

    BINDINGS: ClassVar[list[BindingType]] = tab_bindings(COMPARE)
    order = ("pairs",)
    first = "pairs"

    def __init__(self, view: View, desk: Desk, outlet: Outlet) -> None:
        super().__init__(view, id=f"{COMPARE}-tab")
        self._desk = desk
        self._outlet = outlet
        self.list = CompareList(view)
        self.sides = Sides(view, self.list)
        self.choice = Choice()

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.sides
            yield self.list

    @property
    def panels(self) -> dict[str, Panel]:
        return {"pairs": self.list, "sides": self.sides}

    @property
    def items(self) -> int:
        return self.list.count()

    def place(self, width: int, height: int) -> None:
        self.sides.display = not self.zoomed
        self.sides.styles.height = min(SIDES_LINES, max(3, height // 3))
        self.call_after_refresh(self.repaint_all)

    def shown(self) -> None:
        self.ask()

    def reset(self) -> None:
        self.choice = Choice()

    def ask(self) -> None:
        self.ask_for_rows(self._desk, read_comparison(self.choice), self._found, self._none, about=self.choice)

    def _found(self, comparison: Comparison) -> None:
        self.list.show(comparison)
        self.sides.repaint()
        self.app.paint_frame()  # type: ignore[attr-defined]

    def _try(self, choice: Choice) -> None:
        """Compare otherwise; where that can't be, what is shown stays."""

        def found(comparison: Comparison) -> None:
            self.choice = choice
            self._found(comparison)

        self.ask_for_rows(self._desk, read_comparison(choice), found, self._outlet.warn, again=False, about=choice)

    def _none(self, sentence: str) -> None:
        self.list.forget(sentence)
        self.sides.repaint()
        self.app.paint_frame()  # type: ignore[attr-defined]

    def action_run_a(self) -> None:
        self._choose("A")

    def action_run_b(self) -> None:
        self._choose("B")

    def _choose(self, side: str) -> None:
        """Pick a run from those of the side's database."""
        first = (side == "A") is not self.choice.swapped
        other = None if first else self.choice.other
        now, followed, lost = self.view.now, self.view.followed, self.view.lost

        def read(store: Store) -> list[tuple[StoredRun, str]]:
            if other is None:
                return listed_runs(store, now, followed, lost=lost)
            with Store.open(other, read_only=True) as second:
                return listed_runs(second, now)

        def chosen(run: str | None) -> None:
            if run:
                self.choice = replace(self.choice, a=run) if first else replace(self.choice, a=self._own(), b=run)
                self.ask()

        def show(runs: list[tuple[StoredRun, str]]) -> None:
            self.app.push_screen(RunChoice(self.view, runs, side), chosen)

        self._desk.ask("runs", read, show, self._outlet.warn, opens=True)

    def _own(self) -> str:
        """The run of the first database that is shown, which stays when another one is chosen to stand beside it."""
        one = self.list.comparison
        if one is None:
            return self.choice.a
        return (one.b if self.choice.swapped else one.a).run.id

    def action_open_other(self) -> None:
        """Type the file of a second database, in which B is; nothing typed goes back to one."""

        def named(path: Path | None) -> None:
            self._try(Choice(self.choice.a, "", path))

        before = str(self.choice.other) if self.choice.other else ""
        hint = "the database that B is in; nothing means this one; enter takes it, esc leaves"
        ask_file(self.app, self.view, "Compare with the database", named, self._outlet.warn, text=before, hint=hint)

    def action_swap(self) -> None:
        """A becomes B, and B becomes A."""
        one, choice = self.list.comparison, self.choice
        if one is None or self.must_wait(self._outlet):
            return
        if choice.other is None:
            self.choice = Choice(one.b.run.id, one.a.run.id)
        else:
            own, theirs = (one.b, one.a) if choice.swapped else (one.a, one.b)
            self.choice = Choice(own.run.id, theirs.run.id, choice.other, not choice.swapped)
        self.ask()

    def action_sort_pairs(self) -> None:
        orders = list(PairOrder)
        self.list.order = orders[(orders.index(self.list.order) + 1) % len(orders)]
        self.list.move_to(0)

    def action_reverse_pairs(self) -> None:
        self.list.reversed = not self.list.reversed
        self.list.move_to(0)

    def on_list_panel_heading(self, message: ListPanel.Heading) -> None:
        """A click on a heading orders the kernels by it; on the one that orders already, turns them round."""
        message.stop()
        order = pair_order_of(message.word)
        if order is None:
            return
        if order is self.list.order:
            self.list.reversed = not self.list.reversed
        else:
            self.list.order = order
        self.list.move_to(0)

    def on_compare_list_opened(self, message: CompareList.Opened) -> None:
        message.stop()
        if not self.must_wait(self._outlet):
            lines = partial(pair_lines, message.pair, glyphs=self.view.glyphs)
            self.app.push_screen(Reading(self.view, lines, "A and B", widest=100))

    def on_list_panel_moved(self, message: ListPanel.Moved) -> None:
        message.stop()

    def action_export(self) -> None:
        if self.must_wait(self._outlet):
            return
        records = [pair_record(pair) for pair in self.list.ordered()]
        ask_format(self.app, self.view, self._outlet, "comparison", lambda then: then(records))


def pair_record(pair: Pair) -> Record:
    """One kernel of a comparison as an object."""
    return {
        "kernel": pair.kernel,
        "label": pair.label,
        "shape": pair.shape,
        "regime": None if pair.regime is None else str(pair.regime),
        "a_us": pair.a.us if pair.a else None,
        "b_us": pair.b.us if pair.b else None,
        "ratio": pair.ratio,
        "ratio_low": pair.low,
        "ratio_high": pair.high,
        "verdict": str(pair.verdict),
        "differs": difference(pair),
        "a_knobs": long_words(pair.a.schedule) if pair.a else "",
        "b_knobs": long_words(pair.b.schedule) if pair.b else "",
    }


def pair_lines(pair: Pair, width: int, glyphs: Glyphs) -> list[Line]:
    """One kernel in full, in lines of at most `width` cells."""
    facts = [
        ("kernel", f"{pair.label} {pair.shape} {pair.kernel}"),
        ("verdict", str(pair.verdict)),
        ("regime", "-" if pair.regime is None else str(pair.regime)),
        ("A", f"{fmt.us(pair.a.us if pair.a else None)} us  {long_words(pair.a.schedule) if pair.a else ''}"),
        ("B", f"{fmt.us(pair.b.us if pair.b else None)} us  {long_words(pair.b.schedule) if pair.b else ''}"),
        ("A/B", "-" if pair.ratio is None else f"{pair.ratio:.4f}, interval {interval_text(pair)}"),
        ("differ in", difference(pair) or "-"),
    ]
    lines: list[Line] = []
    for label, value in facts:
        for number, text in enumerate(wrap(clean(value, glyphs), max(1, width - 11))):
            lines.append([(left("" if number else label, 11), Tone.DIM), (text, Tone.PLAIN)])
    return lines


class RunChoice(Dialog):
    """Answers with the id of the run under the cursor, or with ""."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", show=False),
        Binding("escape,q", "answer", show=False),
    ]

    def __init__(self, view: View, runs: Sequence[tuple[StoredRun, str]], side: str) -> None:
        self._runs = [run for run, _ in runs]
        glyphs = view.glyphs
        texts = [
            f"{run.id[:8]}  {fmt.moment(run.started_at)}  {state:9}  {run.target}  {run.gpu}" for run, state in runs
        ]

        def lines(width: int) -> list[Line]:
            return [[(crop(clean(text, glyphs), width, glyphs), Tone.PLAIN)] for text in texts]

        super().__init__(ChoiceList(view, lines, f"Run {side}", "enter takes it"))

    def action_take(self) -> None:
        if self._runs:
            self.dismiss(self._runs[self._panel.cursor].id)
