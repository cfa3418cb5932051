"""Panels over the screen: lines to read, and the one question that the screen asks by itself: whether to stop a run
before leaving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.screen import ModalScreen

from emmy_tui.text import Line, Tone, line_width
from emmy_tui.view import View
from emmy_tui.widgets.panel import ListPanel, titled

Text = Sequence[Line] | Callable[[int], Sequence[Line]]
"""Lines, or what makes them for a width."""
WIDEST, NARROWEST, BESIDE = 110, 30, 6
"""Cells that lines are made for, at most and at least, and those that they leave free beside them."""
UNBOUNDED = 1000
"""Cells: lines are made as wide as there is room."""
FOOTER_LINES = 1
"""What a dialog leaves uncovered of the screen: the key that closes it."""


class TextPanel(ListPanel):
    """Lines to read, scrolled with the usual keys. They are made anew for every size of the screen."""

    cursor_visible = False

    def __init__(self, view: View, text: Text, title: str, note: str = "", widest: int = WIDEST) -> None:
        super().__init__(view, id="text")
        self._made = text
        self._widest = widest
        self._text: list[Line] = []
        self._title = title
        self._note = note

    def title(self) -> Line:
        return titled(self._title)

    def note(self) -> Line:
        return [(self._note, Tone.DIM)] if self._note else []

    def show(self, text: Text) -> None:
        """Other lines in the same place."""
        self._made, self.cursor, self.top = text, 0, 0
        self._make(self.app.size.width)
        self.repaint()

    def _make(self, width: int) -> None:
        room = max(NARROWEST, min(self._widest, width - BESIDE))
        self._text = list(self._made(room) if callable(self._made) else self._made)

    def fit(self, width: int, height: int) -> None:
        """Take the room that the lines need on a screen of this size; what is read stays in sight."""
        before = len(self._text)
        self._make(width)
        self.styles.width = max((line_width(line) for line in self._text), default=0) + 4
        self.styles.height = len(self._text) + 2 + (self.header(0) is not None)
        self.styles.max_height = max(3, height - FOOTER_LINES)
        if before and not self.cursor_visible:
            self.top = self.cursor = self.top * len(self._text) // before
        self.call_after_refresh(self._refit)

    def _refit(self) -> None:
        if self.cursor_visible:
            self.reveal()
        self.repaint()

    def count(self) -> int:
        return len(self._text)

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        return self._text[start : start + count]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enter, and what opens and closes, belong to the dialog."""
        return action not in ("select", "unfold", "fold")

    def on_mount(self) -> None:
        self.fit(*self.app.size)

    def move_to(self, line: int) -> None:
        """Scroll at once where there is no cursor to see."""
        if self.cursor_visible:
            super().move_to(line)
            return
        self.scrolled(line - self.cursor)
        self.cursor = self.top


class ChoiceList(TextPanel):
    """Lines to take one from, as wide as there is room."""

    cursor_visible = True

    def __init__(self, view: View, text: Text, title: str, note: str = "") -> None:
        super().__init__(view, text, title, note, UNBOUNDED)


class Dialog(ModalScreen[str]):
    """A panel over the screen. It answers with a word; esc answers with ""."""

    AUTO_FOCUS = "#text"

    def __init__(self, panel: TextPanel) -> None:
        super().__init__()
        self._panel = panel

    def compose(self) -> ComposeResult:
        yield self._panel

    def on_resize(self, event: Resize) -> None:
        self._panel.fit(*event.size)

    def action_answer(self, word: str = "") -> None:
        self.dismiss(word)


class Reading(Dialog):
    """Lines to read."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "answer", show=False)]

    def __init__(self, view: View, lines: Text, title: str, note: str = "esc closes", widest: int = WIDEST) -> None:
        super().__init__(TextPanel(view, lines, title, note, widest))


def leave_lines() -> list[Line]:
    return [
        [],
        [("  enter ", Tone.KEY), ("stop after this candidate, then quit", Tone.PLAIN)],
        [("  esc   ", Tone.KEY), ("stay", Tone.PLAIN)],
        [],
        [("  Every finished measurement is in the database either way.", Tone.DIM)],
        [("  ctrl+c twice leaves without waiting.", Tone.DIM)],
        [],
    ]


class Leave(Dialog):
    """Asked on quit while a run is on. Answers "stop", or "" to stay."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,y", "answer('stop')", show=False),
        Binding("escape,n,q", "answer", show=False),
    ]

    def __init__(self, view: View) -> None:
        super().__init__(TextPanel(view, leave_lines(), "A run is on. Quit?"))
