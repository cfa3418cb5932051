"""What the terminal shows, cell by cell, and the fewest bytes that make it show what it should.

Textual writes every region again that may have changed, with every colour in full: more than a slow link carries. Here
its frames only say what is wanted. What differs from what is shown is asked for once the terminal has taken what came
before, so that a slow one misses frames in between, and none waits in front of a key's echo.

Textual's own diff of a screen would make this needless: it can go when a tab that is shown twice is written once.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import IO

from rich.cells import get_character_cell_size
from textual._ansi_sequences import SYNC_END, SYNC_START

FRAME = ""
"""Handed over in place of a frame: the thread that writes asks for what differs by then."""
BRIDGED = 6
"""Cells that don't differ and are written all the same: to go around them takes as many bytes."""

_TOKEN = re.compile(r"\x1b\[([\d;]*)([Hm])|([^\x1b\x00-\x09\x0b-\x1f\x7f]+)")
_SHOWS_NOTHING = re.compile(r"(?:\x1b\[[?>=<][\d;]*\$?[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x07)+")
"""Modes, questions, the clipboard, the bell."""
_OTHER_SCREEN = "\x1b[?1049"
_SHOWN_ON_BLANKS = frozenset(("4", "5", "6", "7", "9", "21", "53"))
"""Underlined, blinking, reversed, struck through, overlined."""

Style = tuple[tuple[str, ...], str | None, str]
"""Attributes, the colour of the text and the one behind it as SGR parameters; None where no text is seen."""
Cell = tuple[str, Style]
PLAIN: Style = ((), "", "")
_UNKNOWN: Cell = ("\0", PLAIN)


class Canvas:
    """`hand_over` is for the loop, `changes` and `forget` for the thread that writes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._size = (0, 0)
        self._wanted: list[list[Cell]] = []
        self._shown: list[list[Cell]] = []
        self._odd: set[int] = set()
        """Lines with characters that terminals don't agree on how wide they are: they are written whole."""
        self._cursor = (0, 0)
        self._at_once = self._asked = False

    def hand_over(self, data: str, size: tuple[int, int]) -> str | None:
        """What goes to the writing thread of what Textual writes: all of it, a FRAME, or nothing, as one waits there.

        `size` is the screen's, in columns and rows: one of another size is painted anew.
        """
        if size != self._size:
            self._size = size
            self.clear()
        if data in (SYNC_START, SYNC_END):
            self._at_once = True
            return None
        if self.take(data):
            asked, self._asked = self._asked, True
            return None if asked else FRAME
        if _OTHER_SCREEN in data:
            self.clear()
        return data

    def clear(self) -> None:
        """Nothing is wanted yet, and nobody knows what is shown."""
        columns, rows = self._size
        with self._lock:
            self._wanted = [[_UNKNOWN] * columns for _ in range(rows)]
            self._shown = [[_UNKNOWN] * columns for _ in range(rows)]
            self._odd.clear()
            self._asked = False

    def forget(self) -> None:
        """Nobody knows what is shown."""
        with self._lock:
            for row in self._shown:
                row[:] = [_UNKNOWN] * len(row)
            self._asked = False

    def take(self, frame: str) -> bool:
        """Want what a frame of Textual paints; False, and nothing is taken, where it holds anything else."""
        tokens = list(_TOKEN.finditer(frame))
        if not tokens or sum(len(token[0]) for token in tokens) != len(frame):
            return False
        with self._lock:
            self._paint(tokens)
        return True

    def _paint(self, tokens: list[re.Match[str]]) -> None:
        x = y = 0
        style = ""
        for token in tokens:
            parameters, final, text = token.groups()
            if final == "H":
                row, _, column = parameters.partition(";")
                x, y = int(column or 1) - 1, int(row or 1) - 1
            elif final == "m":
                style = "" if parameters in ("", "0") else f"{style};{parameters}" if style else parameters
            else:
                first, *others = text.split("\n")
                x = self._write(x, y, first, style)
                for line in others:
                    y += 1
                    x = self._write(x, y, line, style)
        self._cursor = x, y

    def _write(self, x: int, y: int, text: str, style: str) -> int:
        """Text from a cell on; returns the column after it."""
        if not text or y >= len(self._wanted):
            return x + len(text)
        row, split = self._wanted[y], split_style(style)
        if text.isspace() and _SHOWN_ON_BLANKS.isdisjoint(split[0]):
            split = _blank(split[2])
        cells = [(character, split) for character in text]
        if not text.isascii() and any(get_character_cell_size(character) != 1 for character in text):
            self._odd.add(y)
            cells = _in_cells(text, split)
        row[x : x + len(cells)] = cells[: max(0, len(row) - x)]
        if y in self._odd:
            _heal(row)
        return x + len(cells)

    def changes(self) -> str:
        """What to write so that the terminal shows what is wanted, which it is taken to do from then on."""
        parts: list[str] = []
        with self._lock:
            self._asked, style = False, PLAIN
            for y, (wanted, shown) in enumerate(zip(self._wanted, self._shown, strict=True)):
                if wanted == shown:
                    continue
                for begin, end in self._spans(y):
                    parts.append(f"\x1b[{y + 1};{begin + 1}H")
                    for character, wanted_style in wanted[begin:end]:
                        if wanted_style is not style:
                            code, style = change_of_style(style, wanted_style)
                            parts.append(code)
                        parts.append(character)
                shown[:] = wanted
            if parts:
                x, y = self._cursor
                parts.append(f"\x1b[0m\x1b[{y + 1};{x + 1}H")
        text = "".join(parts)
        return f"{SYNC_START}{text}{SYNC_END}" if text and self._at_once else text

    def _spans(self, y: int) -> Iterator[tuple[int, int]]:
        """The cells of a line that differ, from and up to."""
        wanted, shown = self._wanted[y], self._shown[y]
        begin = end = -1
        for x, cell in enumerate(wanted):
            if begin >= 0 and (cell is _UNKNOWN or x - end > BRIDGED):
                yield begin, end
                begin = -1
            if cell is _UNKNOWN or (cell == shown[x] and y not in self._odd):
                continue
            begin, end = (x if begin < 0 else begin), x + 1
        if begin >= 0:
            yield begin, end


