"""What is sent to the terminal is the dirty cells and no others, and those are all cells that differ."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from textual._compositor import ChopsUpdate
from textual.strip import Strip

from emmy_tui._textual_compat import CroppedUpdate
from emmy_tui.widgets.panel import _difference

LINES = st.lists(st.tuples(st.text("ab─", min_size=1, max_size=4), st.sampled_from(("dim", "plain"))), max_size=5)
WIDTH = 24


def padded(line: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    used = sum(len(text) for text, _ in line)
    return (*line, (" " * (WIDTH - used), "plain"))


@given(LINES, LINES)
def test_every_cell_that_differs_lies_within_the_difference(
    old: list[tuple[str, str]], new: list[tuple[str, str]]
) -> None:
    before, after = padded(old), padded(new)
    start, end = _difference(before, after, WIDTH)
    cells = [[(character, tone) for text, tone in line for character in text] for line in (before, after)]
    assert 0 <= start < end <= WIDTH
    assert cells[0][:start] == cells[1][:start]
    assert cells[0][end:] == cells[1][end:]


def test_only_the_dirty_cells_are_sent() -> None:
    chops = [{0: Strip([Segment("abc"), Segment("def")]), 6: Strip([Segment("ghi")])}]
    update = CroppedUpdate.of(ChopsUpdate(chops, [(0, 4, 7)], [[6, 9]]))
    assert update.render_segments(Console()) == "\x1b[1;5Hef\x1b[1;7Hg"
