from __future__ import annotations

import math

import pytest

from emmy_tui import format as fmt


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (math.nan, "-"),
        (math.inf, "-"),
        (3.0712, "3.071"),
        (12.406, "12.41"),
        (152.34, "152.3"),
        (1842.3, "1842"),
        (99_999, "99999"),
        (184_000, "184ms"),
        (2.5e6, "2.50s"),
    ],
)
def test_times_keep_four_digits(value: float | None, text: str) -> None:
    assert fmt.us(value) == text


@pytest.mark.parametrize(
    ("first", "best", "text"),
    [
        (18.0, 12.41, "-31"),
        (100, 95.8, "-4.2"),
        (5, 5, "0"),
        (5, None, "-"),
        (None, 5, "-"),
        (0, 5, "-"),
        (4, 5, "+25"),
    ],
)
def test_changes_are_relative_to_the_first(first: float | None, best: float | None, text: str) -> None:
    assert fmt.change(first, best) == text


def test_shares_of_nothing_are_missing() -> None:
    assert fmt.share(1, 0) == fmt.share(None, 5) == "-"
    assert fmt.share(1, 4) == "25%"
    assert fmt.share(1, 30) == "3.3%"
    assert fmt.ratio(0.0) == "0%"


@pytest.mark.parametrize(("value", "text"), [(412, "412"), (48_211, "48211"), (482_999, "482k"), (1_250_000, "1.2M")])
def test_counts_stay_short(value: int, text: str) -> None:
    assert fmt.count(value) == text


def test_durations_and_clock() -> None:
    assert fmt.duration(761.9) == "00:12:41"
    assert fmt.duration(-5) == "00:00:00"
    assert fmt.clock(1_780_000_000.0) == "20:26:40"
    assert fmt.clock(0.0) == "--:--:--"


def test_sizes_fit_five_characters() -> None:
    shown = {0: "0", 512: "512", 1024: "1K", 8192: "8K", 50688: "49.5K", 232448: "227K", 1 << 26: "64M"}
    assert {value: fmt.size(value) for value in shown} == shown
    assert all(len(fmt.size(value)) <= 5 for value in range(0, 1 << 20, 997))


def test_one_of_a_thing_and_many() -> None:
    assert [fmt.plural(number, "row") for number in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
    assert [fmt.plural(number, "launch") for number in (1, 2)] == ["1 launch", "2 launches"]


def test_a_moment_that_no_calendar_has_is_a_dash() -> None:
    assert fmt.moment(1_780_000_000.0) == "2026-05-28 20:26"
    assert [fmt.moment(at) for at in (0.0, 1e30, float("nan"))] == ["-", "-", "-"]


@pytest.mark.parametrize(
    ("values", "apart", "texts"),
    [
        ((0.9911, 0.99961), True, ("0.9911", "0.9996")),
        ((0.9911, 0.99961), False, ("0.991", "1.000")),
        ((0.98, 0.99), True, ("0.980", "0.990")),
        ((1.0002, 1.01), True, ("1.0002", "1.0100")),
        ((0.9999999, 1.0), True, ("1.0000", "1.0000")),
    ],
)
def test_a_ratio_shows_the_side_of_1_that_its_verdict_speaks_of(
    values: tuple[float, ...], apart: bool, texts: tuple[str, ...]
) -> None:
    assert fmt.ratios(values, apart=apart) == texts