class Painting:
    """The terminal as the writing thread sees it, for the `canvas` that is shown there."""

    def __init__(self, file: IO[str], canvas: Canvas) -> None:
        self._file, self._canvas = file, canvas

    def write(self, text: str) -> int:
        """Text that isn't known to show nothing may have shown anything."""
        if text == FRAME:
            return self._file.write(self._canvas.changes())
        if not _SHOWS_NOTHING.fullmatch(text) or _OTHER_SCREEN in text:
            self._canvas.forget()
        return self._file.write(text)

    def flush(self) -> None:
        self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()


@lru_cache(maxsize=4096)
def split_style(style: str) -> Style:
    """SGR parameters, sorted by what they are about."""
    attributes: list[str] = []
    text = behind = ""
    numbers = iter(style.split(";"))
    for number in numbers:
        if number in ("38", "48"):
            kind = next(numbers, "")
            colour = ";".join([number, kind, *(next(numbers, "") for _ in range(3 if kind == "2" else 1))])
            text, behind = (colour, behind) if number == "38" else (text, colour)
        elif re.fullmatch(r"3[0-7]|9[0-7]", number):
            text = number
        elif re.fullmatch(r"4[0-7]|10[0-7]", number):
            behind = number
        elif number not in ("", "39", "49"):
            attributes.append(number)
    return tuple(attributes), text, behind


@lru_cache(maxsize=1024)
def _blank(behind: str) -> Style:
    return (), None, behind


@lru_cache(maxsize=4096)
def change_of_style(before: Style, after: Style) -> tuple[str, Style]:
    """The sequence from one style to another, and the style that then holds."""
    attributes, text, behind = after
    if text is None:
        text = before[1]
        attributes = before[0] if _SHOWN_ON_BLANKS.isdisjoint(before[0]) else ()
    holds = attributes, text, behind
    if holds == before:
        return "", before
    anew = attributes != before[0] or (before[1] and not text) or (before[2] and not behind)
    parts = ["0", *attributes] if anew else []
    parts += [text] if text and (anew or text != before[1]) else []
    parts += [behind] if behind and (anew or behind != before[2]) else []
    return f"\x1b[{';'.join(parts)}m", holds


def _width(character: str) -> int:
    return get_character_cell_size(character[0]) if character else 0


def _in_cells(text: str, style: Style) -> list[Cell]:
    """A wide character has an empty cell after it; one without a width of its own is of the cell before it."""
    cells: list[Cell] = []
    last = 0
    for character in text:
        if width := _width(character):
            last = len(cells)
            cells += [(character, style), *[("", style)] * (width - 1)]
        elif cells:
            cells[last] = cells[last][0] + character, style
    return cells


def _heal(row: list[Cell]) -> None:
    """What is left of a wide character that was written over in part is blank."""
    for x, (character, style) in enumerate(row):
        half = not character and (x == 0 or _width(row[x - 1][0]) != 2)
        if half or (_width(character) == 2 and (x + 1 == len(row) or row[x + 1][0])):
            row[x] = " ", style
