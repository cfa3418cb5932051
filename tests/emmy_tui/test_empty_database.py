"""A database with a schema and no row: every tab names what fills it, until something does."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from emmy_tui.app import EmmyApp
from emmy_tui.database_source import DatabaseSource
from engine.store import Store
from tests.emmy_tui.looking import application, running, screen_text
from tests.emmy_tui.measured import events, fill, press

SIZES = [(80, 24), (160, 45)]


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < ends
        await asyncio.sleep(0.02)
        await pilot.pause()


def shown(app: EmmyApp) -> str:
    return " ".join(screen_text(app).split())


@pytest.mark.parametrize("size", SIZES)
async def test_every_tab_names_the_commands_that_fill_it(tmp_path: Path, size: tuple[int, int]) -> None:
    path = tmp_path / "my runs.db"
    Store.open(path).close()
    app = application(DatabaseSource(path))
    async with running(app, size) as pilot:
        await until(pilot, lambda: app.view.empty)
        for key in "123456":
            await press(app, pilot, key)
            text = shown(app)
            assert "This database holds no run yet." in text
            for command in ("emmy tune --code TEXT", "emmy import RESULTS"):
                assert command in text
            assert shlex.quote(str(path)).replace(" ", "") in text.replace(" ", "")


async def test_it_goes_away_once_a_run_has_written(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    Store.open(path).close()
    app = application(DatabaseSource(path))
    async with running(app, (100, 30)) as pilot:
        await until(pilot, lambda: app.view.empty)
        fill(path)
        with Store.open(path) as store:
            store.record_events(store.runs()[0].id, events())
        await until(pilot, lambda: bool(app.view.snapshot.kernels))
        app.tick()
        assert "holds no run" not in shown(app)


async def test_a_run_that_found_nothing_is_a_run(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    with Store.open(fill(path)) as store:
        store.record_events(store.runs()[0].id, [one for one in events() if "Kernel" not in type(one).__name__])
    app = application(DatabaseSource(path))
    async with running(app, (100, 30)) as pilot:
        await until(pilot, lambda: not app.view.reading and app.view.state != "idle")
        assert "holds no run" not in shown(app)
