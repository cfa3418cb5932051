"""One table feeds the bindings, the footer, the help and the palette: none of them may differ from it."""

from __future__ import annotations

from itertools import product

import pytest
from textual.binding import Binding

from emmy_tui.action import COMPARE, FAILURES, LIVE, PINS, PRIOR, TABS, VARIANTS, Action, Group, Now
from emmy_tui.actions import ACTIONS, BY_NAME, footer_actions, spoken
from emmy_tui.app import EmmyApp
from emmy_tui.help import help_lines
from emmy_tui.pressing import palette_title
from emmy_tui.source import Mode
from emmy_tui.tabs.compare import CompareTab
from emmy_tui.tabs.failures import FailuresTab
from emmy_tui.tabs.live import LiveTab
from emmy_tui.tabs.pins import PinsTab
from emmy_tui.tabs.prior import PriorTab
from emmy_tui.tabs.tab import Tab
from emmy_tui.tabs.variants import VariantsTab
from emmy_tui.text import line_width, plain
from emmy_tui.widgets.footer import footer_line
from emmy_tui.widgets.panel import ListPanel
from tests.emmy_tui.looking import running, screen_text, showing
from tests.emmy_tui.scripted import search_events

FOCUSED = {
    LIVE: ("", "kernels", "tree", "plan", "health", "log", "curve"),
    VARIANTS: ("variants",),
    FAILURES: ("clusters", "cluster"),
    PRIOR: ("ranked", "residuals"),
    PINS: ("pins",),
    COMPARE: ("pairs",),
}
EVERY_NOW = [
    Now(mode, frozenset(verbs), frozen, focus, kernels, 1, roomy, shared, demo, tab=tab, items=kernels, **more)
    for mode, verbs, frozen, kernels, roomy, shared, demo, tab, more in product(
        (None, *Mode),
        ((), ("start",), ("pause", "stop", "skip", "patience"), ("resume", "stop", "retune")),
        (False, True),
        (0, 1, 2),
        (False, True),
        (False, True),
        (False, True),
        TABS,
        (
            {"writable": False},
            {
                "undoable": True,
                "filtered": True,
                "contexts": 2,
                "corners": 1,
                "compiles": 1,
                "middle": "plan",
                "returns": True,
            },
        ),
    )
    for focus in FOCUSED[tab]
]


CLASSES: dict[str, type[Tab]] = {
    LIVE: LiveTab,
    VARIANTS: VariantsTab,
    FAILURES: FailuresTab,
    PRIOR: PriorTab,
    PINS: PinsTab,
    COMPARE: CompareTab,
}


def bound() -> dict[str, set[str]]:
    """Action name to keys, from both sets of bindings."""
    keys: dict[str, set[str]] = {}
    for binding in (*EmmyApp.BINDINGS, *ListPanel.BINDINGS, *(one for tab in CLASSES.values() for one in tab.BINDINGS)):
        assert isinstance(binding, Binding)
        keys.setdefault(binding.action, set()).update(binding.key.split(","))
    return keys


def test_bindings_are_the_table() -> None:
    assert bound() == {action.name: set(action.keys) for action in ACTIONS}


def test_every_action_has_its_method() -> None:
    for action in ACTIONS:
        owners = [CLASSES[tab] for tab in action.tabs] or [ListPanel if action.in_list else EmmyApp]
        for owner in owners:
            assert callable(getattr(owner, f"action_{action.name}")), action.name


def test_a_tab_binds_its_own_actions() -> None:
    for tab, owner in CLASSES.items():
        names = {binding.action for binding in owner.BINDINGS if isinstance(binding, Binding)}
        assert names == {action.name for action in ACTIONS if tab in action.tabs}


def test_a_key_never_does_two_things_at_once() -> None:
    for now in EVERY_NOW:
        keys = [key for action in ACTIONS if action.when(now) for key in action.keys]
        assert len(keys) == len(set(keys)), now


