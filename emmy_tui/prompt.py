"""One line to type over the screen's last lines: a filter, knob values, a note, a file name.

What is typed is judged while it is typed, and the judgement stands beside it, so that enter never leads to a surprise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from emmy_tui.text import Line, Tone, clean, crop, wrap
from emmy_tui.view import View
from emmy_tui.widgets.panel import Panel

Judge = Callable[[str], str]


class Judgement(Panel):
    """The label, and what is wrong with what is typed."""

    framed = False

    def __init__(self, view: View, label: str, hint: str) -> None:
        super().__init__(view, id="judgement")
        self._label = label
        self._hint = hint
        self.wrong = ""

    def lines(self, width: int, height: int) -> list[Line]:
        glyphs = self.view.glyphs
        text, tone = (self.wrong, Tone.BAD) if self.wrong else (self._hint, Tone.DIM)
        rows = wrap(clean(text, glyphs), max(1, width - 1))
        if len(rows) > height - 1 > 0:
            rows = [*rows[: height - 2], crop(" ".join(rows[height - 2 :]), width, glyphs)]
        return [[(clean(self._label, glyphs), Tone.HEAD)], *([(row, tone)] for row in rows)]


class Prompt(ModalScreen[str | None]):
    """Answers with the text on enter, with None on esc; a text that `judge` has a sentence for stays open."""

    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", show=False)]

    def __init__(
        self,
        view: View,
        label: str,
        *,
        text: str = "",
        hint: str = "enter takes it, esc leaves",
        judge: Judge = lambda text: "",
        changed: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__()
        self._judgement = Judgement(view, label, hint)
        self._text = text
        self._judge = judge
        self._changed = changed

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._judgement
            yield Input(self._text, compact=True, select_on_focus=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._judgement.wrong = self._judge(event.value)
        self._judgement.repaint()
        if self._changed is not None and not self._judgement.wrong:
            self._changed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._judgement.wrong = self._judge(event.value)
        self._judgement.repaint()
        if not self._judgement.wrong:
            self.dismiss(event.value)

    def action_cancel(self) -> None:
        self.dismiss(None)
