"""The last line: the keys that work now; and above it, for a while, what just happened.

A sentence takes lines of its own, so that it never lies over what a person reads.
"""

from __future__ import annotations

import time

from emmy_tui.action import Now
from emmy_tui.actions import Keys, first_key, footer_actions
from emmy_tui.text import Line, Tone, clean, line_width, wrap
from emmy_tui.view import View
from emmy_tui.widgets.panel import Panel

SHOWN_S = 6.0
SAID_LINES = 3


def footer_line(now: Now, width: int, keys: Keys | None = None) -> Line:
    """As many of the offered keys as fit whole."""
    line: Line = []
    for action in footer_actions(now):
        item: Line = [(first_key(action, keys), Tone.KEY), (f" {action.label}", Tone.PLAIN)]
        gap: Line = [("  ", Tone.PLAIN)] if line else []
        if line_width(line) + line_width(gap) + line_width(item) > width:
            break
        line += gap + item
    return line


class Footer(Panel):
    """Set `now` and repaint. `say` shows a sentence for SHOWN_S seconds, over as many lines as it needs, at most 3."""

    framed = False

    def __init__(self, view: View, *, id: str = "footer") -> None:
        super().__init__(view, id=id)
        self.now = Now()
        self.said = ""
        self._tone = Tone.PLAIN
        self._until = 0.0

    def lines(self, width: int, height: int) -> list[Line]:
        sentence: list[Line] = [[(f" {row}", self._tone)] for row in self._rows(width)]
        return [*sentence[: max(0, height - 1)], footer_line(self.now, width, self.view.keys)]

    def _rows(self, width: int) -> list[str]:
        text = clean(self.said, self.view.glyphs)
        return wrap(text, max(1, width - 2))[:SAID_LINES] if text else []

    def say(self, text: str, *, warns: bool) -> None:
        self.said, self._tone = text, Tone.BUSY if warns else Tone.GOOD
        self._until = time.monotonic() + SHOWN_S

    def fit(self, width: int) -> None:
        """Take the lines that the sentence needs, until its time is over."""
        if self.said and time.monotonic() > self._until:
            self.said = ""
        self.styles.height = 1 + len(self._rows(width))
