"""The variants that no other one beats in both time and registers, to pick a pin from.

Fewer registers leave room for other blocks on a multiprocessor, so a variant that is a little slower alone may be the
better neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType

from emmy_tui import format as fmt
from emmy_tui.dialogs import ChoiceList, Dialog
from emmy_tui.knob_words import short_words
from emmy_tui.text import Line, Tone, clean, crop, right
from emmy_tui.variant_query import pages
from emmy_tui.view import View
from engine.store import Candidate, Store


def front(rows: Iterable[Candidate]) -> list[Candidate]:
    """The fastest first; each further one needs fewer registers than all before it. Spilling ones count as they are."""
    timed = [row for row in rows if row.best_us is not None and row.registers is not None]
    chosen: list[Candidate] = []
    for row in sorted(timed, key=lambda row: (row.best_us or 0.0, row.registers or 0, row.number)):
        if not chosen or (row.registers or 0) < (chosen[-1].registers or 0):
            chosen.append(row)
    return chosen


def read_front(numbers: Sequence[int]) -> Callable[[Store], list[Candidate]]:
    """The question that a desk answers, of these rows."""

    def question(store: Store) -> list[Candidate]:
        chosen: list[Candidate] = []
        for page in pages(store, numbers):
            chosen = front([*chosen, *page])
        return chosen

    return question


def front_lines(rows: Sequence[Candidate], view: View, width: int) -> list[Line]:
    """A row each: time, what it costs against the fastest, registers, spills, shared memory, knobs."""
    best = rows[0].best_us or 0.0
    lines: list[Line] = []
    for row in rows:
        slower = fmt.change(best, row.best_us)
        numbers = right(fmt.us(row.best_us), 8) + right(f"{slower}%", 7) + right(str(row.registers), 6)
        numbers += right("-" if row.spills is None else str(row.spills), 7)
        numbers += right("-" if row.shared_bytes is None else fmt.size(row.shared_bytes), 7) + "  "
        knobs = crop(clean(short_words(row.schedule), view.glyphs), max(10, width - 37), view.glyphs)
        mark = view.glyphs.pinned if row.pinned else " "
        lines.append([(numbers, Tone.PLAIN), (f"{mark} {knobs}", Tone.ACCENT)])
    return lines


class FrontList(ChoiceList):
    """Rows to take one from, under a heading."""

    def header(self, width: int) -> Line | None:
        heads = (("us", 8), ("slower", 7), ("regs", 6), ("spills", 7), ("smem", 7))
        return [("".join(right(text, size) for text, size in heads) + "    knobs", Tone.DIM)]


class FrontChoice(Dialog):
    """Answers with the place of the variant to pin, or with ""."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", show=False),
        Binding("p", "take", show=False, id="pin"),
        Binding("escape,q", "answer", show=False),
    ]

    def __init__(self, view: View, rows: Sequence[Candidate], *, writable: bool) -> None:
        self._writable = writable
        note = f"{view.key('pin')} pins it, esc closes" if writable else "esc closes"
        lines = partial(front_lines, rows, view)
        super().__init__(FrontList(view, lines, "Time against registers", note))

    def action_take(self) -> None:
        self.dismiss(str(self._panel.cursor) if self._writable else "")
