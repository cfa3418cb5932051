"""Every action of the screen, once: its key, its words, and when it works.

The bindings, the footer, the help and the palette are made from this table, so that none of them can promise what
another doesn't. `when` decides from a `Now`; where it says no, `why_not` is the sentence a person gets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from emmy_tui.source import Mode


class Group(StrEnum):
    """The headings of the help."""

    RUN = "Run"
    VIEW = "View"
    MOVE = "Move"
    CURVE = "Curve"
    PROGRAM = "Program"


@dataclass(frozen=True, slots=True)
class Now:
    """What decides whether an action works: the source's abilities, and what is on the screen."""

    mode: Mode | None = None
    capabilities: frozenset[str] = frozenset()
    frozen: bool = False
    focus: str = ""
    kernels: int = 0
    nodes: int = 0
    roomy: bool = True
    shared_slot: bool = False
    can_demo: bool = False
    can_suspend: bool = True


def _always(now: Now) -> bool:
    return True


def _no_reason(now: Now) -> str:
    return ""


def _because(reason: str) -> Callable[[Now], str]:
    return lambda now: reason


def _why_not_now(now: Now) -> str:
    """Why the verbs of a run don't work."""
    if now.mode is None:
        return "There is no run yet"
    if now.mode is Mode.BROWSE:
        return "This database is only looked at; a run is steered where it was started"
    if "start" in now.capabilities:
        return "No run is on; s starts one"
    return "The run is in another state" if now.capabilities else "The run is starting or stopping"


def _can(verb: str) -> Callable[[Now], bool]:
    return lambda now: verb in now.capabilities


def _on(*panels: str) -> Callable[[Now], bool]:
    return lambda now: now.roomy and now.focus in panels


@dataclass(frozen=True, slots=True)
class Action:
    """`name` is the method (`action_` + name); `footer` its place there, 0 for none; lower places come first."""

    name: str
    keys: tuple[str, ...]
    label: str
    meaning: str
    group: Group
    when: Callable[[Now], bool] = _always
    why_not: Callable[[Now], str] = _no_reason
    footer: int = 0
    palette: bool = True
    in_list: bool = False


_FOCUS_FIRST = _because("Focus a list first: tab")

ACTIONS: tuple[Action, ...] = (
    Action("leave", ("q",), "Quit", "Quit; while a run is on, asks whether to stop it first", Group.PROGRAM, footer=1),
    Action("help", ("question_mark", "f1"), "Help", "Every key and what it does", Group.PROGRAM, footer=2),
    Action(
        "command_palette", ("ctrl+p",), "Cmds", "Find an action by its name", Group.PROGRAM, footer=3, palette=False
    ),
    Action("interrupt", ("ctrl+c",), "Stop, exit", "First: stop after this candidate. Again: exit now", Group.PROGRAM),
    Action(
        "suspend_process",
        ("ctrl+z",),
        "Suspend",
        "Back to the shell; fg returns",
        Group.PROGRAM,
        lambda now: now.can_suspend,
        _because("This terminal can't suspend a program"),
    ),
    Action("toggle_theme", ("T",), "Theme", "Dark or light", Group.PROGRAM),
    Action(
        "demo",
        ("d",),
        "Demo",
        "Replay the recorded demo search",
        Group.RUN,
        lambda now: now.can_demo,
        _because("Only the start screen offers it; elsewhere: emmy-tui --demo"),
        footer=4,
    ),
    Action(
        "start",
        ("s",),
        "Start",
        "Start the run, or start it again after it ended",
        Group.RUN,
        _can("start"),
        _why_not_now,
        footer=4,
    ),
    Action(
        "pause",
        ("P",),
        "Pause",
        "Pause the engine after this candidate",
        Group.RUN,
        _can("pause"),
        _why_not_now,
        footer=5,
    ),
    Action("resume", ("P",), "Resume", "Let the engine go on", Group.RUN, _can("resume"), _why_not_now, footer=5),
    Action(
        "stop", ("S",), "Stop", "Stop the run after this candidate", Group.RUN, _can("stop"), _why_not_now, footer=6
    ),
    Action(
        "freeze",
        ("space",),
        "Freeze",
        "Freeze the view; the run goes on",
        Group.VIEW,
        lambda now: now.mode is not None and not now.frozen,
        _because("There is nothing to freeze"),
        footer=7,
    ),
    Action(
        "unfreeze",
        ("space",),
        "Unfreeze",
        "Show what happened meanwhile, and go on",
        Group.VIEW,
        lambda now: now.frozen,
        _because("The view isn't frozen"),
        footer=7,
    ),
    Action(
        "zoom",
        ("z",),
        "Zoom",
        "The focused panel alone, and back",
        Group.VIEW,
        lambda now: now.roomy and bool(now.focus),
        _FOCUS_FIRST,
        footer=9,
    ),
    Action(
        "follow",
        ("f",),
        "Follow",
        "Follow the run's path in the tree, or the newest line of the log",
        Group.VIEW,
        lambda now: now.roomy and now.mode is not None,
        _because("There is no run to follow"),
        footer=8,
    ),
    Action(
        "flip",
        ("v",),
        "Flip",
        "Kernels or curve, where they share one place",
        Group.VIEW,
        lambda now: now.roomy and now.shared_slot,
        _because("Kernels and curve both fit"),
        footer=10,
    ),
    Action("focus_next_panel", ("tab",), "Next panel", "Focus the next panel", Group.VIEW, lambda now: now.roomy),
    Action(
        "focus_previous_panel",
        ("shift+tab",),
        "Previous panel",
        "Focus the panel before",
        Group.VIEW,
        lambda now: now.roomy,
    ),
    Action(
        "next_kernel",
        ("right_square_bracket",),
        "Next kernel",
        "Curve and tree of the next kernel",
        Group.VIEW,
        lambda now: now.kernels > 1,
        _because("There is no other kernel"),
        footer=12,
    ),
    Action(
        "previous_kernel",
        ("left_square_bracket",),
        "Previous kernel",
        "Curve and tree of the kernel before",
        Group.VIEW,
        lambda now: now.kernels > 1,
        _because("There is no other kernel"),
    ),
    Action(
        "log_scale",
        ("L",),
        "Log",
        "Logarithmic or linear time axis",
        Group.CURVE,
        lambda now: now.kernels > 0,
        _because("There is no curve yet"),
        footer=11,
    ),
    Action(
        "time_axis",
        ("t",),
        "Axis",
        "Trials or time along the curve",
        Group.CURVE,
        lambda now: now.kernels > 0,
        _because("There is no curve yet"),
        footer=13,
    ),
    Action(
        "select",
        ("enter",),
        "Select",
        "Show this kernel in curve and tree; open or close this node",
        Group.MOVE,
        _on("kernels", "tree"),
        _FOCUS_FIRST,
        in_list=True,
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

BY_NAME: dict[str, Action] = {action.name: action for action in ACTIONS}

_SPOKEN = {
    "question_mark": "?",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "ctrl+p": "^p",
    "ctrl+c": "^c",
    "ctrl+z": "^z",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "f1": "F1",
}


def spoken(key: str) -> str:
    """A key as the footer and the help write it."""
    return _SPOKEN.get(key, key)


def footer_actions(now: Now) -> list[Action]:
    """What the footer offers now, in its order. A key that does one of two things is offered once."""
    offered = [action for action in ACTIONS if action.footer and action.when(now)]
    return sorted(offered, key=lambda action: action.footer)
