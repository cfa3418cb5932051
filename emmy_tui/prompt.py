"""One line to type over the screen's last lines: a filter, knob values, a note, a file name.

What is typed is judged while it is typed, and the judgement stands beside it, so that enter never leads to a surprise.
Enter is handled where it is typed, before the key that follows: `emmy_tui.key_order` gives the line a key at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input

from emmy_tui.text import Line, Tone, clean, crop, wrap
from emmy_tui.view import View
from emmy_tui.widgets.panel import Panel
from engine.typed_path import BadPath, typed_file

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


class TypedLine(Input):
    """Textual's line asks its bindings for enter after the keys that came with it; this one takes it in their order."""

    def __init__(self, text: str, take: Callable[[str], None]) -> None:
        super().__init__(text, compact=True, select_on_focus=False)
        self._take = take

    async def _on_key(self, event: Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self._take(self.value)
        else:
            await super()._on_key(event)


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
            yield TypedLine(self._text, self._taken)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._judgement.wrong = self._judge(event.value)
        self._judgement.repaint()
        if self._changed is not None and not self._judgement.wrong:
            self._changed(event.value)

    def _taken(self, text: str) -> None:
        """Enter: once for a prompt, however often it is pressed."""
        self._judgement.wrong = self._judge(text)
        self._judgement.repaint()
        if not self._judgement.wrong and self.is_current:
            self.dismiss(text)

    def action_cancel(self) -> None:
        self.dismiss(None)


def ask_file(
    app: App[Any],
    view: View,
    label: str,
    named: Callable[[Path | None], None],
    warn: Callable[[str], None],
    *,
    text: str = "",
    hint: str,
) -> None:
    """Ask for a file that is there; `named` gets its path, None for an empty line, and nothing after esc."""

    def judge(typed: str) -> str:
        try:
            _file_of(typed)
        except BadPath as error:
            return str(error)
        return ""

    def answered(typed: str | None) -> None:
        if typed is None:
            return
        try:
            path = _file_of(typed)
        except BadPath as error:  # it was there while it was typed
            warn(str(error))
            return
        named(path)

    app.push_screen(Prompt(view, label, text=text, hint=hint, judge=judge), answered)


def _file_of(typed: str) -> Path | None:
    return typed_file(typed.strip()) if typed.strip() else None
