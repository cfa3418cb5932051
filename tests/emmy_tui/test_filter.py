"""The filter language: what it understands comes back unchanged, what it doesn't is one helpful sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emmy_tui.filter import NAMES, BadFilter, Filter, filter_text, parse_filter
from engine.knobs import KNOBS
from engine.store import Compared, Condition

VALUES = st.text(st.characters(exclude_characters='"', exclude_categories=("Cs",)), max_size=12).filter(
    lambda text: text == text.strip('"')
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
NUMERIC = st.sampled_from(("us", "low", "high", "deploy", "registers", "spills", "shared", "error", "trial"))
EQUAL = st.sampled_from((Compared.IS, Compared.IS_NOT))
CONDITIONS = st.one_of(
    st.builds(Condition, NUMERIC, st.sampled_from(Compared), NUMBERS),
    st.builds(Condition, st.sampled_from(("failure", "cause", "run")), EQUAL, VALUES),
    st.builds(Condition, st.just("st"), EQUAL, st.sampled_from(("ok", "failed", "o*"))),
    st.builds(Condition, st.just("regime"), EQUAL, st.sampled_from(("ranking", "deploy"))),
    st.builds(Condition, st.sampled_from(sorted(KNOBS)), EQUAL, VALUES),
    st.builds(
        Condition,
        st.sampled_from(sorted(KNOBS)),
        st.sampled_from((Compared.BELOW, Compared.AT_MOST, Compared.ABOVE, Compared.AT_LEAST)),
        NUMBERS,
    ),
)
FILTERS = st.builds(
    Filter, st.lists(CONDITIONS, max_size=5).map(tuple), VALUES.filter(lambda text: not text or text.strip())
)


@given(FILTERS)
def test_what_is_written_is_read_back(wanted: Filter) -> None:
    assert parse_filter(filter_text(wanted)) == wanted


@given(st.text(max_size=60))
def test_any_text_is_understood_or_refused_in_one_sentence(text: str) -> None:
    try:
        found = parse_filter(text)
    except BadFilter as error:
        said = str(error)
    else:
        said = f"understood {found}"
    assert said


def test_the_example_of_the_design() -> None:
    found = parse_filter("BLOCK_M=64 us<20 st:ok regime:deploy kernel:matmul*")
    assert found.kernel_text == "matmul*"
    assert found.conditions == (
        Condition("BLOCK_M", Compared.IS, "64"),
        Condition("us", Compared.BELOW, 20.0),
        Condition("st", Compared.IS, "ok"),
        Condition("regime", Compared.IS, "deploy"),
    )


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("  block_m>=64 ", Condition("BLOCK_M", Compared.AT_LEAST, 64.0)),
        ("smem<=4096", Condition("shared", Compared.AT_MOST, 4096.0)),
        ("STATUS!=OK", Condition("st", Compared.IS_NOT, "ok")),
        ('cause:"out of*"', Condition("cause", Compared.IS, "out of*")),
        ('EVICTION=""', Condition("EVICTION", Compared.IS, "")),
        ("NewKnob=x", Condition("NewKnob", Compared.IS, "x")),
    ],
)
def test_words(text: str, condition: Condition) -> None:
    assert parse_filter(text) == Filter((condition,))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("matmul", "matmul is no condition: write name, comparison and value"),
        ("us<", "us< lacks its value"),
        ("us<abc", "us is a number, not 'abc'"),
        ("us<nan", "us is a finite number"),
        ("st<ok", "st is a text: compare it with : or !="),
        ("st:good", "st is one of ok and failed, not 'good'"),
        ("regime:fast", "regime is one of ranking and deploy"),
        ("speed<3", f"speed is no column and no knob: write one of {', '.join(NAMES)}"),
        ("kernel:a kernel:b", "kernel: stands twice"),
        ("kernel<a", "kernel is compared with : only"),
        ('kernel:""', "kernel: lacks its value"),
        ('cause:"open', "isn't closed"),
        ("BLOCK_M>big", "BLOCK_M is a number, not 'big'"),
    ],
)
def test_what_is_wrong_is_said(text: str, sentence: str) -> None:
    with pytest.raises(BadFilter) as refused:
        parse_filter(text)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
