"""The Variants tab: every measurement of the shown kernel, filtered and sorted by the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from emmy_tui.action import VARIANTS, Row
from emmy_tui.desk import Desk
from emmy_tui.dialogs import Reading
from emmy_tui.export import Record, ask_format, candidate_record
from emmy_tui.filter import EXAMPLE, BadFilter, Filter, parse_filter
from emmy_tui.knob_words import long_words, short_words
from emmy_tui.outlet import Outlet
from emmy_tui.pareto import FrontChoice, read_front
from emmy_tui.pin_watch import PinWatch
from emmy_tui.pinning import Pinning
from emmy_tui.prompt import Prompt
from emmy_tui.source import Again
from emmy_tui.steering import Steering
from emmy_tui.tabs.tab import Tab, tab_bindings
from emmy_tui.variant_asking import assemble, copy_command, open_detail, show_why
from emmy_tui.variant_detail import Detail, compare_lines, read_detail
from emmy_tui.variant_query import Found, pages, read_found
from emmy_tui.verdicts import read_verdict
from emmy_tui.view import View
from emmy_tui.widgets.kernel_name import kernel_name, known_name
from emmy_tui.widgets.panel import ListPanel, Panel
from emmy_tui.widgets.variant_list import SORTS, Shown, VariantList, sort_of
from engine.snapshot import KernelRow
from engine.store import Candidate, CandidateQuery, Store
from engine.vocabulary import Schedule

FRESH_S = 2.0
"""While a run writes, the rows are asked for again at most this often."""
WATCH_S = 0.5
"""How often it is asked whether other pins are in force."""
EXPORT_LIMIT = 100_000


class VariantsTab(Tab):
    """Asks the desk when the kernel, the filter, the order or the run moved."""

    BINDINGS: ClassVar[list[BindingType]] = tab_bindings(VARIANTS)
    order = ("variants",)
    first = "variants"

    def __init__(self, view: View, desk: Desk, outlet: Outlet, pinning: Pinning, steering: Steering) -> None:
        super().__init__(view, id=f"{VARIANTS}-tab")
        self._desk = desk
        self._outlet = outlet
        self._pinning = pinning
        self._steering = steering
        self.list = VariantList(view, desk)
        self._filter = Filter()
        self._filter_text = ""
        self._sort, self._descending = "best", False
        self._contexts: tuple[tuple[str, str, int], ...] = ()
        self._own_context = ""
        self._kernel = ""
        self._knobs: frozenset[str] = frozenset()
        self._blank = True
        """Whether the names of the shown kernel's knobs are still to be read."""
        self._pinned: frozenset[tuple[str, str]] = frozenset()
        """Kernel and context of every pin in force."""
        self._held: KernelRow | None = None
        self._log_version = -1
        self._asked_at = 0.0
        self._pin_watch = PinWatch(desk, "pin watch", _pins_in_force, self._pins_seen, WATCH_S)

    def compose(self) -> ComposeResult:
        yield self.list

    @property
    def panels(self) -> dict[str, Panel]:
        return {"variants": self.list}

    @property
    def items(self) -> int:
        return self.list.count()

    @property
    def row(self) -> Row:
        row = self.list.current_row()
        if row is None or self.behind:
            return Row()
        return Row(self._called(row), (row.kernel, row.context) in self._pinned)

    @property
    def behind(self) -> bool:
        kernel = self.kernel_here()
        turned = not self._filter.kernel_text and (kernel.kernel if kernel else "") != self._kernel
        return turned or super().behind

    @property
    def unread(self) -> bool:
        return self.behind or (self.items > 0 and self.list.current_row() is None)

    @property
    def contexts(self) -> int:
        return 2 if self.behind else len(self._contexts)

    @property
    def filtered(self) -> bool:
        return bool(self._filter_text)

    def place(self, width: int, height: int) -> None:
        self.call_after_refresh(self.repaint_all)

    def shown(self) -> None:
        self.list.predictions.forget()
        self.hold()
        self.ask()

    def choose_kernel(self) -> None:
        self.list.marked = None
        self.hold()

    def hold(self) -> None:
        """Stay with the kernel that is shown now: a run that goes on to the next one, or another run that begins, must
        not turn the page. While the database is read, the shown kernel is that of every tab, which moves with it."""
        self._held = None if self.view.reading else self.view.kernel

    def kernel_here(self) -> KernelRow | None:
        """The kernel of the page. A run that doesn't know it takes nothing from what the database holds of it."""
        held = self._held
        return self.view.kernel if held is None else self.view.snapshot.kernels.get(held.kernel, held)

    def reset(self) -> None:
        self._log_version = -1
        self.list.marked = None

    def update(self, touched: set[str]) -> None:
        """Ask again where another kernel is shown, and now and then while rows come in."""
        if self._held is None:
            self.hold()
        kernel = self.kernel_here()
        key = kernel.kernel if kernel else ""
        version = self.view.snapshot.versions.get("log", 0)
        if key != self._kernel or (version != self._log_version and time.monotonic() - self._asked_at > FRESH_S):
            self.ask()
        if self.list.counting:
            self.list.repaint()
        self._pin_watch.look()

    def ask(self) -> None:
        """Put the query as it stands."""
        kernel = self.kernel_here()
        if kernel is None and not self._filter.kernel_text:
            self._kernel, self._about, self._answered_about = "", None, None
            self.list.forget("No kernel yet")
            return
        key = kernel.kernel if kernel else ""
        if self._held is None:
            self.hold()
        moved = key != self._kernel
        if moved:
            self._kernel, self._own_context, self._contexts = key, "", ()
        self._asked_at = time.monotonic()
        self._log_version = self.view.snapshot.versions.get("log", 0)
        context = "" if self._filter.kernel_text else self._own_context
        query = CandidateQuery(
            key, self._filter.kernel_text, context, self._filter.conditions, self._sort, self._descending
        )
        name = kernel_name(kernel, self.view.snapshot) if kernel else ""
        label = f"kernels {self._filter.kernel_text}" if self._filter.kernel_text else name
        question = read_found(query, self._filter.predicted, self.list.predictions, with_knobs=moved or self._blank)
        self._blank = self._blank or moved
        asked = (query, self._filter.predicted)
        shown = Shown(query.sort, query.descending, self._filter_text, label, "", bool(query.kernel_text))

        def answered(found: Found) -> None:
            self._found(found, query, shown)
            if self._about == asked:  # the context that the newest was; it is asked for by its key from now on
                placed = replace(query, context="" if query.kernel_text else found.context)
                self._about = self._answered_about = (placed, self._filter.predicted)

        self.ask_for_rows(self._desk, question, answered, self._none, about=asked)
        self.list.counting = self._filter_text if self.behind else ""

    def _pins_seen(self, before: tuple[int, ...] | None, now: tuple[int, ...]) -> None:
        if before is not None and now != before:
            self.ask()

    def _none(self, sentence: str) -> None:
        self.list.forget(sentence)
        self.app.paint_frame()  # type: ignore[attr-defined]

    def _found(self, found: Found, query: CandidateQuery, shown: Shown) -> None:
        self._pinned = found.pinned
        if found.knobs is not None and query.kernel == self._kernel:
            self._knobs, self._blank = found.knobs, False
        if not query.kernel_text:
            self._contexts, self._own_context = found.contexts, found.context
        gpus = {key: gpu for key, gpu, _ in found.contexts}
        place = [key for key, _, _ in found.contexts].index(found.context) + 1 if found.context in gpus else 0
        gpu = gpus.get(found.context, "") + (f" ({place} of {len(gpus)})" if len(gpus) > 1 else "")
        self.list.show(found.numbers, replace(shown, gpu="" if shown.several else gpu, why=found.why))
        self.app.paint_frame()  # type: ignore[attr-defined]

    def action_filter(self) -> None:
        """Type a filter; what is typed shows at once where it can be understood."""

        def judge(text: str) -> str:
            try:
                parse_filter(text, self._knobs)
            except BadFilter as error:
                return str(error)
            return ""

        before = self._filter_text
        hint = f"e.g. {EXAMPLE}; enter keeps it, esc goes back"
        prompt = Prompt(self.view, "Filter", text=before, hint=hint, judge=judge, changed=self.set_filter)
        self.app.push_screen(prompt, lambda text: self.set_filter(before if text is None else text))

    def set_filter(self, text: str) -> None:
        """Show only the rows that pass; raises BadFilter for what can't be understood."""
        self._filter, self._filter_text = parse_filter(text, self._knobs), text.strip()
        self.ask()

    def action_clear_filter(self) -> None:
        self.set_filter("")

    def action_sort(self) -> None:
        self._sort = SORTS[(SORTS.index(self._sort) + 1) % len(SORTS)]
        self.ask()

    def on_list_panel_heading(self, message: ListPanel.Heading) -> None:
        """A click on a heading sorts by it; on the one that sorts already, it turns the order round."""
        message.stop()
        sort = sort_of(message.word, self.view.glyphs)
        if not sort:
            return
        if sort == self._sort:
            self._descending = not self._descending
        else:
            self._sort = sort
        self.ask()

    def action_reverse(self) -> None:
        self._descending = not self._descending
        self.ask()

    def action_next_context(self) -> None:
        self._with_rows(self._next_context)

    def _next_context(self) -> None:
        keys = [key for key, _, _ in self._contexts]
        self._own_context = keys[(keys.index(self._own_context) + 1) % len(keys)] if self._own_context in keys else ""
        self.ask()

    def on_list_panel_moved(self, message: ListPanel.Moved) -> None:
        message.stop()
        self.app.paint_frame()  # type: ignore[attr-defined]

    def on_variant_list_opened(self, message: VariantList.Opened) -> None:
        message.stop()
        question = read_detail(message.row, self.list.predictions)
        self._with_rows(lambda: self._desk.ask("detail", question, self._open, self._outlet.warn, opens=True))

    def _open(self, detail: Detail) -> None:
        open_detail(detail, self.view, self.app, lambda: self._assemble(detail.row))

    def action_assemble(self) -> None:
        self._with_row(self._assemble)

    def _assemble(self, row: Candidate) -> None:
        assemble(row, self.view, self.app, self._desk, self._outlet)

    def _with_row(self, act: Callable[[Candidate], None]) -> None:
        row = self.list.current_row()
        if row is not None and not self.behind:
            act(row)
        elif self.items:
            self._outlet.warn("this row is still being read")

    def _with_rows(self, act: Callable[[], None]) -> None:
        """For what concerns all rows, or one that was chosen."""
        if not self.must_wait(self._outlet):
            act()

    def action_mark(self) -> None:
        self._with_row(self._mark)

    def _mark(self, row: Candidate) -> None:
        first = self.list.marked
        if first is None:
            self.list.marked = row
            self._outlet.say(f"marked as A; {self.view.key('mark')} on another row compares them")
        elif first.number == row.number:
            self.list.marked = None
        else:

            def compare(verdict: str) -> None:
                lines = partial(compare_lines, first, row, verdict, glyphs=self.view.glyphs)
                self.app.push_screen(Reading(self.view, lines, "A and B", widest=90))

            self._desk.ask("verdict", read_verdict(first, row), compare, self._outlet.warn, opens=True)
        self.list.repaint()

    def action_copy_knobs(self) -> None:
        self._with_row(lambda row: self._outlet.copy(long_words(row.schedule), f"knobs of {self._called(row)}"))

    def action_copy_command(self) -> None:
        """The command that measures exactly this row; where none does, that of the search, called so."""
        self._with_row(lambda row: copy_command(row, self._called(row), self._desk, self._outlet))

    def action_why(self) -> None:
        """Why the search took this row: of its leaf, else of the last branch of the tree on the way to it."""
        self._with_row(lambda row: show_why(row, self.view, self.app, self._outlet))

    def action_pin(self) -> None:
        self._with_row(self._pin)

    def _pin(self, row: Candidate) -> None:
        def pin(note: str | None) -> None:
            if note is not None:
                self._pinning.pin(row.label, row.kernel, row.context, Schedule.of(row.schedule), note.strip())

        hint = "enter pins it, with or without a note; esc leaves"
        self.app.push_screen(Prompt(self.view, f"{self._pin_words(row)}. Note:", hint=hint), pin)

    def _pin_words(self, row: Candidate) -> str:
        """Which kernel and schedule a pin is of, in one line of the prompt."""
        name = self._called(row)
        full = f"Pin {name}: {long_words(row.schedule)}"
        return full if len(full) + 8 <= self.app.size.width else f"Pin {name}: {short_words(row.schedule)}"

    def _called(self, row: Candidate) -> str:
        return known_name(row.kernel, row.label, self.view.snapshot)

    def action_unpin(self) -> None:
        self._with_row(lambda row: self._pinning.unpin(self._called(row), row.kernel, row.context))

    def action_undo_pin(self) -> None:
        self._pinning.undo()

    def action_pareto(self) -> None:
        """The rows of the list that nothing beats in both time and registers; one of them may be pinned."""

        def show(rows: list[Candidate]) -> None:
            if not rows:
                self._outlet.warn("no row here has both a time and a number of registers")
                return

            def answered(answer: str | None) -> None:
                if answer:
                    self._pin(rows[int(answer)])

            writable = self.app.now.writable  # type: ignore[attr-defined]
            self.app.push_screen(FrontChoice(self.view, rows, writable=writable), answered)

        question = read_front(self.list.numbers[:EXPORT_LIMIT])
        self._with_rows(lambda: self._desk.ask("pareto", question, show, self._outlet.warn, opens=True))

    def action_retune(self) -> None:
        """The kernel that is shown."""
        row = self.kernel_here()
        if row is not None:
            self._steering.retune(self.app, [Again(row.kernel, kernel_name(row, self.view.snapshot))])

    def action_export(self) -> None:
        numbers = self.list.numbers[:EXPORT_LIMIT]

        def read(store: Store) -> list[Record]:
            return [candidate_record(row) for page in pages(store, numbers) for row in page]

        def ask(then: Callable[[Sequence[Record]], None]) -> None:
            self._outlet.expect("the export of the variants")
            self._desk.ask("export", read, then, self._outlet.refuse)

        self._with_rows(lambda: ask_format(self.app, self.view, self._outlet, "variants", ask))


def _pins_in_force(store: Store) -> tuple[int, ...]:
    return tuple(one.id for one in store.pins())
