"""Boxes that share lines: none is too low to say something, and no line is left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emmy_tui.sharing import Box, shared

SIZES = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 40)), min_size=1, max_size=5)


@given(SIZES, st.integers(0, 60))
def test_every_box_that_is_seen_has_its_least_and_all_lines_are_used(sizes: list[tuple[int, int]], height: int) -> None:
    boxes = [Box(str(number), least, least + more) for number, (least, more) in enumerate(sizes)]
    heights = shared(boxes, height)
    assert sum(heights.values()) == height
    assert next(iter(heights)) == "0"
    for box in boxes[1:]:
        if box.name in heights:
            assert box.least <= heights[box.name] <= box.wanted
    if height >= sum(box.least for box in boxes):
        assert len(heights) == len(boxes)


def test_what_matters_most_has_what_it_wants_first() -> None:
    boxes = [Box("pins", 4, 4), Box("deploys", 5, 90), Box("detail", 8, 8)]
    assert shared(boxes, 21) == {"pins": 4, "deploys": 9, "detail": 8}
    assert shared(boxes, 12) == {"pins": 4, "deploys": 8}
