"""A panel that draws its own frame and lines, and repaints only the cells that changed.

Textual sends a dirty region whole, even if it looks the same, and lays the screen out again when a scroll view grows.
A panel therefore keeps what it painted last, compares, and refreshes only the changed part of each changed line. It
scrolls by itself, so that its cost follows the lines that are visible, never the lines that exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from emmy_tui.actions import bindings
from emmy_tui.jump import Painted as _Painted
from emmy_tui.jump import put_letter
from emmy_tui.text import Line, Tone, both_ends, fit_line, line_width, plain, width_of, word_at, wrap
from emmy_tui.view import View

CURSOR = "cursor"
FRAME = "frame"
FRAME_FOCUSED = "frame-focused"

T = TypeVar("T")


class Panel(Widget):
    """A framed box of toned lines. A subclass says the title, the note at its right, and the lines of its inside."""

    framed = True

    def __init__(self, view: View, *, id: str) -> None:
        super().__init__(id=id)
        self.view = view
        self.left_out = ""
        """What the frame says of panels that there is no room for, where it has room for that."""
        self._painted: list[_Painted] = []
        self._painted_size = Size(0, 0)
        self._styles_by_tone: dict[str, Style] = {}

    def title(self) -> Line:
        return []

    def note(self) -> Line:
        return []

    def lines(self, width: int, height: int) -> list[Line]:
        """The visible lines of the inside, at most `height` of them; each is fitted to `width` afterwards."""
        raise NotImplementedError

    def marked_line(self) -> int | None:
        """The visible line that the cursor is on."""
        return None

    def thumb(self, height: int) -> tuple[int, int] | None:
        """First line and length of the scroll bar's thumb, or None where everything is visible."""
        return None

    @property
    def inner_size(self) -> Size:
        size = self.size  # Textual looks for it in the whole screen
        return Size(max(0, size.width - 2), max(0, size.height - 2)) if self.framed else size

    def repaint(self) -> None:
        """Compute what should be seen and refresh the cells that differ from what is."""
        size = self.size
        if not self.display or not self.is_mounted or size.width == 0:
            return
        wanted = self._compose_lines()
        if self._painted_size != size or len(wanted) != len(self._painted):
            self._painted, self._painted_size = wanted, size
            self.refresh()
            return
        regions = [
            Region(start, y, end - start, 1)
            for y, (old, new) in enumerate(zip(self._painted, wanted, strict=True))
            if old != new
            for start, end in (_difference(old, new, size.width),)
        ]
        self._painted = wanted
        if regions:
            self.refresh(*regions)

    def render_line(self, y: int) -> Strip:
        size = self.size
        if self._painted_size != size:
            self._painted, self._painted_size = self._compose_lines(), size
        if y >= len(self._painted):
            return Strip.blank(size.width)
        return Strip([Segment(text, self._style(tone)) for text, tone in self._painted[y]], size.width)

    def _style(self, tone: str) -> Style:
        """As a component class of Textual's, but looked up when it is first painted. Most panels are behind a tab, and
        show few tones; Textual would look all of them up in each panel, whenever a class or a focus changes."""
        style = self._styles_by_tone.get(tone)
        if style is None:
            part = DOMNode(classes=f"tone--{tone}")
            part._attach(self)
            self.app.stylesheet.apply(part)
            style = self._styles_by_tone[tone] = part.rich_style
        return style

    def notify_style_update(self) -> None:
        super().notify_style_update()
        before, self._styles_by_tone = self._styles_by_tone, {}
        if self.is_attached and any(self._style(tone) != style for tone, style in before.items()):
            self.refresh()

    def _compose_lines(self) -> list[_Painted]:
        width, height = self.inner_size
        inside = [fit_line(line, width, self.view.glyphs) for line in self.lines(width, height)[:height]]
        inside += [[(" " * width, Tone.PLAIN)]] * (height - len(inside))
        marked = self.marked_line()
        bodies = [
            tuple((text, CURSOR if y == marked else str(tone)) for text, tone in line) for y, line in enumerate(inside)
        ]
        lines = self._frame(bodies, width, height) if self.framed else bodies
        letter = self.view.letters.get(self.id or "")
        if letter and lines and not (self.framed and self.title()):
            put_letter(lines, f"[{letter}]", CURSOR)
        return [_joined(line) for line in lines]

    def _frame(self, bodies: list[_Painted], width: int, height: int) -> list[_Painted]:
        glyphs = self.view.glyphs
        tone = FRAME_FOCUSED if self.has_focus else FRAME
        nw, ne, sw, se = tuple(glyphs.corners)
        size = self.size
        if size.width < 2 or size.height < 2:
            return [((glyphs.horizontal * size.width, tone),)] * size.height
        title, note = self.title(), self.note()
        letter = self.view.letters.get(self.id or "")
        key: Line = [(f"[{letter}]", Tone.KEY)] if letter else []
        start: Line = [*key, (" ", Tone.PLAIN), *title, (" ", Tone.PLAIN)] if title else []
        if self.left_out and line_width(start) + line_width(note) + len(self.left_out) + 6 <= width:
            note = [*note, (f"  {self.left_out}" if note else self.left_out, Tone.DIM)]
        end: Line = [(" ", Tone.PLAIN), *note, (" ", Tone.PLAIN)] if note else []
        rule = width - line_width(start) - line_width(end)
        if rule < 1:
            rule, end = width - line_width(start), []
        if rule < 0:
            start, rule = fit_line(start, width, glyphs), 0
        top = ((nw, tone), *start, (glyphs.horizontal * rule, tone), *end, (ne, tone))
        thumb = self.thumb(height)
        framed: list[_Painted] = [top]
        for y, body in enumerate(bodies):
            held = thumb is not None and thumb[0] <= y < thumb[0] + thumb[1]
            framed.append(((glyphs.vertical, tone), *body, (glyphs.thumb if held else glyphs.vertical, tone)))
        framed.append(((sw + glyphs.horizontal * width + se, tone),))
        return framed

    def watch_has_focus(self, has_focus: bool) -> None:
        """Frame and cursor follow the focus. Textual's Focus event comes to `on_focus` before `has_focus` is set."""
        super().watch_has_focus(has_focus)
        self.repaint()

    def on_resize(self) -> None:
        self.repaint()


