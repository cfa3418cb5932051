"""The last line: the keys that work now; and above it, for a while, what just happened.

A sentence takes lines of its own, so that it never lies over what a person reads.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from textual.events import Click
from textual.message import Message

from emmy_tui.action import Action, Now
from emmy_tui.actions import Keys, first_key, footer_actions
from emmy_tui.text import Line, Tone, clean, width_of, wrap
from emmy_tui.view import View
from emmy_tui.widgets.panel import Panel

SHOWN_S = 6.0
SAID_LINES = 3
MORE = "more"


HELP = "help"
GAP = "  "
COVERED: Line = [("esc", Tone.KEY), (" Close", Tone.PLAIN)]


def footer_items(now: Now, width: int, keys: Keys | None = None) -> list[tuple[Action, str, str]]:
    """The offered actions that fit whole, with key and word. The help is the last: where others had no room, it is
    called more, as it lists them."""
    *offered, last = [(action, first_key(action, keys), action.label) for action in footer_actions(now)]
    if last[0].name != HELP or _width([*offered, last]) <= width:
        return [*offered, last]
    last = (last[0], last[1], MORE)
    shown: list[tuple[Action, str, str]] = []
    for item in offered:
        if _width([*shown, item, last]) > width:
            break
        shown.append(item)
    return [*shown, last] if _width([*shown, last]) <= width else shown


def _width(items: Sequence[tuple[Action, str, str]]) -> int:
    return sum(width_of(f"{key} {word}") for _, key, word in items) + len(GAP) * (len(items) - 1)


def footer_line(now: Now, width: int, keys: Keys | None = None) -> Line:
    """The offered keys in one line of at most `width` cells."""
    line: Line = []
    for _, key, word in footer_items(now, width, keys):
        line += [(GAP, Tone.PLAIN)] if line else []
        line += [(key, Tone.KEY), (f" {word}", Tone.PLAIN)]
    return line


def footer_action(now: Now, width: int, place: int, keys: Keys | None = None) -> Action | None:
    """The action whose key or word stands at a place of the line."""
    start = 0
    for action, key, word in footer_items(now, width, keys):
        end = start + width_of(f"{key} {word}")
        if start <= place < end:
            return action
        start = end + len(GAP)
    return None


class Footer(Panel):
    """Set `now` and repaint. `say` shows a sentence for SHOWN_S seconds, over as many lines as it needs, at most 3."""

    framed = False

    class Pressed(Message):
        """A person clicked on the key of an action."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, view: View, *, id: str = "footer") -> None:
        super().__init__(view, id=id)
        self.now = Now()
        self.covered = False
        """Whether a dialog is open, which has keys of its own."""
        self.said = ""
        self.waiting = ""
        """What is said, in place of nothing, as long as it is so."""
        self._tone = Tone.PLAIN
        self._until = 0.0

    def lines(self, width: int, height: int) -> list[Line]:
        tone = self._tone if self.said else Tone.BUSY
        sentence: list[Line] = [[(f" {row}", tone)] for row in self._rows(width)]
        keys = COVERED if self.covered else footer_line(self.now, width, self.view.keys)
        return [*sentence[: max(0, height - 1)], keys]

    def on_click(self, event: Click) -> None:
        if event.y == self.size.height - 1:
            action = footer_action(self.now, self.size.width, event.x, self.view.keys)
            if action is not None:
                self.post_message(self.Pressed(action.name))

    def _rows(self, width: int) -> list[str]:
        text = clean(self.said or self.waiting, self.view.glyphs)
        return wrap(text, max(1, width - 2))[:SAID_LINES] if text else []

    def say(self, text: str, *, warns: bool) -> None:
        self.said, self._tone = text, Tone.BUSY if warns else Tone.GOOD
        self._until = time.monotonic() + SHOWN_S

    def fit(self, width: int) -> None:
        """Take the lines that the sentence needs, until its time is over."""
        if self.said and time.monotonic() > self._until:
            self.said = ""
        self.styles.height = 1 + len(self._rows(width))
