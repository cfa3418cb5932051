from __future__ import annotations

import string
import unicodedata
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emmy_tui.text import (
    ASCII,
    UNICODE,
    Glyphs,
    Tone,
    both_ends,
    clean,
    crop,
    escaped,
    fit_line,
    left,
    line_width,
    plain,
    right,
    width_of,
    wrap,
)

TEXTS = st.text(max_size=60)
WIDTHS = st.integers(min_value=0, max_value=40)


@given(TEXTS)
def test_cleaned_text_has_nothing_that_acts_on_a_terminal(text: str) -> None:
    kept = clean(text)
    assert not any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in kept)
    kept.encode("utf-8")


@given(st.text(alphabet=string.printable.strip() + " [/]\\", max_size=80))
def test_printable_ascii_is_kept_byte_for_byte(text: str) -> None:
    assert clean(text) == text
    assert clean(text, ASCII) == text


def test_escape_sequences_lose_their_escape() -> None:
    assert clean("a\x1b[31mred\x1b]0;title\x07\x9b2Jb") == "a[31mred]0;title2Jb"
    assert clean("one\ntwo\tthree") == "one two three"
    assert clean("left\u202eright") == "leftright"
    assert clean("\ud800") == "\ufffd"


def test_what_changes_the_width_of_other_characters_is_left_out() -> None:
    assert clean("a\u2600\ufe0fb") == "a\u2600b"
    assert clean("\u2764\ufe0e") == "\u2764"
    assert clean("\U0001f44d\U0001f3fd") == "\U0001f44d"
    assert clean("1\ufe0f\u20e3") == "1"
    assert clean("\U0001f1e9\U0001f1ea") == "DE"
    assert clean("\U0001f468\u200d\U0001f469") == "\U0001f468\U0001f469"
    assert clean("\u845b\U000e0100") == "\u845b"


UNSEEN = (
    *("\u00ad", "\u034f", "\u115f", "\u1160", "\u17b4", "\u180b", "\u180f", "\u200b", "\u2060", "\u2065"),
    *("\u3164", "\ufe00", "\ufeff", "\uffa0", "\ufff0", "\U0001d173"),
    *("\U000e0000", "\U000e0001", "\U000e0041", "\U000e0100", "\U000e01ef"),
)
"""Default-ignorable characters of every category: format, mark, letter and unassigned."""


@pytest.mark.parametrize("character", UNSEEN)
def test_invisible_characters_are_left_out_and_written_out(character: str) -> None:
    assert clean(f"a{character}b") == "ab"
    assert escaped(f"a{character}b") == f"a\\{ascii(character)[2:-1]}b"


@given(st.characters())
def test_what_leaves_the_screen_is_what_the_screen_keeps(character: str) -> None:
    out = escaped(character)
    assert clean(out) == out
    assert (out == character) == (clean(character) == character)


SELECTORS = st.sampled_from("\ufe0f\ufe0e\u200d\u20e3\U0001f3fb\U0001f1e9\U0001f1ea\u2600\U0001f44d1#a ")


@given(st.text(alphabet=SELECTORS, max_size=12))
def test_a_cleaned_text_is_as_wide_as_its_characters(text: str) -> None:
    kept = clean(text)
    assert width_of(kept) == sum(width_of(character) for character in kept)


@given(TEXTS)
def test_ascii_glyphs_leave_ascii_only(text: str) -> None:
    assert clean(text, ASCII).isascii()


@given(TEXTS, WIDTHS)
def test_fitting_gives_exactly_the_width(text: str, width: int) -> None:
    text = clean(text)
    assert width_of(crop(text, width)) <= width
    assert width_of(left(text, width)) == width
    assert width_of(right(text, width)) == width
    assert line_width(fit_line([(text, Tone.PLAIN), (text, Tone.DIM)], width)) == width
    assert line_width(both_ends([(text, Tone.PLAIN)], [("end", Tone.DIM)], width)) == width


@given(TEXTS, st.integers(min_value=1, max_value=40))
def test_wrapping_keeps_every_word_in_its_width(text: str, width: int) -> None:
    text = clean(text)
    rows = wrap(text, width)
    assert all(width_of(row) <= max(width, 2) for row in rows)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")


def test_every_glyph_has_a_stand_in_of_one_cell() -> None:
    for glyphs in (UNICODE, ASCII):
        for field in fields(Glyphs):
            value = getattr(glyphs, field.name)
            if isinstance(value, str) and field.name not in ("total", "at_most"):
                assert width_of(value) == len(value)
    assert all(str(getattr(ASCII, field.name)).isascii() for field in fields(Glyphs))
    assert {f.name for f in fields(Glyphs) if len(str(getattr(UNICODE, f.name))) > 1} == {"ascii", "corners"}


def test_plain_joins_the_spans() -> None:
    assert plain([("a", Tone.PLAIN), ("b", Tone.BAD)]) == "ab"


@given(st.sampled_from((UNICODE, ASCII)), st.text("ab", min_size=1, max_size=9), st.integers(1, 12))
def test_what_is_cut_already_is_cut_with_one_ellipsis(glyphs: Glyphs, text: str, width: int) -> None:
    cut = f"{text}{glyphs.ellipsis} and more"
    assert glyphs.ellipsis * 2 not in crop(cut, width, glyphs)
    assert width_of(crop(cut, width, glyphs)) <= width
