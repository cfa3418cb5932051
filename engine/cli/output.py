"""The forms that every command prints in: tables, times, JSON.

A pipe has no width, so that nothing is cut for the program that reads it; on a terminal the last column of a table
wraps under itself, and the columns before it keep their width.
"""

from __future__ import annotations

import math
import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from engine.plain_json import plain_json

GAP = "  "
_WORD = re.compile("[^\\s;,:'\"`()]+")
_OTHER_BYTE = re.compile("[\udc80-\udcff]")
NARROWEST = 24
"""Columns that a wrapped last column keeps, however wide the ones before it are."""


def terminal_width(stream: TextIO) -> int | None:
    """Columns of the terminal behind a stream, or None if it is no terminal."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80 if stream.isatty() else None
    except (OSError, ValueError):
        return None


def printable(text: str) -> str:
    """The text with its control characters made visible: a database or a compiler's message can hold any.

    A path in other bytes than UTF-8 stands as a shell takes it again: $'name\\xff.db'.
    """
    typed = _WORD.sub(_typed, text) if _OTHER_BYTE.search(text) else text
    if typed.isprintable():
        return typed
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in typed)


def _typed(word: re.Match[str]) -> str:
    return f"$'{''.join(map(_escaped_byte, word[0]))}'" if _OTHER_BYTE.search(word[0]) else word[0]


def _escaped_byte(c: str) -> str:
    """A character between $' and '; Python keeps a byte of a path that is no UTF-8 as one from U+DC80 to U+DCFF."""
    return f"\\x{ord(c) - 0xDC00:02x}" if "\udc80" <= c <= "\udcff" else "\\\\" if c == "\\" else c


def us_text(us: float | None) -> str:
    """A time in us with four significant digits, "-" where there is none."""
    if us is None:
        return "-"
    return f"{us:.2f}" if us < 100 else f"{us:.1f}" if us < 1000 else f"{us:.0f}"


def duration_text(seconds: float) -> str:
    """Wall time for people: "8.2 s", "3 min 12 s", "2 h 05 min"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def share_text(share: float) -> str:
    """A share of 0 to 1 in per cent."""
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


def cell_text(value: object) -> str:
    """One value as a person reads it; "-" where there is none."""
    if value is None or value == "":
        return "-"
    return us_text(value) if isinstance(value, float) else printable(str(value))


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[object]], width: int | None = None) -> list[str]:
    """A table as lines: numbers to the right, text to the left, the last column wrapped into `width`."""
    names = [printable(name) for name in columns]
    cells = [[cell_text(value) for value in row] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) if cells else len(name) for i, name in enumerate(names)]
    right = [
        any(_is_number(row[i]) for row in rows) and all(row[i] is None or _is_number(row[i]) for row in rows)
        for i in range(len(names))
    ]
    lines = []
    for row in [names, *cells]:
        padded = [text.rjust(w) if r else text.ljust(w) for text, w, r in zip(row, widths, right, strict=True)]
        before = GAP.join(padded[:-1]) + (GAP if len(padded) > 1 else "")
        lines.extend(_wrapped(before, padded[-1].rstrip(), width))
    return lines


def fitting_columns(
    columns: Mapping[str, Sequence[object]], yielding: Sequence[str], width: int | None, wrapping: str = ""
) -> dict[str, Sequence[object]]:
    """The columns by name, without as many of `yielding`, in its order, as it takes for the table to fit.

    All of them where there is no width. One that is `wrapping` needs NARROWEST columns, whatever it holds.
    """
    kept = dict(columns)
    for name in yielding:
        narrow = {name: ["x" * NARROWEST] * len(cells) if name == wrapping else cells for name, cells in kept.items()}
        if width is None or table_width(list(narrow), rows_of(narrow)) <= width:
            break
        kept.pop(name, None)
    return kept


def rows_of(columns: Mapping[str, Sequence[object]]) -> list[tuple[object, ...]]:
    """The rows of a table that is held as columns by name."""
    return list(zip(*columns.values(), strict=True))


def table_width(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> int:
    """Columns that the table needs if nothing wraps."""
    return max(len(line) for line in table_lines(columns, rows))


def text_lines(text: str, width: int | None, start: str = "", indent: str = "  ") -> list[str]:
    """A text that wraps between words; it begins after `start`, and its further lines after `indent`."""
    text = printable(" ".join(text.split()))
    if width is None or len(start) + len(text) <= width:
        return [start + text]
    wrapper = _Wrapper(width, initial_indent=start, subsequent_indent=indent, break_on_hyphens=False)
    return wrapper.wrap(text)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wrapped(before: str, last: str, width: int | None) -> list[str]:
    if width is None or len(before) + len(last) <= width:
        return [(before + last).rstrip()]
    room = max(width - len(before), NARROWEST)
    wrapper = _Wrapper(
        width=len(before) + room,
        initial_indent=before,
        subsequent_indent=" " * len(before),
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    return wrapper.wrap(last)


class _Wrapper(textwrap.TextWrapper):
    """A word that is longer than a line is cut into all its lines at once, in time that grows with its length."""

    def _handle_long_word(self, reversed_chunks: list[str], cur_line: list[str], cur_len: int, width: int) -> None:
        word = reversed_chunks.pop()
        first, room = width - cur_len if width >= 1 else 1, max(self.width - len(self.subsequent_indent), 1)
        cur_line.append(word[:first])
        reversed_chunks.extend(reversed([word[at : at + room] for at in range(first, len(word), room)]))


def json_text(value: Any) -> str:
    """JSON on one line. A number that JSON lacks, which only an edited database holds, is null."""
    return plain_json(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def records(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[dict[str, object]]:
    """Rows as objects named by the columns, the form of `--json`."""
    return [dict(zip(columns, row, strict=True)) for row in rows]
