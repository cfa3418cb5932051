"""Leaving waits for what is being stored, asks where that takes long, and names what was let go."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from emmy_tui.app import EmmyApp
from emmy_tui.leaving import Unstored
from emmy_tui.main import FAILED
from engine.store import Store
from tests.emmy_tui.looking import running, screen_text
from tests.emmy_tui.measured import fill, over, press
from tests.emmy_tui.test_desk import locked_elsewhere


async def soon(app: EmmyApp, pilot: Pilot[None], condition: object) -> None:
    for _ in range(400):
        await pilot.pause()
        app.tick()
        if condition():  # type: ignore[operator]
            return
        await asyncio.sleep(0.02)
    raise AssertionError(screen_text(app))


async def pin(app: EmmyApp, pilot: Pilot[None]) -> None:
    await press(app, pilot, "2")
    await pilot.press("p")
    await pilot.pause()
    await pilot.press("enter")
    await pilot.pause()


async def asked(app: EmmyApp, pilot: Pilot[None]) -> None:
    """An act waits for a lock, and a person who quits is asked about it."""
    await pin(app, pilot)
    await pilot.press("q")
    await soon(app, pilot, lambda: isinstance(app.screen, Unstored))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for long."""
    monkeypatch.setattr("emmy_tui.leaving.MOMENT_S", 0.05)
    monkeypatch.setattr("engine.store.connection.BUSY_S", 1.0)
    monkeypatch.setattr("engine.store.connection.WORD_S", 0.5)


def pins(path: Path) -> int:
    with Store.open(path, read_only=True) as store:
        return len(store.pins())


async def test_what_takes_a_moment_is_stored(tmp_path: Path) -> None:
    path = fill(tmp_path / "tune.db", rows=4)
    app = over(path)
    async with running(app) as pilot:
        await pin(app, pilot)
        await pilot.press("q")
        await soon(app, pilot, lambda: app._exit)
    assert (app.return_code, app.unstored) == (0, ())
    assert pins(path) == 1


def busy(app: EmmyApp) -> threading.Event:
    """The desk's thread reads nothing else until this is set."""
    goes_on = threading.Event()
    app.desk.ask("busy", lambda store: goes_on.wait(20), lambda answer: None, app.outlet.warn)
    return goes_on


@pytest.mark.parametrize(("tab", "keys", "file"), [("2", "ecq", "*variants*.csv"), ("6", "eq", "*pins*.json")])
async def test_a_file_that_was_asked_for_is_written(tab: str, keys: str, file: str, tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=4))
    async with running(app) as pilot:
        await pin(app, pilot)
        await soon(app, pilot, lambda: not app.desk.unwritten)
        await press(app, pilot, tab)
        goes_on = busy(app)
        await pilot.press(*keys)
        assert not app._exit
        goes_on.set()
        await soon(app, pilot, lambda: app._exit)
    assert app.return_code == 0
    assert [path.stat().st_size > 0 for path in (tmp_path / "out").glob(file)] == [True]


async def test_a_file_that_takes_long_is_asked_about(tmp_path: Path, impatient: None) -> None:
    app = over(fill(tmp_path / "tune.db", rows=4))
    async with running(app) as pilot:
        await press(app, pilot, "2")
        goes_on = busy(app)
        await pilot.press(*"ecq")
        await soon(app, pilot, lambda: isinstance(app.screen, Unstored))
        assert "the export of the variants" in screen_text(app)
        await pilot.press("enter")
        goes_on.set()
        await soon(app, pilot, lambda: app._exit)
    assert list((tmp_path / "out").glob("*.csv"))


def slow_tmux(app: EmmyApp) -> threading.Event:
    """A tmux around, whose buffer is loaded once this is set."""
    goes_on = threading.Event()
    app.outlet._in_tmux, app.outlet._load_buffer = True, lambda text: goes_on.wait(20)
    return goes_on


@pytest.mark.parametrize(("tab", "key"), [("2", "y"), ("2", "Y"), ("6", "y")])
async def test_what_was_copied_within_tmux_is_waited_for(tab: str, key: str, tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=4))
    async with running(app) as pilot:
        goes_on = slow_tmux(app)
        await pin(app, pilot)
        await soon(app, pilot, lambda: not app.desk.unwritten)
        await press(app, pilot, tab)
        await pilot.press(key, "q")
        assert not app._exit
        goes_on.set()
        await soon(app, pilot, lambda: app._exit)
    assert app.return_code == 0
    assert (tmp_path / "copied.txt").read_text().strip()


