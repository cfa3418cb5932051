"""The actions of the list that has the focus: opening a row, and moving in it."""

from __future__ import annotations

from collections.abc import Callable

from emmy_tui.action import Action, Group, Now, nothing_seen


def _on(*panels: str) -> Callable[[Now], bool]:
    return lambda now: now.roomy and now.focus in panels


def _openable(*panels: str) -> Callable[[Now], bool]:
    return lambda now: _on(*panels)(now) and now.lines > 0


def _nothing_to_open(now: Now) -> str:
    if now.mode is None or not now.roomy:
        return nothing_seen(now)
    return f"Focus a list first: {now.key('focus_next_panel')}" if now.lines else "There is no row to open"


MOVE_ACTIONS: tuple[Action, ...] = (
    Action(
        "select",
        ("enter",),
        "Open",
        "Show this kernel; open or close this node; open this row in full",
        Group.MOVE,
        _openable(
            *("kernels", "tree", "plan", "variants", "clusters", "cluster"),
            *("pins", "suggestions", "deploys", "pairs", "ranked"),
        ),
        _nothing_to_open,
        in_list=True,
        footer=2,
        palette=False,
    ),
    Action("unfold", ("right", "l"), "Open", "Open this node", Group.MOVE, _on("tree"), palette=False, in_list=True),
    Action(
        "fold",
        ("left", "h"),
        "Close",
        "Close this node, or go to its parent",
        Group.MOVE,
        _on("tree"),
        palette=False,
        in_list=True,
    ),
    Action("down", ("down", "j"), "Down", "One line down", Group.MOVE, palette=False, in_list=True),
    Action("up", ("up", "k"), "Up", "One line up", Group.MOVE, palette=False, in_list=True),
    Action("page_down", ("pagedown",), "Page down", "One page down", Group.MOVE, palette=False, in_list=True),
    Action("page_up", ("pageup",), "Page up", "One page up", Group.MOVE, palette=False, in_list=True),
    Action("first", ("g", "home"), "First", "First line", Group.MOVE, palette=False, in_list=True),
    Action("last", ("G", "end"), "Last", "Last line", Group.MOVE, palette=False, in_list=True),
)
