"""Knobs in full and short, and back from what a person typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emmy_tui.knob_words import BadKnobs, long_words, parse_knobs, short_words
from engine.knobs import KNOBS
from engine.vocabulary import KnobValue, Schedule

OFFERED = st.dictionaries(st.sampled_from(sorted(KNOBS)), st.just(None), min_size=1).flatmap(
    lambda names: st.fixed_dictionaries(
        {name: st.sampled_from([*KNOBS[name].values, KNOBS[name].off]) for name in names}
    )
)


@given(OFFERED)
def test_the_long_form_is_read_back(knobs: dict[str, KnobValue]) -> None:
    assert parse_knobs(long_words(knobs)) == Schedule.of(knobs)


def test_the_short_form_leaves_out_what_is_off() -> None:
    knobs: dict[str, KnobValue] = {
        "BLOCK_M": 64,
        "GROUP_M": 1,
        "PERSISTENT": True,
        "PRECISION": "tf32x3",
        "LOADS": "descriptor",
        "NUM_WARPS": 8,
        "NUM_STAGES": 3,
        "EVICTION": "",
        "MINE": "a[b]",
    }
    assert short_words(knobs) == "M64 tf32x3 desc pers w8 s3 MINE=a[b]"


def test_controls_are_told_apart_by_a_few_digits() -> None:
    knobs: dict[str, KnobValue] = {"NUM_WARPS": 8, "ACF": "0123456789abcdef" * 4}
    assert short_words(knobs) == "w8 ACF=01234567"
    assert long_words(knobs).endswith("0123456789abcdef" * 4), "what is copied names the file whole"
    assert short_words({"NUM_WARPS": 8, "ACF": ""}) == "w8"


def test_values_have_the_type_of_their_knob() -> None:
    schedule = parse_knobs("block_m=64 PERSISTENT=True EVICTION= PRECISION=1 other=x")
    assert schedule.as_dict() == {"BLOCK_M": 64, "PERSISTENT": True, "EVICTION": "", "PRECISION": "1", "other": "x"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no knob is given"),
        ("BLOCK_M", "BLOCK_M is no knob value"),
        ("BLOCK_M=64 block_m=32", "BLOCK_M stands twice"),
        ("=4", "=4 is no knob value"),
    ],
)
def test_what_is_wrong_is_said(text: str, sentence: str) -> None:
    with pytest.raises(BadKnobs, match=sentence):
        parse_knobs(text)
