"""The actions of the Compare tab."""

from __future__ import annotations

from emmy_tui.action import COMPARE, Action, Group, Now, on_tabs
from emmy_tui.row_actions import no_row

_HERE = (COMPARE,)


def _has_pair(now: Now) -> bool:
    return now.items > 0


def _has_runs(now: Now) -> bool:
    return now.compared


COMPARE_ACTIONS: tuple[Action, ...] = (
    on_tabs(_HERE, "run_a", ("a",), "Run A", "Choose the run that is A", Group.COMPARE, _has_runs, no_row, footer=4),
    on_tabs(_HERE, "run_b", ("b",), "Run B", "Choose the run that is B", Group.COMPARE, _has_runs, no_row, footer=4),
    on_tabs(
        _HERE,
        "open_other",
        ("o",),
        "File",
        "Take B from another database, or from this one again",
        Group.COMPARE,
        footer=5,
    ),
    on_tabs(
        _HERE,
        "swap",
        ("w",),
        "Swap",
        "A becomes B, and B becomes A",
        Group.COMPARE,
        _has_pair,
        no_row,
        footer=8,
    ),
    on_tabs(
        _HERE,
        "sort_pairs",
        ("s",),
        "Sort",
        "The kernels in the order of the run, by ratio, or by time",
        Group.COMPARE,
        _has_pair,
        no_row,
        footer=8,
    ),
    on_tabs(
        _HERE,
        "reverse_pairs",
        ("S",),
        "Reverse",
        "Turn the order of the compared kernels round",
        Group.COMPARE,
        _has_pair,
        no_row,
        footer=12,
    ),
)
