"""Every action of the screen, once: its key, its words, and when it works.

The bindings, the footer, the help and the palette are made from this table, so that none of them can promise what
another doesn't. `when` decides from a `Now`; where it says no, `why_not` is the sentence a person gets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from textual.binding import Binding, BindingType

from emmy_tui.action import (
    COMPARE,
    FAILURES,
    LIVE,
    PINS,
    PRIOR,
    VARIANTS,
    Action,
    Explains,
    Group,
    Now,
    because,
    nothing_seen,
    on_tabs,
)
from emmy_tui.compare_actions import COMPARE_ACTIONS
from emmy_tui.move_actions import MOVE_ACTIONS
from emmy_tui.prior_actions import PRIOR_ACTIONS
from emmy_tui.row_actions import ROW_ACTIONS, no_row
from emmy_tui.source import Mode
from emmy_tui.steer_actions import STEER_ACTIONS, no_run

_NEEDED = {
    "start": "It starts a run that has ended; this one is on",
    "pause": "Only a run that is going on can be paused; this one is paused",
    "resume": "Only a paused run can be resumed",
}


def _why_not(verb: str) -> Explains:
    """Why a verb of a run doesn't work: the state that it needs."""

    def explain(now: Now) -> str:
        if now.mode is None:
            return "There is no run yet"
        if now.mode is Mode.BROWSE:
            return "This database is only looked at; a run is steered where it was started"
        if now.tab != LIVE and verb in now.capabilities:
            return f"Runs are started and stopped on the Live tab: press {now.key('tab_live')} first"
        if not now.capabilities:
            return "The run is starting or stopping"
        return no_run(now) if "start" in now.capabilities or verb == "stop" else _NEEDED[verb]

    return explain


def _can(verb: str) -> Callable[[Now], bool]:
    return lambda now: verb in now.capabilities


def _on_live(verb: str) -> Callable[[Now], bool]:
    return lambda now: now.tab == LIVE and verb in now.capabilities


def _seen(now: Now) -> bool:
    return now.roomy and now.mode is not None


def _roomy(now: Now) -> bool:
    return now.roomy


def _no_tree(now: Now) -> str:
    if now.mode is Mode.BROWSE:
        return "There is no search tree in this database: its results were imported, or the run wrote none yet"
    return "There is no search tree yet"


def _focus_first(now: Now) -> str:
    return f"Focus a list first: {now.key('focus_next_panel')}" if _seen(now) else nothing_seen(now)


_TABS = {
    LIVE: "The search as it goes",
    VARIANTS: "Every measurement of a kernel",
    FAILURES: "What failed, by cause",
    PRIOR: "What the prior predicts, and how far that is to be trusted",
    COMPARE: "Two runs, kernel by kernel",
    PINS: "What a person chose, what others suggest, and what would deploy now",
}

