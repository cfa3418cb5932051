"""The footer: the keys that work now, the most useful of the tab first, and that there are more; and clicks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emmy_tui.action import COMPARE, FAILURES, LIVE, PINS, PRIOR, TABS, VARIANTS, Now
from emmy_tui.app import EmmyApp
from emmy_tui.help import Help
from emmy_tui.prompt import Prompt
from emmy_tui.source import Mode
from emmy_tui.text import line_width, plain
from emmy_tui.variant_asking import VariantReading
from emmy_tui.widgets.footer import footer_action, footer_items, footer_line
from emmy_tui.widgets.kernel_list import KernelOrder
from engine.events import RunState, StateChanged
from tests.emmy_tui.looking import application, rows, running, screen_text, showing
from tests.emmy_tui.measured import fill, over, press, settled
from tests.emmy_tui.scripted import START, ScriptedSource, search_events
from tests.emmy_tui.two_runs import record_runs

EVENTS = search_events()
FIRST = {
    LIVE: ("kernels", "i Why"),
    VARIANTS: ("variants", "/ Filter  s Sort  p Pin  i Why  b Compare  y Copy"),
    FAILURES: ("clusters", "F Forbid  C Forbidden  e Export"),
    PRIOR: ("ranked", "t Trained on  e Export"),
    COMPARE: ("pairs", "a Run A  b Run B"),
    PINS: ("pins", "p Pin  y Copy  e Export"),
}


def full(tab: str) -> Now:
    """A browsed database with rows of everything."""
    return Now(
        Mode.BROWSE, focus=FIRST[tab][0], kernels=3, nodes=9, tab=tab, items=3, contexts=1, corners=1, shared_slot=True
    )


@pytest.mark.parametrize("tab", TABS)
def test_at_80_columns_the_useful_keys_come_first_and_more_is_said(tab: str) -> None:
    text = plain(footer_line(full(tab), 80))
    assert FIRST[tab][1] in text
    assert text.startswith("q Quit  enter Open")
    assert text.endswith("? more")


@given(st.sampled_from(TABS), st.integers(1, 400))
def test_more_is_said_exactly_where_keys_are_left_out(tab: str, width: int) -> None:
    items, line = footer_items(full(tab), width), footer_line(full(tab), width)
    assert line_width(line) <= width
    every = footer_items(full(tab), 1000)
    if len(items) == len(every):
        assert plain(line).endswith("? Help")
    elif items:
        assert plain(line).endswith("? more") or width < len("? more") + len(items[0][1]) + 30


@given(st.sampled_from(TABS), st.integers(1, 200), st.integers(0, 200))
def test_the_action_at_a_place_is_the_one_that_is_written_there(tab: str, width: int, place: int) -> None:
    now = full(tab)
    action, text = footer_action(now, width, place), plain(footer_line(now, width))
    if action is None:
        assert place >= len(text) or text[place] == " "
    else:
        start = next(start for start in range(place, -1, -1) if text[:start] == "" or text[:start].endswith("  "))
        assert text[start:].split()[1] in (action.label.split()[0], "more")


async def test_what_has_no_row_is_not_offered() -> None:
    app = showing([StateChanged(at=START, state=RunState.FINISHED)])
    async with running(app) as pilot:
        for key in "123456":
            await press(app, pilot, key)
            offered = rows(app)[-1]
            for dead in ("enter Open", "/ Filter", "s Sort", "e Export", "y Copy", "a Run A", "b Run B"):
                assert dead not in offered, (key, dead)


async def test_compare_offers_its_runs_where_there_are_two(tmp_path: Path) -> None:
    app = over(record_runs(tmp_path / "two.db"))
    async with running(app) as pilot:
        await press(app, pilot, "5")
        assert "a Run A  b Run B" in rows(app)[-1]


async def click_word(app: EmmyApp, word: str, row: int, pilot: object) -> None:
    """Click on a word of a row of the screen, as a person aims at it."""
    x = rows(app)[row].index(word)
    await pilot.click(offset=(x, row % app.size.height))  # type: ignore[attr-defined]
    await settled(app, pilot)  # type: ignore[arg-type]


async def test_a_click_on_a_tabs_name_shows_it(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=12))
    async with running(app, (160, 45)) as pilot:
        for name in ("Failures", "Pins", "Live", "Variants"):
            await click_word(app, name, 1, pilot)
            assert app.view.tab == name.casefold()
            assert app.tab.focused_panel() == app.tab.first
        await pilot.resize_terminal(80, 24)
        await settled(app, pilot)
        await click_word(app, "Fail", 1, pilot)
        assert app.view.tab == FAILURES


async def test_a_click_on_a_key_of_the_footer_acts_as_the_key(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=12))
    async with running(app) as pilot:
        await press(app, pilot, "2")
        await click_word(app, "/ Filter", -1, pilot)
        assert isinstance(app.screen, Prompt)
        await press(app, pilot, "escape")
        await click_word(app, "Sort", -1, pilot)
        assert "ranking▲" in screen_text(app)
        assert app.tab.focused_panel() == "variants"
        await press(app, pilot, "down")
        assert app.variants.list.cursor == 1
        await click_word(app, "more", -1, pilot)
        assert isinstance(app.screen, Help)
        await press(app, pilot, "escape")
        await click_word(app, "enter", -1, pilot)
        assert isinstance(app.screen, VariantReading)


async def test_clicks_on_headings_sort(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=12))
    async with running(app, (160, 45)) as pilot:
        await press(app, pilot, "2")
        for word in ("trial", "regs", "spill", "ranking", "smem", "error"):
            await click_word(app, word, 3, pilot)
            assert f"{word}▲" in screen_text(app)
        await click_word(app, "error", 3, pilot)
        assert "error▼" in screen_text(app)
        await click_word(app, "knobs", 3, pilot)
        assert "error▼" in screen_text(app)


async def test_a_click_on_a_heading_orders_the_kernels() -> None:
    app = showing(EVENTS)
    async with running(app, (200, 50)) as pilot:
        kernels = app.live.kernel_panel
        await click_word(app, "of all", 3, pilot)
        assert (kernels.order, kernels.reversed) == (KernelOrder.COST, False)
        await click_word(app, "of all", 3, pilot)
        assert (kernels.order, kernels.reversed) == (KernelOrder.COST, True)
        await click_word(app, "us", 3, pilot)
        assert kernels.order is KernelOrder.TIME
        await click_word(app, "kernel", 3, pilot)
        assert kernels.order is KernelOrder.RUN


async def test_a_click_on_a_tab_of_the_start_screen_does_nothing() -> None:
    app = application(None)
    async with running(app) as pilot:
        await pilot.click(offset=(3, 1))
        assert app.view.tab == LIVE


async def test_a_click_pauses_the_run() -> None:
    source = ScriptedSource(EVENTS[:200])
    app = application(source)
    async with running(app) as pilot:
        await click_word(app, "P Pause", -1, pilot)
        assert source.asked == ["pause"]
