"""The filter language: what it understands comes back unchanged, what it doesn't is one helpful sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emmy_tui import format as fmt
from emmy_tui.filter import ALIKE, MOST_TERMS, NAMES, NEAR, OFF, PREDICTED, BadFilter, Filter, parse_filter
from emmy_tui.knob_words import short_words
from emmy_tui.text import UNICODE, plain
from emmy_tui.widgets.variant_list import Columns, Shown, header_line
from engine.knobs import KNOBS, near_names
from engine.store import Compared, Condition

WORDS = st.text(st.characters(exclude_characters='"', exclude_categories=("Cs",)), max_size=12)
FIGURES = st.floats(allow_nan=False, allow_infinity=False)
FIELDS = {"us": "best", "ranking": "us", "regs": "registers", "spill": "spills", "smem": "shared", "low": "low"}


@given(st.sampled_from(sorted(FIELDS)), st.sampled_from(Compared), FIGURES)
def test_a_number_is_read_as_it_is_written(name: str, compared: Compared, number: float) -> None:
    (one,) = parse_filter(f"{name}{compared}{number!r}").conditions
    assert (one.field, one.compared, one.value) == (FIELDS[name], compared, number)
    assert one.within >= 0.0


@given(st.sampled_from(("failure", "cause", "run", *sorted(KNOBS))), st.booleans(), WORDS)
def test_a_quoted_text_is_read_as_it_is_written(name: str, equals: bool, text: str) -> None:
    compared = Compared.IS if equals else Compared.IS_NOT
    assert parse_filter(f'{name}{compared}"{text}"').conditions == (Condition(name, compared, text),)


@given(st.floats(0.001, 2e6))
def test_a_time_equals_what_is_shown_as_it(us: float) -> None:
    (one,) = parse_filter(f"us={fmt.us(us)}").conditions
    assert isinstance(one.value, float)
    assert abs(us - one.value) <= one.within


@given(st.integers(1024, 1 << 28))
def test_a_size_equals_what_is_shown_as_it(size: int) -> None:
    (one,) = parse_filter(f"smem={fmt.size(size)}").conditions
    assert isinstance(one.value, float)
    assert abs(size - one.value) <= one.within


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
    assert tuple(replace(one, within=0.0) for one in found.conditions) == (
        Condition("BLOCK_M", Compared.IS, "64"),
        Condition("best", Compared.BELOW, 20.0),
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
        ("smem>96K", Condition("shared", Compared.ABOVE, 98304.0)),
        ("smem<=1.5MiB", Condition("shared", Compared.AT_MOST, 1572864.0)),
        ("us<1.5ms", Condition("best", Compared.BELOW, 1500.0)),
        ("ranking>20us", Condition("us", Compared.ABOVE, 20.0)),
        ("spill=0", Condition("spills", Compared.IS, 0.0)),
        ("by:dep", Condition("by", Compared.IS, "deploy")),
        ("by!=rank", Condition("by", Compared.IS_NOT, "ranking")),
        ("regs=64", Condition("registers", Compared.IS, 64.0)),
        ("smem=98304", Condition("shared", Compared.IS, 98304.0)),
        ("M128", Condition("BLOCK_M", Compared.IS, "128")),
        ("M!=128", Condition("BLOCK_M", Compared.IS_NOT, "128")),
        ("w>=4", Condition("NUM_WARPS", Compared.AT_LEAST, 4.0)),
        ("pers", Condition("PERSISTENT", Compared.IS, "true")),
        ("desc", Condition("LOADS", Compared.IS, "descriptor")),
        ("LOADS=desc", Condition("LOADS", Compared.IS, "descriptor")),
        ("tf32x3", Condition("PRECISION", Compared.IS, "tf32x3")),
        ("us=1e-9999", Condition("best", Compared.IS, 0.0)),
    ],
)
def test_words(text: str, condition: Condition) -> None:
    (found,) = parse_filter(text).conditions
    assert replace(found, within=0.0) == condition


def test_every_heading_is_a_name() -> None:
    columns = Columns.of(200, True)
    words = set(plain(header_line(columns, Shown(), UNICODE)).replace(UNICODE.rising, "").split())
    assert words - {"#", "knobs", "+-"} <= set(NAMES)


def test_what_the_prior_says_is_kept_apart() -> None:
    found = parse_filter("predicted<20 off%>=10 us<30")
    assert [(one.field, one.compared, one.value) for one in found.conditions] == [("best", Compared.BELOW, 30.0)]
    assert tuple(replace(one, within=0.0) for one in found.predicted) == (
        Condition(PREDICTED, Compared.BELOW, 20.0),
        Condition(OFF, Compared.AT_LEAST, 10.0),
    )


def test_equal_means_equal_to_the_digits_that_are_shown_and_typed() -> None:
    def within(text: str) -> float:
        return parse_filter(text).conditions[0].within

    assert within("us=182.2") == pytest.approx(0.05)
    assert within("us=182.23") == pytest.approx(0.005)
    assert within("us=182") == pytest.approx(0.05)
    assert within("us=123ms") == pytest.approx(500.0)
    assert within("smem=49.5K") == pytest.approx(51.2)
    assert within("smem=49.5K") > 0.0 == within("smem=50688")
    assert within("error=1.2e-3") == pytest.approx(5e-5)
    assert within("us<=182.2") == within("us>182.2") == within("us=182.2")
    assert within("regs=64") == within("regs<64") == 0.0


def test_the_knobs_of_other_tuners_are_known_where_the_table_has_them() -> None:
    knobs = frozenset({"NewKnob", "num_ctas"})
    assert parse_filter("NewKnob=x", knobs) == Filter((Condition("NewKnob", Compared.IS, "x"),))
    assert parse_filter("NUM_CTAS=2", knobs) == Filter((Condition("num_ctas", Compared.IS, "2"),))
    with pytest.raises(BadFilter, match="NewKnob is no column and no knob"):
        parse_filter("NewKnob=x")


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("BM=64", "BLOCK_M"),
        ("BLOKC_M=64", "BLOCK_M"),
        ("NUM_WARP=4", "NUM_WARPS"),
        ("spil=0", "spill"),
        ("ranknig<3", "ranking"),
    ],
)
def test_a_misspelt_name_is_told_what_is_near(text: str, near: str) -> None:
    with pytest.raises(BadFilter) as refused:
        parse_filter(text)
    name = text.partition("=")[0].partition("<")[0]
    assert str(refused.value).startswith(f"{name} is no column and no knob here: perhaps ")
    assert near in str(refused.value)


def test_nothing_is_near_to_nonsense() -> None:
    assert near_names("ZZZ", [*KNOBS, *NAMES], NEAR, ALIKE) == []
    with pytest.raises(BadFilter, match="ZZZ is no column and no knob: write one of us, ranking"):
        parse_filter("ZZZ=1")


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
        ("weight<3", f"weight is no column and no knob: write one of {', '.join(NAMES)}"),
        ("smem>96X", "smem has the units b, k, m, g, not 'X': write it as in smem>96K"),
        ("regs>9K", "regs has no unit, not 'K'"),
        ("by:fast", "by is one of ranking and deploy"),
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


@given(st.sampled_from(sorted(KNOBS)), st.data())
def test_every_short_word_of_a_row_is_a_filter(name: str, data: st.DataObject) -> None:
    """What a row shows of a knob finds the rows with that value."""
    knob = KNOBS[name]
    value = data.draw(st.sampled_from(knob.values))
    shown = short_words({name: value})
    if shown and name != "ACF":
        (found,) = parse_filter(shown).conditions
        assert (found.field, str(found.value).casefold()) == (name, str(value).casefold())


@pytest.mark.parametrize("term", ["us<20", 'cause:"two words"', "M128", "kernel"])
def test_a_filter_of_too_many_terms_is_refused_with_their_number(term: str) -> None:
    with pytest.raises(BadFilter, match=f"^the filter has {MOST_TERMS + 1} terms, at most {MOST_TERMS}$"):
        parse_filter(" ".join([term] * (MOST_TERMS + 1)))


def test_a_filter_of_as_many_terms_as_may_be_is_read() -> None:
    assert len(parse_filter(" ".join(["us<20"] * MOST_TERMS)).conditions) == MOST_TERMS
