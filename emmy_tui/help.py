"""The help: every key, from the action table, and the words of the screen that no key explains; searched by typing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Key

from emmy_tui.action import Action, Group, Now, reason_why_not
from emmy_tui.actions import ACTIONS, Keys, keys_of, spoken
from emmy_tui.dialogs import Dialog, TextPanel
from emmy_tui.text import Line, Tone, clean, left, wrap
from emmy_tui.view import View
from engine import __version__

WRITTEN = 14
"""Cells of the keys in the help."""
WORDS_HEAD = "Words and numbers"
WORDS = (
    ("us", "The time that counts: in the deploy regime, before there is one in the ranking regime"),
    ("of all", "A kernel's part of its program: its time, as often as it occurs, of the sum"),
    (
        "floor",
        "How many times as long a kernel takes as at the rates measured of the GPU: 1.83m by its memory, 12.4c by its "
        "compute; below 1 where only a copy's rate was measured, as reading alone is faster",
    ),
    ("search 54%", "How much of the run the search itself took, beside compiling and measuring"),
    ("gpu idle 20%", "How much of the run the GPU measured nothing"),
    ("prior 1.00", "What the prior promises of a branch, where its best sibling has 1.00"),
    ("assembled", "The whole program with the best schedules, timed at once; beside it, how far from the sum"),
    ("cached", "Candidates whose time this or an earlier run had measured already"),
    ("rank, dep", "The regime of a time: ranking is quick and in a loop, deploy is as a program runs it"),
)
"""What stands on the screen, and what it means."""


def help_lines(now: Now, keys: Keys | None = None, width: int = 200, wanted: str = "") -> list[Line]:
    """Every action under its heading, and the words, in at most `width` cells; what doesn't work now is dim and says
    why. With `wanted`, those entries that have all of its words."""
    lines: list[Line] = []
    for head, entries in _sections(now, keys):
        found = [entry for entry in entries if _has(entry, head, wanted)]
        if found:
            lines += [[], [(head, Tone.HEAD)]] if lines else [[(head, Tone.HEAD)]]
        for written, text, works, _ in found:
            rows = wrap(text, max(20, width - WRITTEN))
            heads = ["  " + left(written, WRITTEN - 2), *[" " * WRITTEN] * (len(rows) - 1)]
            for start, row in zip(heads, rows, strict=True):
                lines.append([(start, Tone.KEY if works else Tone.DIM), (row, Tone.PLAIN if works else Tone.DIM)])
    return lines


Entry = tuple[str, str, bool, str]
"""What is pressed or read, what it means, whether it works now, and the word that the footer has for it."""


def _sections(now: Now, keys: Keys | None) -> Iterator[tuple[str, list[Entry]]]:
    for group in Group:
        yield str(group), [_entry(action, now, keys) for action in ACTIONS if action.group is group]
    yield WORDS_HEAD, [(word, meaning, True, "") for word, meaning in WORDS]


def _entry(action: Action, now: Now, keys: Keys | None) -> Entry:
    written = " ".join(spoken(key) for key in keys_of(action, keys))
    works = action.when(now)
    reason = "" if works else reason_why_not(action, now)
    meaning = _where(action) + action.meaning
    return written, f"{meaning}  ({reason})" if reason else meaning, works, action.label


def _has(entry: Entry, head: str, wanted: str) -> bool:
    """Whether all words stand in the entry or its heading; a single character is meant as a key."""
    written, text, _, label = entry
    if len(wanted.strip()) == 1:
        return wanted.strip() in written.split()
    searched = f"{written} {text} {label} {head}".casefold()
    return all(word in searched for word in wanted.casefold().split())


def _where(action: Action) -> str:
    """The tabs of an action whose key means something else on another tab."""
    shared = any(set(action.keys) & set(other.keys) for other in ACTIONS if other is not action and other.tabs)
    return f"{' and '.join(tab.capitalize() for tab in action.tabs)}: " if shared and action.tabs else ""


class HelpPanel(TextPanel):
    """`found` makes the lines of a width that have what was typed. While it is typed, every character belongs to it."""

    def __init__(self, view: View, found: Callable[[int, str], list[Line]]) -> None:
        super().__init__(view, lambda width: found(width, ""), f"Keys of emmy-tui {__version__}")
        self._found = found
        self._typing = False
        self._wanted = ""

    def note(self) -> Line:
        if not self._typing and not self._wanted:
            return [("/ searches  esc closes", Tone.DIM)]
        mark = "_" if self._typing else ""
        return [(f"/{clean(self._wanted, self.view.glyphs)}{mark}", Tone.ACCENT), ("  esc shows all", Tone.DIM)]

    def empty(self) -> str:
        return "Nothing in the help has that"

    def on_key(self, event: Key) -> None:
        if event.key == "escape" and (self._typing or self._wanted):
            self._typing = False
            self._search("")
        elif event.key == "slash" and not self._typing:
            self._typing = True
            self._search("")
        elif not self._typing:
            return
        elif event.key == "enter":
            self._typing = False
            self.repaint()
        elif event.key == "backspace":
            self._search(self._wanted[:-1])
        elif event.is_printable and event.character:
            self._search(self._wanted + event.character)
        else:
            return
        event.stop()
        event.prevent_default()

    def _search(self, wanted: str) -> None:
        self._wanted = wanted
        self.show(lambda width: self._found(width, wanted))


class Help(Dialog):
    """The key map, from the action table, and the words."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "answer", show=False),
        Binding("question_mark,f1", "answer", show=False, id="help"),
    ]

    def __init__(self, view: View, now: Now) -> None:
        super().__init__(HelpPanel(view, lambda width, wanted: help_lines(now, view.keys, width, wanted)))
