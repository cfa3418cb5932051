"""Lines of toned text: what a panel says, apart from how a terminal paints it.

A line is a list of (text, tone) spans, so that one function feeds the screen, the frame of `--once` and the tests.
Text from data is cleaned once, here: names, knobs and compiler errors are shown as they are and never act on the
terminal. Widths are terminal cells, not characters.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from rich.cells import cell_len


class Tone(StrEnum):
    """How a span is painted. A tone only repeats what the text already says by glyph and word."""

    PLAIN = "plain"
    DIM = "dim"
    HEAD = "head"
    GOOD = "good"
    BAD = "bad"
    BUSY = "busy"
    ACCENT = "accent"
    KEY = "key"


Span = tuple[str, Tone]
Line = list[Span]


@dataclass(frozen=True, slots=True)
class Glyphs:
    """Every drawn character that is not ASCII, one cell wide each, and its stand-in for `--ascii`."""

    ascii: bool
    horizontal: str
    vertical: str
    corners: str
    thumb: str
    opened: str
    closed: str
    cursor: str
    best: str
    running: str
    failed: str
    exhausted: str
    done: str
    waiting: str
    ellipsis: str
    bar: str
    live: str
    still: str
    total: str
    delta: str
    times: str
    at_most: str
    dash: str
    dot: str
    pinned: str
    rising: str
    falling: str
    differs: str


UNICODE = Glyphs(
    ascii=False,
    horizontal="─",
    vertical="│",
    corners="┌┐└┘",
    thumb="┃",
    opened="▾",
    closed="▸",
    cursor="▸",
    best="★",
    running="▶",
    failed="✗",
    exhausted="▪",
    done="✓",
    waiting="·",
    ellipsis="…",
    bar="▇",
    live="●",
    still="○",
    total="Σ",
    delta="Δ",
    times="×",
    at_most="≤",
    dash="–",
    dot="·",
    pinned="⚑",
    rising="▲",
    falling="▼",
    differs="≠",
)
ASCII = Glyphs(
    ascii=True,
    horizontal="-",
    vertical="|",
    corners="++++",
    thumb="#",
    opened="v",
    closed=">",
    cursor=">",
    best="*",
    running=">",
    failed="x",
    exhausted="=",
    done="+",
    waiting=".",
    ellipsis="~",
    bar="#",
    live="*",
    still="o",
    total="sum",
    delta="d",
    times="x",
    at_most="<=",
    dash="-",
    dot="-",
    pinned="P",
    rising="^",
    falling="v",
    differs="!",
)

_SPACES = {"Zl", "Zp"}
_GONE = {"Cc", "Cf"}
_WIDTHS = re.compile("[\u20e3\U0001f3fb-\U0001f3ff]")
"""What changes how wide the character before it is: skin tones and the key cap. Terminals and multiplexers differ in
whether they do it, and the cells behind would be off."""
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Unicode's Default_Ignorable_Code_Point: variation selectors, tags, joiners and fillers. Nobody sees them, and a
terminal may draw the character before them otherwise."""
_FLAG_LETTERS = {0x1F1E6 + number: chr(ord("A") + number) for number in range(26)}
"""Two of them are a flag of two cells in one terminal, and of four in another one."""


def clean(text: str, glyphs: Glyphs = UNICODE) -> str:
    """The text with nothing in it that acts on a terminal: control, direction and invisible characters are left out,
    and those that change the width of others.

    Line breaks and tabs become blanks. A lone surrogate, which can't be written to a terminal, becomes U+FFFD.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _WIDTHS.sub("", _IGNORABLE.sub("", text)).translate(_FLAG_LETTERS)
    kept = "".join(_clean_character(character) for character in text)
    return kept.encode("ascii", "replace").decode() if glyphs.ascii else kept


def _clean_character(character: str) -> str:
    if character in "\n\r\t\v\f":
        return " "
    category = unicodedata.category(character)
    if category in _SPACES:
        return " "
    if category in _GONE:
        return ""
    return "\ufffd" if category == "Cs" else character


def escaped(text: str) -> str:
    """The text with every character that `clean` doesn't keep written out, as in \\x1b and \\n.

    For what leaves the screen: a pasted line break runs a command, and a terminal obeys a file that is printed.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped_character(character) for character in text)


