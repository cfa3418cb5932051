"""What a person sees on a terminal, of the few sequences that a screen is painted with."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from rich.cells import get_character_cell_size

CURSOR_COLUMN, FIRST_ROW = 6, 3
_SEQUENCE = re.compile(
    r"\x1b\[([\d;?<>=]*)[ -/]*([@-~])|\x1b[\]P_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-OQ-Z\\^`-~]"
)


class Screen:
    """Characters where a program put them, with their colours and the colours behind them."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.columns, self.rows = size
        self._cells = [[" "] * size[0] for _ in range(size[1])]
        self._styles = [[("", "", frozenset[str]())] * size[0] for _ in range(size[1])]
        self._style = ("", "", frozenset[str]())
        self._x = self._y = 0
        self._begun = ""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def show(self, data: bytes) -> None:
        """Take what came; a sequence that isn't whole yet is kept for the next time."""
        text, self._begun, place = self._begun + self._decode(data), "", 0
        while place < len(text):
            if text[place] != "\x1b":
                self._put(text[place])
                place += 1
            elif found := _SEQUENCE.match(text, place):
                self._obey(found[1] or "", found[2] or "")
                place = found.end()
            else:
                self._begun = text[place:]
                return

    def _put(self, character: str) -> None:
        if character == "\n":
            self._y += 1
        elif character >= " ":
            width = get_character_cell_size(character)
            if self._y < self.rows and self._x + width <= self.columns:
                self._place(character, width)
            self._x += width

    def _place(self, character: str, width: int) -> None:
        row, styles = self._cells[self._y], self._styles[self._y]
        if width == 0:
            last = next((x for x in range(self._x - 1, -1, -1) if row[x]), None)
            if last is not None:
                row[last] += character
            return
        row[self._x], styles[self._x] = character, self._style
        if width == 2:
            row[self._x + 1], styles[self._x + 1] = "", self._style

    def _obey(self, parameters: str, final: str) -> None:
        if final == "H":
            row, _, column = parameters.partition(";")
            self._x, self._y = int(column or 1) - 1, int(row or 1) - 1
        elif final == "m":
            numbers = iter(parameters.split(";"))
            for number in numbers:
                self._turn(number, numbers)

    def _turn(self, number: str, others: Iterator[str]) -> None:
        text, behind, others_on = self._style
        if number in ("", "0"):
            self._style = "", "", frozenset()
        elif number in ("38", "48"):
            kind = next(others)
            colour = ",".join([kind, *(next(others) for _ in range(3 if kind == "2" else 1))])
            self._style = (colour, behind, others_on) if number == "38" else (text, colour, others_on)
        elif number.startswith(("3", "9")) and len(number) == 2:
            self._style = number, behind, others_on
        elif number.startswith(("4", "10")) and len(number) > 1:
            self._style = text, number, others_on
        else:
            self._style = text, behind, others_on | {number}

    @property
    def text(self) -> str:
        return "\n".join("".join(row) for row in self._cells)

    @property
    def seen(self) -> list[list[tuple[str, str, str, frozenset[str]]]]:
        """Each cell with the colour behind it, and where there is something to see, with its own and its attributes."""
        return [
            [
                (character, behind, "", on & {"4", "7", "9"}) if character in " " else (character, behind, text, on)
                for character, (text, behind, on) in zip(row, styles, strict=True)
            ]
            for row, styles in zip(self._cells, self._styles, strict=True)
        ]

    @property
    def cursor(self) -> int:
        """The first line that stands out in the panel at the left, by what is behind its text."""
        grounds = [row[CURSOR_COLUMN][1] for row in self._styles[FIRST_ROW:]]
        usual = max(grounds, key=grounds.count)
        return next((number for number, ground in enumerate(grounds) if ground != usual), -1)