def _joined(line: _Painted) -> _Painted:
    """The same cells in fewer spans: every span costs the terminal two escape sequences, and blanks have no colour."""
    spans: list[tuple[str, str]] = []
    for text, tone in line:
        if spans and (spans[-1][1] == tone or (text.isspace() and CURSOR not in (tone, spans[-1][1]))):
            spans[-1] = (spans[-1][0] + text, spans[-1][1])
        elif spans and spans[-1][0].isspace() and CURSOR not in (tone, spans[-1][1]):
            spans[-1] = (spans[-1][0] + text, tone)
        elif text:
            spans.append((text, tone))
    return tuple(spans)


def _difference(old: _Painted, new: _Painted, width: int) -> tuple[int, int]:
    """First and one past the last cell in which two painted lines differ."""
    before, after = _common(old, new), _common(_reversed(old), _reversed(new))
    return min(before, width - 1), max(min(before, width - 1) + 1, width - after)


def _reversed(line: _Painted) -> _Painted:
    return tuple((text[::-1], tone) for text, tone in reversed(line))


def _common(old: _Painted, new: _Painted) -> int:
    """Cells at the start that look the same; within a span only where every character is one cell."""
    cells = 0
    for (old_text, old_tone), (new_text, new_tone) in zip(old, new, strict=False):
        if old_tone != new_tone:
            break
        if old_text != new_text:
            if width_of(old_text) == len(old_text) and width_of(new_text) == len(new_text):
                pairs = zip(old_text, new_text, strict=False)
                shorter = min(len(old_text), len(new_text))
                cells += next((place for place, (a, b) in enumerate(pairs) if a != b), shorter)
            break
        cells += width_of(new_text)
    return cells


