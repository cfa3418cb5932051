"""Tables and times as a person, a pipe and a program get them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import textwrap
from collections.abc import Callable
from typing import TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.output import (
    NARROWEST,
    cell_text,
    duration_text,
    fitting_columns,
    json_text,
    printable,
    records,
    rows_of,
    share_text,
    table_lines,
    table_width,
    terminal_width,
    text_lines,
    us_text,
)


@pytest.mark.parametrize(
    ("us", "text"), [(None, "-"), (0.5, "0.50"), (13.084, "13.08"), (175.26, "175.3"), (20481.4, "20481")]
)
def test_us(us: float | None, text: str) -> None:
    assert us_text(us) == text


def test_durations_and_shares() -> None:
    assert [duration_text(s) for s in (8.24, 192, 7500)] == ["8.2 s", "3 min 12 s", "2 h 05 min"]
    assert [share_text(s) for s in (0.004, 0.25, 1.0)] == ["0.4 %", "25 %", "100 %"]


def test_cells() -> None:
    assert [cell_text(v) for v in (None, "", True, False, 3, 13.084)] == ["-", "-", "True", "False", "3", "13.08"]


def test_control_characters_are_made_visible() -> None:
    assert printable("a\x1b[31mb\n\u202ec") == "a\\x1b[31mb\\n\\u202ec"


def test_a_path_in_other_bytes_stands_as_a_shell_takes_it() -> None:
    name = os.fsdecode(b"/data/k\\\xff\xe9.db")
    said = printable(f"there is no database at {name}; name another")
    assert said == r"there is no database at $'/data/k\\\xff\xe9.db'; name another"
    word = said.removeprefix("there is no database at ").partition(";")[0]
    shown = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True, env={"LC_ALL": "C"})
    assert os.fsdecode(shown.stdout) == name


def test_numbers_stand_right_and_text_left() -> None:
    lines = table_lines(("us", "name"), [(13.5, "a"), (175.25, "bb"), (None, "c")])
    assert lines == ["   us  name", "13.50  a", "175.2  bb", "    -  c"]


def test_the_last_column_wraps_under_itself() -> None:
    lines = table_lines(("n", "schedule"), [(1, "BLOCK_M=64 BLOCK_N=128 NUM_WARPS=4")], 30)
    assert lines == ["n  schedule", "1  BLOCK_M=64 BLOCK_N=128", "   NUM_WARPS=4"]


@given(st.lists(st.tuples(st.text("ab ", max_size=12), st.text("cd ", max_size=90)), max_size=5), st.integers(40, 100))
def test_a_table_fits_its_width(rows: list[tuple[str, str]], width: int) -> None:
    fits = all(len(word) <= NARROWEST for row in rows for word in row[1].split())
    lines = table_lines(("first", "last"), rows, width)
    assert not fits or all(len(line) <= width for line in lines)


def test_a_pipe_cuts_nothing() -> None:
    rows = [("x", "word " * 100)]
    assert len(table_lines(("a", "b"), rows)) == 2
    assert table_width(("a", "b"), rows) == len("x  ") + len("word " * 100) - 1


COLUMNS = {"no": [1, 2], "why": ["x" * 20, ""], "us": [1.0, 2.0], "what": ["word " * 30, "y"]}


@pytest.mark.parametrize(
    ("width", "kept"),
    [
        (None, ["no", "why", "us", "what"]),
        (2 + 20 + 4 + NARROWEST + 3 * 2, ["no", "why", "us", "what"]),
        (2 + 20 + 4 + NARROWEST + 3 * 2 - 1, ["no", "us", "what"]),
        (10, ["no", "what"]),
    ],
)
def test_columns_give_way_in_their_order_until_the_table_fits(width: int | None, kept: list[str]) -> None:
    found = fitting_columns(COLUMNS, ("absent", "why", "us"), width, wrapping="what")
    assert list(found) == kept
    assert rows_of(found)[1] == tuple(COLUMNS[name][1] for name in kept)


def test_columns_without_rows_fit_by_their_names() -> None:
    assert list(fitting_columns({"first": [], "second": []}, ("first",), 5)) == ["second"]
    assert rows_of({"first": []}) == []


def test_width_of_a_terminal_and_of_none(terminal: Callable[[int], TextIO]) -> None:
    assert terminal_width(terminal(93)) == 93
    assert terminal_width(io.StringIO()) is None


def test_json_is_one_line_of_objects_named_by_the_columns() -> None:
    text = json_text(records(("us", "note"), [(1.5, "a\nb"), (None, "")]))
    assert "\n" not in text
    assert json.loads(text) == [{"us": 1.5, "note": "a\nb"}, {"us": None, "note": ""}]
    assert json_text({"us": [float("nan"), float("inf")]}) == '{"us": [null, null]}'


@given(
    text=st.text(alphabet="ab -,\\", max_size=60) | st.text(alphabet="a ", max_size=200),
    width=st.integers(2, 30),
    start=st.sampled_from(["", "- ", "note: "]),
    indent=st.sampled_from(["", "  "]),
)
def test_a_text_wraps_as_textwrap_does(text: str, width: int, start: str, indent: str) -> None:
    flat = " ".join(text.split())
    if len(start) + len(flat) > width > len(start):
        expected = textwrap.wrap(flat, width, initial_indent=start, subsequent_indent=indent, break_on_hyphens=False)
        assert text_lines(text, width, start, indent) == expected


@pytest.mark.timeout(30)
@pytest.mark.parametrize("word", ["x", "\udcff", "\x1b", "x\udc80"])
def test_a_word_of_ten_megabytes_is_printed_in_time_that_grows_with_it(word: str) -> None:
    long = word * (10_000_000 // len(word) // (1 if word == "x" else 10))
    shown = printable(long)
    assert len(shown) >= len(long)
    assert shown.isprintable()
    assert "".join(line.strip() for line in text_lines(long, 80)) == shown
    (_, *lines) = table_lines(["a", "kernel"], [[1, long]], 80)
    assert "".join(line.strip() for line in lines).removeprefix("1").strip() == shown