def _escaped_character(character: str) -> str:
    if clean(character) == character:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def width_of(text: str) -> int:
    """Terminal cells that the text takes."""
    return len(text) if text.isascii() else _wide_width(text)


@lru_cache(maxsize=4096)
def _wide_width(text: str) -> int:
    return cell_len(text)


def crop(text: str, width: int, glyphs: Glyphs = UNICODE) -> str:
    """The text in at most `width` cells; what is cut ends in an ellipsis."""
    if width <= 0:
        return ""
    if width_of(text) <= width:
        return text
    if text.isascii():
        return text[: width - 1].removesuffix(glyphs.ellipsis) + glyphs.ellipsis
    kept = ""
    for character in text:
        if width_of(kept + character) > width - 1:
            break
        kept += character
    return kept.removesuffix(glyphs.ellipsis) + glyphs.ellipsis  # a text may be cut already where it comes from


def left(text: str, width: int, glyphs: Glyphs = UNICODE) -> str:
    """The text in exactly `width` cells, flush left."""
    text = crop(text, width, glyphs)
    return text + " " * (width - width_of(text))


def right(text: str, width: int, glyphs: Glyphs = UNICODE) -> str:
    """The text in exactly `width` cells, flush right."""
    text = crop(text, width, glyphs)
    return " " * (width - width_of(text)) + text


def line_width(line: Line) -> int:
    return sum(width_of(text) for text, _ in line)


def fit_line(line: Line, width: int, glyphs: Glyphs = UNICODE) -> Line:
    """The line in exactly `width` cells: cropped with an ellipsis, or padded with blanks."""
    fitted: Line = []
    left_over = max(width, 0)
    for text, tone in line:
        if left_over <= 0:
            break
        taken = crop(text, left_over, glyphs)
        if taken:
            fitted.append((taken, tone))
            left_over -= width_of(taken)
        if taken != text:
            break
    if left_over > 0:
        fitted.append((" " * left_over, Tone.PLAIN))
    return fitted


def both_ends(start: Line, end: Line, width: int, glyphs: Glyphs = UNICODE) -> Line:
    """One line with `start` at its left and `end` at its right; `end` goes first where both don't fit."""
    room = width - line_width(start)
    if line_width(end) + 1 > room:
        return fit_line(start, width, glyphs)
    return [*start, (" " * (room - line_width(end)), Tone.PLAIN), *end]


def plain(line: Line) -> str:
    return "".join(text for text, _ in line)


def word_at(text: str, place: int) -> str:
    """The word at a place of a text of one-cell characters, or the next one at the right of it; else ""."""
    if not 0 <= place < len(text):
        return ""
    start = text.rfind(" ", 0, place + 1) + 1
    return next(iter(text[start:].split()), "")


def wrap(text: str, width: int) -> list[str]:
    """The text in rows of at most `width` cells, broken at blanks where there is one."""
    rows: list[str] = []
    row = ""
    for word in text.split(" "):
        while width_of(word) > width > 0:
            piece = _head(word, width)
            if row:
                rows.append(row)
                row = ""
            rows.append(piece)
            word = word[len(piece) :]
        joined = f"{row} {word}" if row else word
        if width_of(joined) <= width:
            row = joined
        else:
            rows.append(row)
            row = word
    return [*rows, row] if row or not rows else rows


def fold(text: str, width: int) -> list[str]:
    """The text in rows of at most `width` cells, with all its blanks: what a program is written in."""
    rows = []
    while width_of(text) > width > 0:
        row = _head(text, width)
        rows.append(row)
        text = text[len(row) :]
    return [*rows, text]


def _head(word: str, width: int) -> str:
    kept = ""
    for character in word:
        if width_of(kept + character) > width:
            break
        kept += character
    return kept or word[:1]