class ListPanel(Panel, can_focus=True):
    """A panel of many lines with a cursor. A subclass says how many there are and renders a range of them."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(lambda action: action.in_list)
    cursor_visible = True

    class Moved(Message):
        """A person moved the cursor of `panel`."""

        def __init__(self, panel: ListPanel) -> None:
            super().__init__()
            self.panel = panel

    class Heading(Message):
        """A person clicked on a heading of `panel`; `word` is what stands there."""

        def __init__(self, panel: ListPanel, word: str) -> None:
            super().__init__()
            self.panel = panel
            self.word = word

    class Entered(Message):
        """A person pressed enter on a row of `panel`, which has no answer of its own."""

        def __init__(self, panel: ListPanel) -> None:
            super().__init__()
            self.panel = panel

    def __init__(self, view: View, *, id: str) -> None:
        super().__init__(view, id=id)
        self.cursor = 0
        self.top = 0

    def count(self) -> int:
        raise NotImplementedError

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        raise NotImplementedError

    def header(self, width: int) -> Line | None:
        return None

    def footing(self, width: int, height: int) -> list[Line]:
        """Lines kept at the bottom of the panel, where it is high enough."""
        return []

    def empty(self) -> str:
        """What the panel says while it has no line."""
        return ""

    def lines(self, width: int, height: int) -> list[Line]:
        header, footing = self.header(width), self.footing(width, height)
        room = max(0, height - (header is not None) - len(footing))
        self._clamp(room)
        count = self.count()
        body = self.rows(self.top, room, width) if count else self._said(width)
        body = body[:room] + [[]] * (room - len(body))
        return [*([header] if header is not None else []), *body, *footing]

    def _said(self, width: int) -> list[Line]:
        return [[(text, Tone.DIM)] for text in wrap(self.empty(), max(1, width))]

    def _room(self, height: int) -> int:
        width = self.inner_size.width
        return max(0, height - (self.header(width) is not None) - len(self.footing(width, height)))

    def _clamp(self, room: int) -> None:
        """Keep the cursor among the lines and the view among both."""
        last = max(0, self.count() - 1)
        self.cursor = min(max(0, self.cursor), last)
        self.top = min(max(0, self.top), max(0, last + 1 - room))

    def marked_line(self) -> int | None:
        if not self.cursor_visible or not self.has_focus or not self.count():
            return None
        width, height = self.inner_size
        line = self.cursor - self.top
        if not 0 <= line < self._room(height):
            return None
        return line + (self.header(width) is not None)

    def thumb(self, height: int) -> tuple[int, int] | None:
        room, count = self._room(height), self.count()
        if room < 1 or count <= room:
            return None
        length = max(1, room * room // count)
        first = round(self.top / (count - room) * (room - length))
        return first + (self.header(self.inner_size.width) is not None), length

    def reveal(self) -> None:
        """Scroll so that the cursor's line is visible."""
        room = self._room(self.inner_size.height)
        if room < 1:
            return
        if self.cursor < self.top:
            self.top = self.cursor
        elif self.cursor >= self.top + room:
            self.top = self.cursor - room + 1

    def move_to(self, line: int) -> None:
        """Put the cursor on a line, as a person does."""
        self.cursor = min(max(0, line), max(0, self.count() - 1))
        self.reveal()
        self.moved()
        self.repaint()
        self.post_message(self.Moved(self))

    def move_by(self, step: int) -> None:
        self.move_to(self.cursor + step)

    def moved(self) -> None:
        """The cursor was moved by a person."""

    def under_cursor(self, rows: Sequence[T]) -> T | None:
        """The one of the panel's rows that the cursor is on."""
        return rows[self.cursor] if self.cursor < len(rows) else None

    def _page(self) -> int:
        return max(1, self._room(self.inner_size.height) - 1)

    def action_down(self) -> None:
        self.move_by(1)

    def action_up(self) -> None:
        self.move_by(-1)

    def action_page_down(self) -> None:
        self.move_by(self._page())

    def action_page_up(self) -> None:
        self.move_by(-self._page())

    def action_first(self) -> None:
        self.move_to(0)

    def action_last(self) -> None:
        self.move_to(self.count() - 1)

    def action_select(self) -> None:
        if self.count():
            self.post_message(self.Entered(self))

    def action_unfold(self) -> None: ...

    def action_fold(self) -> None: ...

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scrolled(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scrolled(-3)

    def scrolled(self, by: int) -> None:
        """Scroll without moving the cursor."""
        self.top += by
        self.repaint()

    def on_click(self, event: events.Click) -> None:
        width, height = self.inner_size
        header = self.header(width)
        line = event.y - (1 if self.framed else 0) - (header is not None)
        if line == -1 and header is not None:
            self.post_message(self.Heading(self, word_at(plain(header), event.x - (1 if self.framed else 0))))
        if 0 <= line < self._room(height) and self.top + line < self.count():
            self.move_to(self.top + line)
            if event.chain == 2:
                self.action_select()


def titled(title: str, *more: str) -> Line:
    """A panel's title: its name, and what it shows."""
    return [(title, Tone.HEAD), *((f" {text}", Tone.PLAIN) for text in more if text)]


def ends(start: Line, end: Line, width: int, view: View) -> Line:
    return both_ends(start, end, width, view.glyphs)
