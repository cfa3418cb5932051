"""The pins in force, and the one under the cursor in full."""

from __future__ import annotations

from collections.abc import Sequence

from emmy_tui import format as fmt
from emmy_tui.knob_words import long_words, short_words
from emmy_tui.text import Glyphs, Line, Tone, clean, left, right, wrap
from emmy_tui.view import View
from emmy_tui.widgets.kernel_name import Names
from emmy_tui.widgets.panel import ListPanel, titled
from engine.measure import apart_margin
from engine.store import PinStanding, Standing

LABEL = 10
_TONES = {Standing.OK: Tone.GOOD, Standing.FAILED: Tone.BAD, Standing.ILLEGAL: Tone.BAD}
_SHORT = {
    Standing.OK: "ok",
    Standing.SLOWER: "a faster is known",
    Standing.FASTER: "stale: faster now",
    Standing.UNMEASURED: "unmeasured",
    Standing.FAILED: "failed",
    Standing.OTHER_CONTEXT: "stale: context",
    Standing.ILLEGAL: "illegal",
}

_STATES = {**_SHORT, Standing.SLOWER: str(Standing.SLOWER)}
"""In full, where there is room."""


def _widths(width: int, names: Names, knobs: int) -> tuple[int, int, int, int]:
    """Of kernel, knobs, which need `knobs` cells, who and when; 0 leaves a column out."""
    wide = width >= 100
    who, when = (10, 17) if wide else (0, 0)
    rest = width - 1 - (who + 1 + when + 1 if wide else 0) - 9 - 9 - 8 - 18
    kernel = names.column(20 if wide else 12, rest - min(knobs, rest * 2 // 5))
    return kernel, max(8, rest - kernel), who, when


def header_line(widths: tuple[int, int, int, int], glyphs: Glyphs) -> Line:
    kernel, knobs, who, when = widths
    text = left("kernel", kernel) + " " + left("pinned knobs", knobs, glyphs)
    text += (" " + left("by", who) + " " + left("when", when)) if who else ""
    return [(text + right("us", 9) + right("best us", 9) + right("gap", 8) + " " + left("state", 17), Tone.DIM)]


def gap_text(gap: float | None) -> str:
    return "-" if gap is None else f"{gap * 100:+.1f}%"


def pin_line(one: PinStanding, widths: tuple[int, int, int, int], glyphs: Glyphs, names: Names) -> Line:
    """One pin; the name tells its kernel from others of the same label."""
    kernel, knobs, who, when = widths
    pin = one.stored.pin
    text = left(names.name(pin.kernel_key, kernel, glyphs), kernel) + " "
    text += left(clean(short_words(pin.schedule.as_dict()), glyphs), knobs, glyphs)
    about = f" {left(clean(pin.author, glyphs), who, glyphs)} {left(fmt.moment(pin.at), when)}" if who else ""
    numbers = right(fmt.us(one.us), 9) + right(fmt.us(one.best_us), 9) + right(gap_text(one.gap), 8)
    return [
        (text, Tone.PLAIN),
        (about, Tone.DIM),
        (numbers + " ", Tone.PLAIN),
        (left(_SHORT[one.standing], 17, glyphs), _TONES.get(one.standing, Tone.BUSY)),
    ]


class PinList(ListPanel):
    """Oldest first."""

    def __init__(self, view: View, *, id: str = "pins") -> None:
        super().__init__(view, id=id)
        self.pins: Sequence[PinStanding] = ()
        self.said = "Reading the database"

    def title(self) -> Line:
        return titled("Pins")

    def note(self) -> Line:
        stale = sum(one.stale for one in self.pins)
        return (
            [(fmt.plural(len(self.pins), "pin") + (f", {stale} stale" if stale else ""), Tone.DIM)] if self.pins else []
        )

    def empty(self) -> str:
        if self.said or self.view.snapshot.kernels:
            pin, rows = self.view.key("pin"), self.view.key("tab_variants")
            return self.said or f"Nothing is pinned: {pin} pins knob values that you type; on tab {rows}, a row"
        return "Nothing is pinned, and no kernel is known yet"

    def count(self) -> int:
        return len(self.pins)

    def header(self, width: int) -> Line | None:
        return header_line(self._columns(width)[0], self.view.glyphs)

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        widths, names = self._columns(width)
        return [pin_line(one, widths, self.view.glyphs, names) for one in self.pins[start : start + count]]

    def _columns(self, width: int) -> tuple[tuple[int, int, int, int], Names]:
        """The widths of the columns, which follow what is listed, and the names."""
        names = Names.of((one.stored.pin.kernel_key, one.label, one.shape) for one in self.pins)
        longest = max((len(short_words(one.stored.pin.schedule.as_dict())) for one in self.pins), default=0)
        return _widths(width, names, longest), names

    def show(self, pins: Sequence[PinStanding]) -> None:
        self.pins = pins
        self.said = ""
        self.repaint()

    def forget(self, sentence: str) -> None:
        self.pins, self.said = (), sentence
        self.repaint()

    def current(self) -> PinStanding | None:
        return self.under_cursor(self.pins)


_MEANING = {
    Standing.OK: "nothing measured is faster by more than the noise",
    Standing.SLOWER: "when it was pinned, one was known that is faster by more than the noise",
    Standing.FASTER: "since it was pinned, one was measured that is faster by more than the noise",
    Standing.UNMEASURED: "legal, and not measured in this context",
    Standing.FAILED: "it failed when it was measured",
    Standing.OTHER_CONTEXT: "the newest run used another GPU or toolchain",
}


def _meaning(one: PinStanding) -> str:
    if one.standing is Standing.ILLEGAL:
        return f"it decides nothing: {one.illegal.rstrip('.')}"
    if one.standing not in (Standing.OK, Standing.SLOWER, Standing.FASTER):
        return _MEANING[one.standing]
    floor = f"{apart_margin(one.noise_share) * 100:.1f} %"
    return f"{_MEANING[one.standing]} (noise {floor}{'' if one.noise_share is not None else ', not measured'})"


def pin_detail(one: PinStanding, width: int, glyphs: Glyphs) -> list[Line]:
    """What the list has no room for."""
    pin = one.stored.pin
    best = long_words(one.best_schedule.as_dict()) if one.best_schedule else "-"
    facts = (
        ("kernel", f"{one.label} {one.shape} {pin.kernel_key}", Tone.HEAD),
        ("pinned", long_words(pin.schedule.as_dict()), Tone.ACCENT),
        ("best now", f"{fmt.us(one.best_us)} us  {best}", Tone.PLAIN),
        ("state", f"{_STATES[one.standing]}: {_meaning(one)}", _TONES.get(one.standing, Tone.BUSY)),
        ("by", f"{pin.author}, {fmt.moment(pin.at)}, {one.gpu}", Tone.PLAIN),
        ("note", pin.note, Tone.PLAIN),
    )
    lines: list[Line] = []
    for label, value, tone in facts:
        for number, text in enumerate(wrap(clean(value, glyphs), max(1, width - LABEL)) if value else ()):
            lines.append([(left("" if number else label, LABEL), Tone.DIM), (text, tone)])
    return lines
