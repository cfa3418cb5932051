"""JSON for terminals says the same as any other, and acts on none."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from engine.plain_json import plain_json

texts = st.text() | st.text(st.sampled_from("\x1b\x7f\x85\x9b\u2028\u202e\u200d\udc80\U000e0001é宽\\\"'\n"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner)
)


@given(values, st.none() | st.integers(0, 3))
def test_it_says_the_same_and_is_printable(value: object, indent: int | None) -> None:
    text = plain_json(value, indent)
    assert json.loads(text) == value
    assert text.replace("\n", "").isprintable()
    assert indent is not None or "\n" not in text


def test_letters_stay_letters() -> None:
    assert plain_json({"é": "宽 \\ü"}) == '{"é": "宽 \\\\ü"}'
