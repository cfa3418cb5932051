"""Panels over the screen: lines to read, and the one question that the screen asks by itself: whether to stop a run
before leaving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from emmy_tui.text import Line, Tone, line_width
from emmy_tui.view import View
from emmy_tui.widgets.panel import ListPanel, titled


class TextPanel(ListPanel):
    """Lines to read, scrolled with the usual keys."""

    cursor_visible = False

    def __init__(self, view: View, text: Sequence[Line], title: str, note: str = "") -> None:
        super().__init__(view, id="text")
        self._text = list(text)
        self._title = title
        self._note = note

    def title(self) -> Line:
        return titled(self._title)

    def note(self) -> Line:
        return [(self._note, Tone.DIM)] if self._note else []

    def show(self, text: Sequence[Line]) -> None:
        """Other lines in the same place."""
        self._text, self.cursor, self.top = list(text), 0, 0
        self.repaint()

    def count(self) -> int:
        return len(self._text)

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        return self._text[start : start + count]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enter, and what opens and closes, belong to the dialog."""
        return action not in ("select", "unfold", "fold")

    def on_mount(self) -> None:
        self.styles.width = max(line_width(line) for line in self._text) + 4
        self.styles.height = len(self._text) + 2 + (self.header(0) is not None)

    def move_to(self, line: int) -> None:
        """Scroll at once, since there is no cursor to see."""
        by = line - self.cursor
        self.scrolled(by)
        self.cursor = self.top


class Dialog(ModalScreen[str]):
    """A panel over the screen. It answers with a word; esc answers with ""."""

    AUTO_FOCUS = "#text"

    def __init__(self, panel: TextPanel) -> None:
        super().__init__()
        self._panel = panel

    def compose(self) -> ComposeResult:
        yield self._panel

    def action_answer(self, word: str = "") -> None:
        self.dismiss(word)


class Reading(Dialog):
    """Lines to read."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "answer", show=False)]

    def __init__(self, view: View, lines: Sequence[Line], title: str, note: str = "esc closes") -> None:
        super().__init__(TextPanel(view, lines, title, note))


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
