"""Sentences that name a key name the one that a person has for it now."""

from __future__ import annotations

import ast
import re
from itertools import product
from pathlib import Path

import pytest

import emmy_tui
from emmy_tui.action import TABS, Now, Row, reason_why_not
from emmy_tui.actions import ACTIONS, BY_NAME, key_named, spoken
from emmy_tui.config import config_text, read_config
from emmy_tui.dialogs import Reading
from emmy_tui.look import Look
from emmy_tui.notice import start_lines
from emmy_tui.pareto import FrontChoice
from emmy_tui.preferences import TABLE
from emmy_tui.source import Mode
from emmy_tui.text import plain
from tests.emmy_tui.looking import application, running, screen_text
from tests.emmy_tui.measured import fill, only_eight_warps_fail, over, press, settled

KEYS = {action.name: (f"key{number}",) for number, action in enumerate(ACTIONS)}
"""Every action has another key than in the table."""
WORDS_TOO = {"a", "A", "B", "I", "-", "/", "tab", "left", "right", "up", "down", "end", "home"}
"""Keys that are also words and signs."""
DEFAULT = {spoken(key) for action in ACTIONS for key in action.keys} - WORDS_TOO
DOES = (
    "undoes|lists|pins|starts|stops|allows|takes|shows|opens|leads|makes|measures|counts|comes|ends|exits|searches|"
    "compares|pastes|wrote|on another row|closes|again|first"
)
KEY = r"[A-Za-z1-6?/+\[\]-]|(?<!this )(?<!Variants )tab|backspace|space|\^\w|ctrl\+[a-tv-z]"
NAMED = re.compile(rf"(?<![\w'{{}}])(?:{KEY}) (?:{DOES})")
"""A key written out before what it does."""
OWN_KEYS = (
    "a allows it again, esc closes",
    "/ searches  esc closes",
    "to tmux (prefix ] pastes)",
    "B takes ",
    "the terminal is gone: %s ends",
)
"""Of dialogs and of other programs, which nobody changes here."""


def key(name: str) -> str:
    return key_named(name, KEYS)


def of_the_table(text: str, *but: str) -> list[str]:
    """The keys of the table that stand in a text as words."""
    return [word for word in re.findall(r"[^\s;:,.()│]+", text) if word in DEFAULT - set(but)]


def test_no_sentence_of_the_source_has_a_key_written_out() -> None:
    root = Path(emmy_tui.__file__).parent
    found = []
    for file in root.rglob("*.py"):
        tree = ast.parse(file.read_text())
        documents = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
        for one in ast.walk(tree):
            text = one.value if isinstance(one, ast.Constant) and id(one) not in documents else ""
            if isinstance(text, str) and NAMED.search(text) and text not in OWN_KEYS:
                found.append(f"{file.name}:{one.lineno}: {text}")
    assert not found, found


def test_why_an_action_does_not_work_names_the_keys_of_now() -> None:
    named = 0
    rows = (Row(), Row(pinned=False, schedule=False, shares=False, pins=False, stale=False))
    for tab, mode, items, writable, row, capabilities, flag in product(
        TABS, (None, Mode.BROWSE, Mode.LIVE), (0, 2), (True, False), rows, ((), ("start",), ("stop",)), (True, False)
    ):
        now = Now(
            mode=mode,
            tab=tab,
            items=items,
            writable=writable,
            row=row,
            capabilities=frozenset(capabilities),
            filtered=flag,
            kernels=items,
            returns=flag,
            compared=flag,
            key=key,
        )
        for action in ACTIONS:
            sentence = reason_why_not(action, now)
            assert not of_the_table(sentence), sentence
            assert ": tab" not in sentence
            named += "key" in sentence
    assert named


