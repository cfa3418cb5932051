"""Schedules from elsewhere: pins and measurements of other GPUs and versions, which decide nothing here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from emmy_tui import format as fmt
from emmy_tui.action import Named
from emmy_tui.actions import key_named
from emmy_tui.knob_words import long_words, short_words
from emmy_tui.text import Glyphs, Line, Tone, clean, left, right, wrap
from emmy_tui.view import View
from emmy_tui.widgets.kernel_name import suffixed, told_apart
from emmy_tui.widgets.panel import ListPanel, titled
from engine.deploy import suggestions_now
from engine.store import Store, StoreError, Suggestion

LABEL = 10


@dataclass(frozen=True, slots=True)
class Suggested:
    """A suggestion with what its kernel is called here."""

    one: Suggestion
    label: str
    shape: str


def read_suggestions() -> Callable[[Store], tuple[Suggested, ...]]:
    """The question that a desk answers."""

    def question(store: Store) -> tuple[Suggested, ...]:
        found = suggestions_now(store)
        names = {key: _names(store, key) for key in {one.kernel_key for one in found}}
        return tuple(Suggested(one, *names[one.kernel_key]) for one in found)

    return question


def _names(store: Store, key: str) -> tuple[str, str]:
    try:
        kernel = store.kernel(key)
    except StoreError:
        return key, ""
    return kernel.label or kernel.family, kernel.shape_text


def _widths(width: int) -> tuple[int, int, int]:
    """Of kernel, knobs and reason."""
    kernel = 20 if width >= 100 else 12
    rest = width - kernel - 1 - 9 - 1
    return kernel, max(8, rest // 2), max(8, rest - rest // 2 - 1)


def suggestion_line(row: Suggested, width: int, glyphs: Glyphs, suffix: str = "") -> Line:
    """One suggestion; `suffix` tells its kernel from others of the same label."""
    kernel, knobs, reason = _widths(width)
    text = left(suffixed(clean(row.label, glyphs), suffix, kernel, glyphs), kernel) + " "
    text += left(clean(short_words(row.one.schedule.as_dict()), glyphs), knobs, glyphs) + right(fmt.us(row.one.us), 9)
    return [(text + "  ", Tone.PLAIN), (left(clean(row.one.reason, glyphs), reason, glyphs), Tone.DIM)]


def suggestion_detail(row: Suggested, width: int, glyphs: Glyphs, key: Named = key_named) -> list[Line]:
    one = row.one
    time = "not timed there"
    if one.us is not None:
        time = f"{fmt.us(one.us)} us there{f', {one.regime} regime' if one.regime else ''}"
    origin = one.origin
    by = f"{one.author}, {fmt.moment(one.at)}" if one.author else ""
    facts: Mapping[str, tuple[str, Tone]] = {
        "kernel": (f"{row.label} {row.shape} {one.kernel_key}", Tone.HEAD),
        "knobs": (long_words(one.schedule.as_dict()), Tone.ACCENT),
        "why": (one.reason, Tone.PLAIN),
        "time": (f"{time}; {origin.gpu or 'an unnamed GPU'}, torch {origin.torch}, Triton {origin.triton}", Tone.PLAIN),
        "by": (": ".join(part for part in (by, one.note) if part), Tone.PLAIN),
        "use": (
            f"the next search tries it first; {key('measure')} measures it now, {key('pin')} pins it here",
            Tone.DIM,
        ),
    }
    lines: list[Line] = []
    for label, (value, tone) in facts.items():
        for number, text in enumerate(wrap(clean(value, glyphs), max(1, width - LABEL)) if value else ()):
            lines.append([(left("" if number else label, LABEL), Tone.DIM), (text, tone)])
    return lines


class SuggestionList(ListPanel):
    """The fastest of each kernel first."""

    def __init__(self, view: View, *, id: str = "suggestions") -> None:
        super().__init__(view, id=id)
        self.found: Sequence[Suggested] = ()

    def title(self) -> Line:
        return titled("Suggestions")

    def note(self) -> Line:
        return [(f"{len(self.found)} from elsewhere, they decide nothing", Tone.DIM)] if self.found else []

    def count(self) -> int:
        return len(self.found)

    def header(self, width: int) -> Line | None:
        kernel, knobs, reason = _widths(width)
        text = left("kernel", kernel) + " " + left("suggested knobs", knobs, self.view.glyphs)
        return [
            (text + right("us there", 9) + "  " + left("why it decides nothing", reason, self.view.glyphs), Tone.DIM)
        ]

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        suffixes = told_apart((row.one.kernel_key, row.label) for row in self.found)
        shown = self.found[start : start + count]
        return [suggestion_line(row, width, self.view.glyphs, suffixes[row.one.kernel_key]) for row in shown]

    def current(self) -> Suggested | None:
        return self.under_cursor(self.found)
