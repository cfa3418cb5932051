from __future__ import annotations

import math
from array import array
from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from emmy_tui.widgets.braille import BLANK, DOTS, Canvas, Drawing, Scale

TIMES = st.one_of(st.floats(min_value=0.01, max_value=1e6), st.just(math.nan))
SERIES = st.lists(TIMES, min_size=1, max_size=400)
WIDTHS = st.integers(min_value=1, max_value=60)
HEIGHTS = st.integers(min_value=1, max_value=12)


def dot(canvas: Canvas, column: int, row: int) -> bool:
    character, _ = canvas.cells(row // 4)[column // 2]
    return character != " " and bool((ord(character) - BLANK) & DOTS[row % 4][column % 2])


def drawn(ys: list[float], width: int, height: int, log: bool) -> tuple[Canvas, Scale, list[float], list[bool]]:
    xs = [float(place + 1) for place in range(len(ys))]
    timed = [y for y in ys if y == y] or [1.0]
    canvas = Canvas(width, height)
    scale = Scale.over(min(timed), max(timed), canvas.rows, log)
    drawing = Drawing(canvas, xs[-1], scale, array("d", xs))
    drawing.draw(array("d", ys))
    return canvas, scale, xs, drawing.failed


def column_edges(xs: list[float], columns: int, end: float) -> list[int]:
    """Index of the first point of each dot column, and one past the last point."""
    return [bisect_left(xs, end * column / columns) for column in range(columns)] + [len(xs)]


@given(SERIES, st.lists(st.integers(min_value=0, max_value=400), max_size=5), WIDTHS, HEIGHTS)
def test_a_curve_that_is_drawn_on_is_the_one_that_is_drawn_at_once(
    ys: list[float], stops: list[int], width: int, height: int
) -> None:
    whole, scale, xs, failed = drawn(ys, width, height, True)
    places = array("d")
    drawing = Drawing(Canvas(width, height), xs[-1], scale, places)
    for stop in (*sorted(stops), len(xs)):
        places.extend(xs[len(places) : stop])
        drawing.draw(array("d", ys[:stop]))
    assert [drawing.canvas.cells(y) for y in range(height)] == [whole.cells(y) for y in range(height)]
    assert drawing.failed == failed


@given(SERIES, WIDTHS, HEIGHTS, st.booleans())
def test_no_dip_and_no_peak_is_lost(ys: list[float], width: int, height: int, log: bool) -> None:
    canvas, scale, xs, _ = drawn(ys, width, height, log)
    edges = column_edges(xs, canvas.columns, xs[-1])
    for column in range(canvas.columns):
        timed = [y for y in ys[edges[column] : edges[column + 1]] if y == y]
        if timed:
            assert dot(canvas, column, scale.row(min(timed)))
            assert dot(canvas, column, scale.row(max(timed)))


@given(SERIES, WIDTHS, HEIGHTS, st.booleans())
def test_every_row_is_in_range_and_better_is_lower(ys: list[float], width: int, height: int, log: bool) -> None:
    canvas, scale, _, _ = drawn(ys, width, height, log)
    timed = sorted(y for y in ys if y == y)
    rows = [scale.row(y) for y in timed]
    assert all(0 <= row < canvas.rows for row in rows)
    assert rows == sorted(rows, reverse=True)
    assert scale.row(math.inf) == 0


@given(SERIES, WIDTHS, HEIGHTS)
def test_every_failure_marks_the_axis(ys: list[float], width: int, height: int) -> None:
    canvas, _, xs, failed = drawn(ys, width, height, True)
    edges = column_edges(xs, canvas.columns, xs[-1])
    for column in range(canvas.columns):
        if any(y != y for y in ys[edges[column] : edges[column + 1]]):
            assert failed[column // 2]
    assert any(failed) == any(y != y for y in ys)


@given(SERIES, WIDTHS, HEIGHTS)
def test_the_line_never_rises(ys: list[float], width: int, height: int) -> None:
    """The best time so far falls or stays, so that its lowest dot goes down from left to right."""
    canvas, _, _, _ = drawn(ys, width, height, True)
    lowest = -1
    for x in range(canvas.width):
        rows = [y for y in range(canvas.height) if canvas.cells(y)[x][1]]
        if rows:
            assert max(rows) >= lowest
            lowest = max(rows)


def test_a_scale_of_one_value_still_shows_it() -> None:
    scale = Scale.over(5.0, 5.0, 8, True)
    assert 0 <= scale.row(5.0) < 8
    assert not Scale.over(0.0, 4.0, 8, True).log


def test_characters_are_braille_or_blank() -> None:
    canvas = Canvas(2, 1)
    canvas.point(0, 0)
    canvas.line(1, 1, 3)
    assert canvas.cells(0)[0] == (chr(BLANK + 0x01 + 0x10 + 0x20 + 0x80), True)
    assert canvas.cells(0)[1] == (" ", False)
