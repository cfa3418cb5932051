"""Keys that come in one burst do what they do one by one."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from textual.events import Key, Paste
from textual.pilot import Pilot

from emmy_tui import key_order
from emmy_tui.app import EmmyApp
from emmy_tui.prompt import Prompt
from engine.store import Store
from engine.vocabulary import Schedule
from tests.emmy_tui.looking import running, screen_text
from tests.emmy_tui.measured import fill, over, press, settled

PATIENT_S = 60.0
"""Longer than a busy machine takes to answer."""


def burst(app: EmmyApp, keys: list[str]) -> None:
    """All of them before the first is handled, as a terminal hands over what was typed meanwhile."""
    for key in keys:
        app.post_message(Key(key, key if len(key) == 1 else {"space": " ", "less_than_sign": "<"}.get(key)))


async def until_quiet(app: EmmyApp, pilot: Pilot[None]) -> None:
    for _ in range(300):
        await settled(app, pilot)
        if not app._kept and not app._on_its_way:
            break
        await asyncio.sleep(0.01)
    await settled(app, pilot)


def notes(path: Path) -> list[str]:
    with Store.open(path, read_only=True) as store:
        return [one.pin.note for one in store.pins()]


async def held_up(app: EmmyApp) -> threading.Event:
    """The database answers nothing before the event."""
    held, go_on = threading.Event(), threading.Event()

    def slowly(store: Store) -> None:
        held.set()
        go_on.wait(10)

    app.desk.ask("slow", slowly, lambda answer: None, lambda sentence: None)
    await asyncio.to_thread(held.wait, 10)
    return go_on


async def test_a_note_and_what_follows_it(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=8))
    async with running(app) as pilot:
        await press(app, pilot, "2")
        before = app.variants.list.cursor
        burst(app, [*"pnote", "space", *"xj", "enter", "j", "j"])
        await until_quiet(app, pilot)
        assert notes(tmp_path / "tune.db") == ["note xj"]
        assert app.variants.list.cursor == before + 2
        assert len(app.screen_stack) == 1


async def test_a_filter_and_what_follows_it(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=8))
    async with running(app) as pilot:
        await press(app, pilot, "2")
        burst(app, ["slash", *"us", "less_than_sign", *"700", "enter", "j"])
        await until_quiet(app, pilot)
        assert app.variants._filter_text == "us<700"
        assert len(app.screen_stack) == 1


async def test_keys_wait_for_a_line_that_the_database_is_asked_for(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=8))
    async with running(app) as pilot:
        await press(app, pilot, "2", "p", "enter", "6")
        go_on = await held_up(app)
        burst(app, ["p", "ctrl+u", "number_sign", *"new"])
        await pilot.pause()
        assert app.desk.prompting
        go_on.set()
        await until_quiet(app, pilot)
        assert isinstance(app.screen, Prompt)
        assert "new" in screen_text(app)


async def test_what_is_done_with_a_row_waits_for_the_row_that_is_moved_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_order, "OPENS_S", PATIENT_S)
    app = over(fill(tmp_path / "tune.db", rows=8))
    async with running(app) as pilot:
        await press(app, pilot, "2")
        shown = app.variants.list.current_row()
        assert shown is not None
        go_on = await held_up(app)
        burst(app, ["right_square_bracket", "p", *"note", "enter"])
        await pilot.pause()
        assert len(app.screen_stack) == 1
        go_on.set()
        await until_quiet(app, pilot)
        with Store.open(tmp_path / "tune.db", read_only=True) as store:
            (pin,) = [one.pin for one in store.pins()]
        here = app.variants.list.current_row()
        assert here is not None
        assert (pin.kernel_key, pin.schedule, pin.note) == (here.kernel, Schedule.of(here.schedule), "note")
        assert pin.kernel_key != shown.kernel


async def test_moves_are_of_the_rows_that_were_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_order, "OPENS_S", PATIENT_S)
    app = over(fill(tmp_path / "tune.db", rows=8))
    async with running(app) as pilot:
        await press(app, pilot, "2", "right_square_bracket")
        go_on = await held_up(app)
        burst(app, ["left_square_bracket", "j", "j", "p", *"third", "enter"])
        await pilot.pause()
        go_on.set()
        await until_quiet(app, pilot)
        assert notes(tmp_path / "tune.db") == ["third"]
        assert app.variants.list.cursor == 2


async def test_rows_that_take_long_hold_keys_up_once(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=8))
    async with running(app) as pilot:
        await press(app, pilot, "2")
        go_on = await held_up(app)
        burst(app, ["right_square_bracket", *"pjjjjjjjj", "1"])
        for _ in range(500):
            if app.view.tab == "live":
                break
            await asyncio.sleep(0.01)
        assert app.view.tab == "live", "they wait no second each"
        go_on.set()
        await until_quiet(app, pilot)
        assert notes(tmp_path / "tune.db") == []


async def test_esc_gives_up_a_line_that_is_still_asked_for(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=8))
    async with running(app) as pilot:
        await press(app, pilot, "2", "p", "enter", "6")
        go_on = await held_up(app)
        await pilot.press("p")
        await pilot.pause()
        burst(app, ["x", "2"])
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert not app.desk.prompting
        go_on.set()
        await until_quiet(app, pilot)
        assert len(app.screen_stack) == 1
        assert app.view.tab == "pins"


@pytest.mark.parametrize("opener", ["ctrl+p", "slash"])
async def test_what_is_pasted_behind_the_key_that_opens_goes_into_the_line(opener: str, tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=8))
    async with running(app) as pilot:
        await press(app, pilot, "2")
        burst(app, [opener])
        app.post_message(Paste("us"))
        app.post_message(Key("x", "x"))
        await until_quiet(app, pilot)
        assert app.screen.focused is not None
        assert getattr(app.screen.focused, "value", "") == "usx"


async def test_a_click_beside_a_line_keeps_no_key_for_long(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=8))
    async with running(app) as pilot:
        await press(app, pilot, "2", "slash")
        app.screen.set_focus(None)
        app._turned_at = 0.0
        await pilot.press("escape")
        await pilot.pause()
        assert len(app.screen_stack) == 1