ACTIONS: tuple[Action, ...] = (
    Action(
        "leave", ("q",), "Quit", "Quit or exit; while a run is on, asks whether to stop it", Group.PROGRAM, footer=1
    ),
    Action("help", ("question_mark", "f1"), "Help", "All keys and what they do", Group.PROGRAM, footer=25),
    Action(
        "command_palette", ("ctrl+p",), "Cmds", "Find an action by its name", Group.PROGRAM, footer=24, palette=False
    ),
    Action("interrupt", ("ctrl+c",), "Stop, exit", "First: stop after this candidate. Again: exit now", Group.PROGRAM),
    Action(
        "suspend_process",
        ("ctrl+z",),
        "Suspend",
        "Back to the shell; fg returns, and a run goes on meanwhile",
        Group.PROGRAM,
        lambda now: now.can_suspend,
        because("This terminal can't suspend a program"),
    ),
    Action("toggle_theme", ("T",), "Theme", "Dark, light, or the terminal's own colours", Group.PROGRAM),
    Action("redraw", ("ctrl+l",), "Redraw", "Paint the screen anew, where something else wrote on it", Group.PROGRAM),
    Action("picture", ("ctrl+s",), "Picture", "Save a screenshot to a file, as SVG and as text", Group.PROGRAM),
    Action("jump", ("ctrl+o",), "Jump", "Focus a panel by the letter that it shows", Group.VIEW, _seen, nothing_seen),
    *(
        Action(f"tab_{tab}", (str(number),), tab.capitalize(), meaning, Group.VIEW, _seen, nothing_seen)
        for number, (tab, meaning) in enumerate(_TABS.items(), 1)
    ),
    Action(
        "demo",
        ("d",),
        "Demo",
        "Replay the recorded demo search",
        Group.RUN,
        lambda now: now.can_demo,
        because("Only the start screen offers it; elsewhere: emmy-tui --demo"),
        footer=3,
    ),
    Action(
        "earlier",
        ("backspace",),
        "Back",
        "Back to the database as it was looked at before this replay or run",
        Group.PROGRAM,
        lambda now: now.returns and (now.mode is Mode.REPLAY or "stop" not in now.capabilities),
        lambda now: (
            f"The run is on: {now.key('stop')} stops it" if now.returns else "Nothing was looked at before this"
        ),
        footer=3,
    ),
    Action(
        "start",
        ("R",),
        "Start",
        "Live: start the run, or start it again after it ended",
        Group.RUN,
        _on_live("start"),
        _why_not("start"),
        footer=4,
    ),
    Action(
        "pause",
        ("P",),
        "Pause",
        "Pause the engine after this candidate",
        Group.RUN,
        _can("pause"),
        _why_not("pause"),
        footer=6,
    ),
    Action(
        "resume",
        ("P",),
        "Resume",
        "After a pause: let the engine go on",
        Group.RUN,
        _can("resume"),
        _why_not("resume"),
        footer=6,
    ),
    Action(
        "stop",
        ("X",),
        "Stop",
        "Stop the run after this candidate",
        Group.RUN,
        _on_live("stop"),
        _why_not("stop"),
        footer=7,
    ),
    Action(
        "freeze",
        ("space",),
        "Freeze",
        "Freeze the view; the run goes on",
        Group.VIEW,
        lambda now: now.mode is not None and not now.frozen,
        because("There is nothing to freeze"),
        footer=13,
    ),
    Action(
        "unfreeze",
        ("space",),
        "Unfreeze",
        "Show what happened meanwhile, and go on",
        Group.VIEW,
        lambda now: now.frozen,
        because("The view isn't frozen"),
        footer=13,
    ),
    Action(
        "zoom",
        ("z",),
        "Zoom",
        "The focused panel alone, and back",
        Group.VIEW,
        lambda now: now.roomy and bool(now.focus),
        _focus_first,
        footer=18,
    ),
    on_tabs(
        (LIVE,),
        "follow",
        ("f",),
        "Follow",
        "Follow the run's path in the tree, or the newest line of the log",
        Group.VIEW,
        lambda now: now.mode is not None,
        because("There is no run to follow"),
        footer=14,
    ),
    on_tabs(
        (LIVE,),
        "flip",
        ("v",),
        "Flip",
        "Kernels or curve, where they share one place",
        Group.VIEW,
        lambda now: now.shared_slot,
        because("Kernels and curve both fit"),
        footer=17,
    ),
    Action("focus_next_panel", ("tab",), "Next panel", "Focus the next panel", Group.VIEW, _roomy, nothing_seen),
    Action(
        "focus_previous_panel",
        ("shift+tab",),
        "Previous panel",
        "Focus the panel before",
        Group.VIEW,
        _roomy,
        nothing_seen,
    ),
    Action(
        "next_kernel",
        ("right_square_bracket",),
        "Next kernel",
        "Curve and tree of the next kernel",
        Group.VIEW,
        lambda now: now.kernels > 1,
        because("There is no other kernel"),
        footer=20,
    ),
    Action(
        "previous_kernel",
        ("left_square_bracket",),
        "Previous kernel",
        "Curve and tree of the kernel before",
        Group.VIEW,
        lambda now: now.kernels > 1,
        because("There is no other kernel"),
    ),
    on_tabs(
        (LIVE,),
        "sort_kernels",
        ("s",),
        "Sort",
        "The kernels in the order of the run, by cost (time x count), or by time",
        Group.VIEW,
        lambda now: now.kernels > 1,
        because("There are not two kernels to sort"),
        footer=17,
    ),
    on_tabs(
        (LIVE,),
        "reverse_kernels",
        ("S",),
        "Reverse",
        "Turn the order of the kernels round",
        Group.VIEW,
        lambda now: now.kernels > 1,
        because("There are not two kernels to sort"),
    ),
    on_tabs(
        (LIVE,),
        "log_scale",
        ("L",),
        "Log",
        "The curve's y axis: logarithmic or linear",
        Group.CURVE,
        lambda now: now.kernels > 0,
        because("There is no curve yet"),
        footer=21,
    ),
    on_tabs(
        (LIVE,),
        "time_axis",
        ("t",),
        "Axis",
        "What runs along the curve's x axis: trials or time",
        Group.CURVE,
        lambda now: now.kernels > 0,
        because("There is no curve yet"),
        footer=21,
    ),
    on_tabs(
        (LIVE, VARIANTS),
        "why",
        ("i",),
        "Why",
        "Why the search took or passed over this node or variant: Q, U, prior, rank, evidence",
        Group.VIEW,
        lambda now: now.nodes > 0 if now.tab == LIVE else now.items > 0,
        lambda now: _no_tree(now) if now.tab == LIVE else no_row(now),
        footer=7,
    ),
    *MOVE_ACTIONS,
    *STEER_ACTIONS,
    *ROW_ACTIONS,
    *PRIOR_ACTIONS,
    *COMPARE_ACTIONS,
)

