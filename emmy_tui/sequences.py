"""What a terminal sends, cut into keys and pastes; its own replies are left out.

A terminal answers what a program asks of it (its name, its colours, its state) on the input, also long after the
question and also to a program that didn't ask. A reply is a control string, from ESC and one of `] P _ ^ X` to ESC \\
or BEL, or a sequence after ESC [ that is no key. Taken for keys it would stop a run.

Escape and `]` that a person types are the first two characters of a reply. They are keys where nothing follows that
ends a string: a string is waited for only so long, and only so many characters.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from textual import constants
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._xterm_parser import (
    BRACKETED_PASTE_END,
    BRACKETED_PASTE_START,
    SPECIAL_SEQUENCES,
    _re_extended_key,
    _re_in_band_window_resize,
    _re_mouse_event,
    _re_terminal_mode_response,
)

ESCAPE, BELL, DELETE = "\x1b", "\x07", "\x7f"
ESCAPE_S = constants.ESCAPE_DELAY if "ESCDELAY" in os.environ else 0.05
"""How long what may follow an escape is waited for: a terminal sends a key at once, and a slow link in one packet."""
STRING_S = 0.5
"""How long the next character of what may be a reply is waited for: a connection may pause in the middle of it."""
WHOLE_S = 2.0
"""How long a whole reply may take, and how long its rest is waited for once it is known to be one."""
PASTE_S = 0.5
"""A paste that says nothing for so long is over, even if its end was lost with the connection."""
DOUBTFUL, LONGEST = 256, 1 << 16
"""Characters of a string that may be no reply, and of one that is. A longer one is given up."""
PASTE_LONGEST = 1 << 20
"""Characters of a paste that are handed on at once."""
MOUSE_PLACES = 3
"""Characters of a mouse report of the oldest kind, after ESC [ M."""

_STRINGS = "]P_^X"
_CONTROLS_OF_8_BITS = {chr(ord(final) + 0x40): ESCAPE + final for final in "PX[\\]^_"}
_MODIFIED_F3 = re.compile(r"\x1b\[1;([2-9]|1[0-6])R\Z")
"""Also where the cursor is, in the first line; nobody here asks for that."""
_KNOWN = (_re_extended_key, _re_mouse_event, _re_terminal_mode_response, _re_in_band_window_resize)
_FINAL = re.compile(r"[@-~]")
_REPLIES = {
    "]": re.compile(r"\d+;"),
    "P": re.compile(r">\||!\||[\d;]*[$+!][@-~]|\d+;[\d;]*[@-~]"),
    "_": re.compile(r"G\w+="),
    "[": re.compile(r"[<-?]|M.|\d+;\d"),
}
"""How the inside of what only a terminal sends begins, where it need not be whole to be told from keys."""
_BEGUN = {"]": re.compile(r"\d"), "P": re.compile(r"[>!\d]"), "_": re.compile(r"G"), "[": re.compile(r"[^M]")}
"""How it may begin."""


@dataclass(frozen=True, slots=True)
class Pasted:
    """Text from a clipboard."""

    text: str


Piece = str | Pasted
"""A character, an escape alone or with its alt, a sequence that means something; or pasted text."""


class Cutter:
    """Cuts text as it comes, a part at a time. `keeps_alt` says of which characters an escape before them is alt."""

    def __init__(self, keeps_alt: Callable[[str], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._keeps_alt = keeps_alt
        self._clock = clock
        self._held = ""
        """What may become a sequence, from its escape on; "" in between."""
        self._begun_at = self._heard_at = 0.0
        self._paste: str | None = None

    @property
    def pasting(self) -> bool:
        return self._paste is not None

    @property
    def waiting(self) -> bool:
        """Whether what comes next, or that nothing does, decides what came."""
        return bool(self._held)

    def cut(self, text: str) -> Iterator[Piece]:
        """The pieces that are complete with this text."""
        self._heard_at = self._clock()
        while text:
            if self._paste is not None:
                text = yield from self._take_pasted(text)
            else:
                character, text = text[0], text[1:]
                for one in _CONTROLS_OF_8_BITS.get(character, character):
                    yield from self._take(one)

    def waited(self) -> Iterator[Piece]:
        """What is complete because nothing came after it."""
        quiet = self._clock() - self._heard_at
        if self._paste is not None and quiet >= PASTE_S:
            yield from self.end_paste()
        elif self._held:
            begun, escaped = self._held.removesuffix(ESCAPE), self._held.endswith(ESCAPE)
            late = bool(begun) and self._clock() - self._begun_at >= WHOLE_S
            if late or quiet >= _patience(begun):
                yield from self._give_up(begun)
                if escaped and not _is_reply(begun):
                    yield ESCAPE

    def end_paste(self) -> Iterator[Piece]:
        """Take what was pasted so far for all of it."""
        text, self._paste = self._paste, None
        if text:
            yield Pasted(text)

    def _take_pasted(self, text: str) -> Generator[Piece, None, str]:
        """Keep pasted text; returns what comes after it."""
        before = self._paste or ""
        joined = before + text
        end = joined.find(BRACKETED_PASTE_END, max(0, len(before) - len(BRACKETED_PASTE_END)))
        if end >= 0:
            self._paste = joined[:end]
            yield from self.end_paste()
            return joined[end + len(BRACKETED_PASTE_END) :]
        self._paste = joined
        if len(joined) > PASTE_LONGEST:
            cut = len(joined) - len(BRACKETED_PASTE_END)
            yield Pasted(joined[:cut])
            self._paste = joined[cut:]
        return ""

    def _take(self, character: str) -> Iterator[Piece]:
        held = self._held
        if not held:
            yield from self._begin(character)
        elif held == ESCAPE:
            yield from self._take_after_escape(character)
        elif held.endswith(ESCAPE):
            if character == "\\":
                self._held = ""
                return
            yield from self._give_up(held[:-1])
            yield from self._begin(ESCAPE)
            yield from self._take(character)
        elif held[1] in _STRINGS:
            yield from self._take_of_string(character)
        elif character < " " or character >= DELETE:
            yield from self._give_up(held)
            yield from self._begin(character)
        else:
            self._held += character
            yield from self._take_sequence(self._held)

    def _begin(self, character: str) -> Iterator[Piece]:
        if character == ESCAPE:
            self._held, self._begun_at = ESCAPE, self._clock()
        else:
            yield character

    def _take_after_escape(self, character: str) -> Iterator[Piece]:
        if character in "[O" or character in _STRINGS:
            self._held += character
            return
        self._held = ""
        if character == "\\":  # the end of a string that was given up
            return
        if self._keeps_alt(character):
            yield ESCAPE + character
            return
        yield ESCAPE
        yield from self._begin(character)

    def _take_of_string(self, character: str) -> Iterator[Piece]:
        if character == BELL:
            self._held = ""
        elif (character < " " and character != ESCAPE) or character == DELETE:  # no reply holds it: a person's key
            yield from self._give_up(self._held)
            yield from self._begin(character)
        else:
            self._held += character
            if len(self._held) > (LONGEST if _is_reply(self._held) else DOUBTFUL):
                yield from self._give_up(self._held)

    def _take_sequence(self, held: str) -> Iterator[Piece]:
        """A sequence after ESC [ or ESC O, with one more character."""
        if held == BRACKETED_PASTE_START:
            self._held, self._paste = "", ""
        elif modified := _MODIFIED_F3.match(held):
            self._held = ""
            yield f"{ESCAPE}[13;{modified[1]}~"
        elif held in ANSI_SEQUENCES_KEYS or held in SPECIAL_SEQUENCES or any(one.fullmatch(held) for one in _KNOWN):
            self._held = ""
            yield held
        elif held[1] == "O":
            if not held[2:].isdigit():
                yield from self._give_up(held)
        elif held[2:] != "[" and _FINAL.match(held[-1]) and not (held[2] == "M" and len(held) < 3 + MOUSE_PLACES):
            if len(held) == 3:  # no reply is so short
                yield from self._give_up(held)
            self._held = ""
        elif len(held) > DOUBTFUL:
            yield from self._give_up(held)

    def _give_up(self, begun: str) -> Iterator[Piece]:
        """Let go what is known to be of a terminal; else it was typed."""
        self._held = ""
        if not begun or _is_reply(begun):
            return
        if len(begun) == 2 and self._keeps_alt(begun[1]):
            yield begun
        else:
            yield from begun


def _is_reply(begun: str) -> bool:
    shape = _REPLIES.get(begun[1:2])
    return shape is not None and shape.match(begun, 2) is not None


def _patience(begun: str) -> float:
    """How long a sequence is waited for: longer where a reply begins like that, and longest where it is one."""
    if _is_reply(begun) and begun[1:3] != "[M":  # an old mouse report, of a few characters, comes at once
        return WHOLE_S
    shape = _BEGUN.get(begun[1:2])
    return STRING_S if shape is not None and shape.match(begun, 2) else ESCAPE_S
