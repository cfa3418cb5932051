"""What is decided about every element of a part of a tile is right for each of them."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from engine.codegen.frames import whole_frame
from engine.codegen.index_space import Axis, IndexSpace
from engine.codegen.known_truth import truth_of
from engine.ir import GraphBuilder

COMPARISONS = {
    "lt": int.__lt__,
    "le": int.__le__,
    "gt": int.__gt__,
    "ge": int.__ge__,
    "eq": int.__eq__,
    "ne": int.__ne__,
}


@given(
    st.sampled_from(sorted(COMPARISONS)),
    st.integers(-2, 17),
    st.booleans(),
    st.integers(0, 15),
    st.integers(1, 16),
    st.sampled_from([2, 4, 8, 16]),
)
def test_a_comparison_is_decided_where_all_elements_agree(
    kind: str, number: int, turned: bool, first: int, count: int, width: int
) -> None:
    """A coordinate of extent `width` along a row of 16 columns, of which the part has some, against a number."""
    behind = min(first + count, 16)
    b = GraphBuilder()
    lane, constant = b.iota(width, 0, 1, "int32"), b.constant(number, "int32")
    compared = b.add(kind, *((constant, lane) if turned else (lane, constant)))
    body = b.build(compared)
    part = IndexSpace("part", (Axis("low", 16, span=(first, behind)), Axis("rows", 3)))
    frame = whole_frame(width)
    columns = {column % width for column in range(first, behind)}
    truths = {COMPARISONS[kind](*((number, column) if turned else (column, number))) for column in columns}
    found = truth_of(body, body.outputs[0], frame, part)
    assert found is None or truths == {found}
    if kind not in ("eq", "ne") and max(columns) - min(columns) == behind - first - 1:
        assert (found is None) == (len(truths) == 2)


def test_masks_joined_by_logic_are_decided_by_what_is_known() -> None:
    half = {name: IndexSpace(name, (Axis(name, 8, span=span),)) for name, span in (("low", (0, 4)), ("high", (4, 8)))}
    b = GraphBuilder()
    lane = b.iota(8, 0, 1, "int64")
    low, odd = b.add("lt", lane, b.constant(4)), b.add("eq", lane, b.constant(1))
    outputs = {
        "not": b.add("logical_not", low),
        "and": b.add("logical_and", low, odd),
        "or": b.add("logical_or", odd, low),
    }
    body = b.build(*outputs.values())
    known = {
        (name, side): truth_of(body, body.outputs[number], whole_frame(8), half[side])
        for (number, name), side in product(enumerate(outputs), half)
    }
    assert known == {
        ("not", "low"): False,
        ("not", "high"): True,
        ("and", "low"): None,
        ("and", "high"): False,
        ("or", "low"): True,
        ("or", "high"): False,
    }


def test_a_space_without_parts_decides_nothing() -> None:
    b = GraphBuilder()
    body = b.build(b.add("lt", b.iota(8, 0, 1, "int64"), b.constant(100)))
    assert truth_of(body, body.outputs[0], whole_frame(8), IndexSpace("whole", (Axis("cols", 8),))) is None


def test_views_of_masks_and_of_coordinates_are_followed() -> None:
    """Rows of two groups of 8 columns, the mask computed before the groups are an axis."""
    b = GraphBuilder()
    lane = b.add("cast", b.view(b.iota(8, 0, 1, "int32"), (2, 8), (0, 1)), dtype="int64")
    mask = b.add("lt", lane, b.constant(4))
    body = b.build(b.view(mask, (16,), (1,)))
    for span, expected in (((0, 4), True), ((4, 8), False), ((2, 6), None)):
        part = IndexSpace("part", (Axis("part", 8, span=span), Axis("groups", 2)))
        assert truth_of(body, body.outputs[0], whole_frame(16), part) is expected