def test_the_footer_offers_only_what_works_and_all_of_it_somewhere() -> None:
    offered: set[str] = set()
    for now in EVERY_NOW:
        actions = footer_actions(now)
        assert all(action.when(now) for action in actions)
        assert [action.footer for action in actions] == sorted(action.footer for action in actions)
        offered |= {action.name for action in actions}
        text = plain(footer_line(now, 400))
        assert all(f"{spoken(action.keys[0])} {action.label}" in text for action in actions)
        assert len(plain(footer_line(now, 40))) <= 40
    assert offered == {action.name for action in ACTIONS if action.footer}


def test_the_help_lists_every_action_once_with_its_keys() -> None:
    lines = [plain(line) for line in help_lines(Now())]
    for action in ACTIONS:
        keys = " ".join(spoken(key) for key in action.keys)
        assert sum(line.strip().startswith(keys) and action.meaning in line for line in lines) == 1, action.name
    assert len([line for line in lines if line and not line.startswith(" ")]) == len(Group) + 1


@pytest.mark.parametrize("width", [60, 76, 110])
def test_the_help_is_never_cut(width: int) -> None:
    lines = help_lines(Now(), width=width)
    assert all(line_width(line) <= width for line in lines)
    text = " ".join(" ".join(plain(line).split()) for line in lines)
    for action in ACTIONS:
        assert " ".join(action.meaning.split()) in text
        if not action.when(Now()):
            assert " ".join(action.why_not(Now()).split()) in text


def test_what_does_not_work_says_why() -> None:
    explained = [action for action in ACTIONS if action.palette and action.name not in _ALWAYS]
    for now in EVERY_NOW:
        for action in explained:
            if not action.when(now) and now.roomy:
                assert action.why_not(now), (action.name, now)


@pytest.mark.parametrize(
    ("action", "capabilities", "words"),
    [
        ("resume", {"pause", "stop"}, "Only a paused run can be resumed"),
        ("pause", {"resume", "stop"}, "this one is paused"),
        ("start", {"pause", "stop"}, "a run that has ended"),
        ("stop", {"start"}, "No run is on; R starts one"),
        ("pause", {"start"}, "No run is on; R starts one"),
    ],
)
def test_a_verb_names_the_state_that_it_needs(action: str, capabilities: set[str], words: str) -> None:
    assert words in BY_NAME[action].why_not(Now(mode=Mode.LIVE, capabilities=frozenset(capabilities)))


def test_the_axes_of_the_curve_are_told_apart() -> None:
    assert "y axis: logarithmic or linear" in BY_NAME["log_scale"].meaning
    assert "x axis: trials or time" in BY_NAME["time_axis"].meaning


_ALWAYS = {action.name for action in ACTIONS if all(action.when(now) for now in EVERY_NOW)}


async def test_the_palette_lists_every_action_but_movements() -> None:
    app = showing(search_events())
    async with running(app) as pilot:
        await pilot.pause()
        commands = {command.title: command for command in app.get_system_commands(app.screen)}
        wanted: list[Action] = [action for action in ACTIONS if action.palette]
        assert set(commands) == {palette_title(action) for action in wanted}
        assert {action.group for action in ACTIONS if not action.palette} <= {Group.MOVE, Group.PROGRAM}
        commands["Log  L"].callback()
        await pilot.pause()
        assert not app.view.log_scale


def test_the_help_is_searched_by_words_and_by_keys() -> None:
    found = [plain(line) for line in help_lines(Now(), wanted="undo pin")]
    assert any("Undo the last change of a pin" in line for line in found)
    assert not any("Freeze" in line for line in found)
    assert [plain(line).split()[0] for line in help_lines(Now(), wanted="P")][1] == "P"
    assert any("1.83m" in plain(line) for line in help_lines(Now(), wanted="floor"))
    assert help_lines(Now(), wanted="no such thing") == []


async def test_typing_in_the_help_filters_its_lines() -> None:
    app = showing(search_events())
    async with running(app) as pilot:
        await pilot.press("question_mark", "slash", *"skip")
        text = screen_text(app)
        assert "/skip_" in text
        assert "End this kernel's search with what it has" in text
        assert "Freeze the view" not in text
        await pilot.press("enter", "escape")
        assert "Live: start the run" in screen_text(app)
        assert len(app.screen_stack) == 2
        await pilot.press("escape")
        assert len(app.screen_stack) == 1