def test_an_action_without_a_key_is_named_by_its_word() -> None:
    without = {**KEYS, "undo_pin": ()}
    assert key_named("undo_pin", without) == f"{key('command_palette')} Undo"
    assert key_named("undo_pin", {"undo_pin": (), "command_palette": ()}) == "Undo"
    assert key_named("undo_pin") == "U"
    for name in BY_NAME:
        assert key_named(name, KEYS) == KEYS[name][0]


def test_what_is_said_without_a_person_looking_names_no_key() -> None:
    for action in ACTIONS:
        assert not of_the_table(action.meaning, "x", "y", "U"), action.meaning
    meanings = [line for line in config_text(read_config(None, {}, TABLE), TABLE).splitlines() if line.startswith("# ")]
    assert not [line for line in meanings if " = " not in line and of_the_table(line, *"123456")]
    start = "\n".join(plain(line) for line in start_lines(100, key))
    assert f"({key('demo')} starts it here)" in start


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db")


async def test_what_is_said_of_variants_and_pins(database: Path) -> None:
    app = over(database, Look(keys=KEYS))
    async with running(app, (160, 45)) as pilot:

        async def do(name: str) -> str:
            await press(app, pilot, key(name))
            return app.footer.said

        await do("tab_variants")
        assert f"; {key('undo_pin')} undoes it" not in app.footer.said
        await do("pin")
        assert f"{key('next_kernel')}" not in screen_text(app)
        await press(app, pilot, "enter")
        assert app.footer.said.endswith(f"; {key('undo_pin')} undoes it")
        assert (await do("mark")) == f"marked as A; {key('mark')} on another row compares them"
        await press(app, pilot, key("select"))
        assert isinstance(app.screen, Reading)
        assert f"{key('assemble')} counts PTX and SASS" in screen_text(app)
        await press(app, pilot, "escape")
        await do("pareto")
        assert isinstance(app.screen, FrontChoice)
        assert f"{key('pin')} pins it, esc closes" in screen_text(app)
        await press(app, pilot, key("pin"))
        assert "Pin matmul" in screen_text(app)
        await press(app, pilot, "escape")
        app.variants.set_filter("st:ok us<0")
        await settled(app, pilot)
        assert f"{key('clear_filter')} takes it away" in screen_text(app)
        await do("clear_filter")
        assert (await do("unpin")).endswith(f"; {key('undo_pin')} undoes it")
        await do("tab_pins")
        text = screen_text(app)
        assert f"Nothing is pinned: {key('pin')} pins knob values that you type; on tab {key('tab_variants')}" in text
        await do("pin")
        assert f"{key('previous_kernel')} and {key('next_kernel')}: another kernel" in screen_text(app)
        await press(app, pilot, "escape")
        await do("import_pins")
        assert f"a JSON file that {key('export')} wrote" in screen_text(app)


async def test_what_is_said_of_failures_and_the_help_closes_with_its_own_key(database: Path) -> None:
    app = over(only_eight_warps_fail(database), Look(keys=KEYS))
    async with running(app, (160, 45)) as pilot:
        await press(app, pilot, key("tab_failures"))
        assert f"; {key('select')} opens one" in screen_text(app)
        await press(app, pilot, key("forbid"), "enter")
        said = app.footer.said
        assert said.endswith(f"{key('undo_forbid')} undoes it, {key('list_corners')} lists what is forbidden")
        await press(app, pilot, key("help"))
        assert "Keys of emmy-tui" in screen_text(app)
        await press(app, pilot, key("help"))
        assert "Keys of emmy-tui" not in screen_text(app)


async def test_the_start_screen_names_the_key_of_the_demo() -> None:
    app = application(None, Look(keys=KEYS))
    async with running(app) as pilot:
        await pilot.pause()
        assert f"({key('demo')} starts it here)" in " ".join(screen_text(app).split())


async def test_escape_where_it_does_nothing_says_nothing(database: Path) -> None:
    app = over(database)
    async with running(app) as pilot:
        for tab in "123456":
            await press(app, pilot, tab, "escape")
            assert app.footer.said == ""
