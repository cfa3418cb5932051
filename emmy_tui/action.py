"""What an action is, what decides whether it works, and the sentences that say why it doesn't."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from emmy_tui.source import Mode

Named = Callable[[str], str]
"""What a sentence calls the key of an action, by the action's name."""


def _in_the_table(name: str) -> str:
    """The key as it is where nobody changed it."""
    from emmy_tui.actions import key_named  # the table is made of what is here

    return key_named(name)


LIVE, VARIANTS, FAILURES, PRIOR, COMPARE, PINS = TABS = ("live", "variants", "failures", "prior", "compare", "pins")
"""The tabs, in the order of their keys, from 1 on."""


class Group(StrEnum):
    """The headings of the help."""

    RUN = "Run"
    VIEW = "View"
    MOVE = "Move"
    CURVE = "Curve"
    ROWS = "Rows: variants, failures, pins"
    PRIOR = "Prior"
    COMPARE = "Compare"
    PROGRAM = "Program"


@dataclass(frozen=True, slots=True)
class Row:
    """What decides which actions work on the row under the cursor.

    `name` is its kernel's; `pinned` says that the kernel has a pin here, `schedule` that the row has one, `shares` that
    a cluster of failures shares a knob value; `pins` and `stale` say that there is any pin at all, and a stale one.
    """

    name: str = ""
    pinned: bool = True
    schedule: bool = True
    shares: bool = True
    pins: bool = True
    stale: bool = True


@dataclass(frozen=True, slots=True)
class Now:
    """What decides whether an action works: the source's abilities, and what is on the screen.

    `returns` says that a database was looked at before this run, to which one can go back.
    `items` counts the rows of the tab's list, `contexts` those of the shown kernel; `undoable` says that this session
    changed a pin, `filtered` that a filter is on, `corners` counts the forbidden ones,
    `compiles` what compiles now; `middle` is the panel in the middle of the Live tab. `lines` counts those of the
    focused list; `compared` says that two runs are, `trained` that a prior's training is known, `reading` that the
    rest of the rows is still on its way. `unwritable` says why the database can't be written, where that isn't a wish.
    `row` is the one under the cursor of the tab's list. `key` names the keys of actions as a person has them now.
    """

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
    tab: str = LIVE
    items: int = 0
    writable: bool = True
    undoable: bool = False
    filtered: bool = False
    contexts: int = 0
    corners: int = 0
    compiles: int = 0
    middle: str = "tree"
    lines: int = 1
    compared: bool = True
    trained: bool = True
    reading: bool = False
    returns: bool = False
    unwritable: str = ""
    row: Row = Row()
    key: Named = _in_the_table


Decides = Callable[[Now], bool]
Explains = Callable[[Now], str]


def always(now: Now) -> bool:
    return True


def no_reason(now: Now) -> str:
    return ""


STILL_READING = "The database is still being read"
_EVERYTHING = {
    "kernels": 2,
    "nodes": 1,
    "items": 2,
    "lines": 2,
    "contexts": 2,
    "corners": 1,
    "compared": True,
    "trained": True,
    "row": Row(),
}


def reason_why_not(action: Action, now: Now) -> str:
    """Why an action doesn't work now; while rows are on their way, nobody knows yet what will be missing."""
    if now.reading and action.when(replace(now, **_EVERYTHING)):  # type: ignore[arg-type]
        return STILL_READING
    return action.why_not(now)


def because(reason: str) -> Explains:
    return lambda now: reason


@dataclass(frozen=True, slots=True)
class Action:
    """`name` is the method (`action_` + name); `footer` its place there, 0 for none; lower places come first.

    `in_list` actions belong to the focused list, those with `tabs` to these tabs, the others to the application.
    """

    name: str
    keys: tuple[str, ...]
    label: str
    meaning: str
    group: Group
    when: Decides = always
    why_not: Explains = no_reason
    footer: int = 0
    palette: bool = True
    in_list: bool = False
    tabs: tuple[str, ...] = ()


def nothing_seen(now: Now) -> str:
    """Why there is no panel to act on."""
    return "There is nothing to look at yet" if now.mode is None else "The terminal is too small to show anything"


def on_tabs(
    tabs: tuple[str, ...],
    name: str,
    keys: tuple[str, ...],
    label: str,
    meaning: str,
    group: Group,
    when: Decides = always,
    why_not: Explains = no_reason,
    footer: int = 0,
) -> Action:
    """An action of some tabs: it works on them alone, and elsewhere says which key leads there."""

    def works(now: Now) -> bool:
        return now.roomy and now.mode is not None and now.tab in tabs and when(now)

    def explain(now: Now) -> str:
        if now.mode is None or not now.roomy:
            return nothing_seen(now)
        if now.tab in tabs:
            return why_not(now)
        return f"It belongs to another tab: press {' or '.join(now.key(f'tab_{tab}') for tab in tabs)} first"

    return Action(name, keys, label, meaning, group, works, explain, footer, tabs=tabs)