async def test_a_copy_that_takes_long_is_asked_about(tmp_path: Path, impatient: None) -> None:
    app = over(fill(tmp_path / "tune.db", rows=4))
    async with running(app) as pilot:
        goes_on = slow_tmux(app)
        await press(app, pilot, "2")
        await pilot.press(*"yyq")
        await soon(app, pilot, lambda: isinstance(app.screen, Unstored))
        assert "the copy of the knobs of matmul" in screen_text(app)
        await pilot.press("enter")
        goes_on.set()
        await soon(app, pilot, lambda: app._exit)
    assert (tmp_path / "copied.txt").exists()


async def test_a_file_that_can_not_be_written_keeps_the_screen(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=4))
    (tmp_path / "out").write_text("in the way of the folder")
    async with running(app) as pilot:
        await press(app, pilot, "2")
        goes_on = busy(app)
        await pilot.press(*"ecq")
        goes_on.set()
        await soon(app, pilot, lambda: "can't be written" in app.footer.said)
        assert not app._exit


async def test_a_lock_is_waited_for_aloud_and_asked_about(tmp_path: Path) -> None:
    path = fill(tmp_path / "tune.db", rows=4)
    app = over(path)
    async with running(app, (100, 30)) as pilot:
        with locked_elsewhere(path):
            await pin(app, pilot)
            await soon(app, pilot, lambda: "waiting for it" in screen_text(app))
            app.footer._until = 0.0  # any other sentence's time is over
            await soon(app, pilot, lambda: app.footer.said == "" and "waiting for it" in screen_text(app))
            await pilot.press("q")
            await soon(app, pilot, lambda: isinstance(app.screen, Unstored))
            assert "1 act not stored yet. Quit?" in screen_text(app)
            assert "pinned matmul" in screen_text(app)
            await pilot.press("escape")
            await soon(app, pilot, lambda: len(app.screen_stack) == 1)
            await pilot.press("q")
            await soon(app, pilot, lambda: isinstance(app.screen, Unstored))
            await pilot.press("enter")
            await soon(app, pilot, lambda: "Waits, then quits" in screen_text(app))
            assert not app._exit
        await soon(app, pilot, lambda: app._exit)
    assert (app.return_code, app.unstored) == (0, ())
    assert pins(path) == 1


@pytest.mark.usefixtures("impatient")
async def test_a_lock_is_waited_for_as_long_as_it_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fill(tmp_path / "tune.db", rows=4)
    app = over(path)
    tries: list[bool] = []
    once = app.desk._write_once

    def counted(job: Any, path: Path) -> object:
        tries.append(True)
        return once(job, path)

    monkeypatch.setattr(app.desk, "_write_once", counted)
    async with running(app, (100, 30)) as pilot:
        with locked_elsewhere(path):
            await asked(app, pilot)
            await pilot.press("enter")
            await soon(app, pilot, lambda: len(tries) > 3)
            await pilot.press("enter")
            assert "Waits, then quits" in screen_text(app)
            assert not app._exit
        await soon(app, pilot, lambda: app._exit)
    assert (app.return_code, app.unstored) == (0, ())
    assert pins(path) == 1


@pytest.mark.usefixtures("impatient")
async def test_a_wait_that_is_given_up_ends_in_the_sentence(tmp_path: Path) -> None:
    path = fill(tmp_path / "tune.db", rows=4)
    app = over(path)
    async with running(app, (100, 30)) as pilot:
        with locked_elsewhere(path):
            await asked(app, pilot)
            await pilot.press("enter")
            await soon(app, pilot, lambda: "Waits, then quits" in screen_text(app))
            await pilot.press("escape")
            await soon(app, pilot, lambda: not app.desk.unwritten)
            await soon(app, pilot, lambda: "stayed locked by another process" in app.footer.said)
            assert not app._exit
    assert pins(path) == 0


async def test_what_is_let_go_is_named(tmp_path: Path) -> None:
    path = fill(tmp_path / "tune.db", rows=4)
    app = over(path)
    with locked_elsewhere(path):
        async with running(app, (100, 30)) as pilot:
            await asked(app, pilot)
            await pilot.press("d")
            await soon(app, pilot, lambda: app._exit)
    assert app.return_code == FAILED
    (what,) = app.unstored
    assert what.startswith("pinned matmul")
    assert pins(path) == 0