BY_NAME: dict[str, Action] = {action.name: action for action in ACTIONS}

_SPOKEN = {
    "question_mark": "?",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "ctrl+p": "^p",
    "ctrl+c": "^c",
    "ctrl+z": "^z",
    "ctrl+o": "^o",
    "ctrl+s": "^s",
    "slash": "/",
    "plus": "+",
    "minus": "-",
    "escape": "esc",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "f1": "F1",
}


def spoken(key: str) -> str:
    """A key as the footer and the help write it."""
    return _SPOKEN.get(key, key)


Keys = Mapping[str, tuple[str, ...]]
"""Keys of the actions that a person has given others than the table's, by name."""


def keys_of(action: Action, keys: Keys | None) -> tuple[str, ...]:
    return (keys or {}).get(action.name, action.keys)


def first_key(action: Action, keys: Keys | None) -> str:
    """The key that the footer writes; "" for an action that was left without one."""
    return next((spoken(key) for key in keys_of(action, keys)), "")


def key_named(name: str, keys: Keys | None = None) -> str:
    """What a sentence calls the key of an action, with the keys that a person has changed; of an action without a key
    its word, and the key of the palette that finds it."""
    action = BY_NAME[name]
    if key := first_key(action, keys):
        return key
    palette = first_key(BY_NAME["command_palette"], keys)
    return f"{palette} {action.label}".strip()


ALSO_IN_DIALOGS = ("interrupt", "suspend_process")
"""What a person expects of a terminal, whatever is open on the screen."""


def bindings(belongs: Callable[[Action], bool]) -> list[BindingType]:
    """The bindings of some actions of the table. Their ids are the names, by which the config file finds them."""
    return [
        Binding(
            ",".join(action.keys),
            action.name,
            action.label,
            show=False,
            priority=action.name in ALSO_IN_DIALOGS,
            id=action.name,
        )
        for action in ACTIONS
        if belongs(action)
    ]


def footer_actions(now: Now) -> list[Action]:
    """What the footer offers now, in its order. A key that does one of two things is offered once."""
    offered = [action for action in ACTIONS if action.footer and action.when(now)]
    return sorted(offered, key=lambda action: action.footer)
