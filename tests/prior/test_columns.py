from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.prior.columns import ABSENT, KnobTable
from engine.vocabulary import KnobValue

values = (
    st.integers(-(2**70), 2**70) | st.booleans() | st.text(max_size=4) | st.sampled_from(["0.5", "inf", "nan", "1"])
)
assignments = st.lists(st.dictionaries(st.sampled_from("abc"), values, max_size=3), max_size=12)


@given(assignments)
def test_every_value_has_its_own_code(candidates: list[dict[str, KnobValue]]) -> None:
    table = KnobTable(candidates)
    assert len(table) == len(candidates)
    assert table.columns().shape[0] == len(candidates)
    assert np.isfinite(table.columns()).all()
    for row, knobs in enumerate(candidates):
        found = np.flatnonzero(table.agreeing(np.ones(len(table), dtype=np.bool_), knobs))
        assert row in found
        same = [other for other in candidates if all(name in other for name in knobs)]
        assert len(found) == sum(all(repr(other[n]) == repr(v) for n, v in knobs.items()) for other in same)


def test_numbers_are_in_order_also_as_text() -> None:
    table = KnobTable([{"a": text} for text in ("10", "0.5", "2", "x", "-1")])
    assert table.values["a"] == ["-1", "0.5", "2", "10", "x"]
    assert KnobTable([{"a": True}, {"a": 1}, {"a": 0}]).values["a"] == [0, True, 1]


def test_blocks_have_powers_of_two_and_pairs() -> None:
    table = KnobTable([{"x": x, "y": y} for x in (16, 48, 64) for y in (1, 2, 4)])
    matrix = table.columns()
    assert matrix.shape == (9, 6)
    assert matrix[:, 2].tolist() == [4, 4, 4, 4, 4, 4, 6, 6, 6]
    assert matrix[:, 4] == pytest.approx(np.log2([16, 32, 64, 48, 96, 192, 64, 128, 256]))


def test_what_says_nothing_is_no_column() -> None:
    assert KnobTable([{"a": 3, "b": 1}, {"a": 3, "b": 2}]).columns().tolist() == [[0.0], [1.0]]
    assert KnobTable([]).columns().shape == (0, 0)
    assert KnobTable([{}]).columns().shape == (1, 0)


def test_an_absent_knob_and_an_unknown_value() -> None:
    table = KnobTable([{"a": 1}, {"b": 1}])
    assert table.codes.tolist() == [[0, ABSENT], [ABSENT, 0]]
    every = np.ones(2, dtype=np.bool_)
    assert table.agreeing(every, {"a": 7}).tolist() == [False, False]
    assert table.agreeing(every, {"c": 7}).tolist() == [True, True]
