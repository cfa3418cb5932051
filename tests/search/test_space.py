from __future__ import annotations

from engine.search.space import canonical_order
from engine.vocabulary import Option


def test_options_sort_by_the_knob_table_then_by_name_and_value() -> None:
    wanted = [
        Option((("BLOCK_M", 32), ("BLOCK_N", 16))),
        Option((("BLOCK_M", 32), ("BLOCK_N", 256))),
        Option((("BLOCK_M", 256),)),
        Option((("BLOCK_M", 48),)),
        Option((("BLOCK_M", 96),)),
        Option((("PERSISTENT", False),)),
        Option((("PERSISTENT", True),)),
        Option((("apple", 2),)),
        Option((("apple", 10),)),
        Option((("apple", "2"),)),
        Option((("pear", 1),)),
    ]
    assert sorted(reversed(wanted), key=canonical_order) == wanted


def test_the_order_of_knobs_inside_an_option_does_not_matter() -> None:
    knobs = (("NUM_WARPS", 4), ("BLOCK_M", 16))
    assert canonical_order(Option(knobs)) == canonical_order(Option(knobs[::-1]))
