"""Pins made and taken away in the application, over a real database, with the keys that a person presses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from emmy_tui.app import EmmyApp
from emmy_tui.database_source import DatabaseSource
from engine.store import Candidate
from engine.vocabulary import Schedule
from tests.emmy_tui.looking import running, screen_text
from tests.emmy_tui.measured import press, settled, type_text

SIZE = (160, 45)
NOTE = "round-trip"
PIN_MARK = "⚑"
ROWS_LOOKED_AT = 600
READ_LIMIT, STILL = 1200, 20

Wanted = Callable[[Candidate], bool]


@asynccontextmanager
async def variants_of(database: Path, kernel_key: str) -> AsyncIterator[tuple[EmmyApp, Pilot[None]]]:
    """The application as `emmy-tui DB` opens it, at the kernel's Variants."""
    source = DatabaseSource(database)
    app = EmmyApp(source)
    try:
        async with running(app, SIZE) as pilot:
            await _read(app, pilot, kernel_key)
            await press(app, pilot, "2")
            for _ in range(len(app.view.snapshot.kernels)):
                if _shown(app) == kernel_key:
                    break
                await press(app, pilot, "right_square_bracket")
            assert _shown(app) == kernel_key
            yield app, pilot
    finally:
        source.close()


async def _read(app: EmmyApp, pilot: Pilot[None], kernel_key: str) -> None:
    """Wait until the kernel is known and nothing more has come for a while."""
    still, before = 0, -1
    for _ in range(READ_LIMIT):
        await pilot.pause()
        app.tick()
        versions = sum(app.view.snapshot.versions.values())
        still = still + 1 if versions == before and kernel_key in app.view.snapshot.kernels else 0
        if still == STILL:
            return
        before = versions
        await asyncio.sleep(0.05)
    raise AssertionError(f"the database shows no kernel {kernel_key} that has come to rest")


def _shown(app: EmmyApp) -> str:
    row = app.variants.kernel_here()
    return row.kernel if row is not None else ""


async def _go_to(app: EmmyApp, pilot: Pilot[None], wanted: Wanted) -> Candidate:
    """Down the list, fastest first, to the first row that is wanted."""
    for _ in range(min(app.variants.list.count(), ROWS_LOOKED_AT)):
        row = app.variants.list.current_row()
        if row is not None and wanted(row):
            return row
        await press(app, pilot, "j")
    raise AssertionError(f"none of {app.variants.list.count()} rows is wanted")


async def _pin(database: Path, kernel_key: str, wanted: Wanted) -> Schedule:
    async with variants_of(database, kernel_key) as (app, pilot):
        row = await _go_to(app, pilot, wanted)
        assert not row.pinned
        await press(app, pilot, "p")
        await type_text(app, pilot, NOTE)
        await press(app, pilot, "enter")
        await settled(app, pilot)
        assert PIN_MARK in screen_text(app)
        return Schedule.of(row.schedule)


async def _unpin(database: Path, kernel_key: str) -> None:
    async with variants_of(database, kernel_key) as (app, pilot):
        await _go_to(app, pilot, lambda row: row.pinned)
        assert PIN_MARK in screen_text(app)
        await press(app, pilot, "u")
        await settled(app, pilot)
        assert PIN_MARK not in screen_text(app)


def pin_with_keys(database: Path, kernel_key: str, wanted: Wanted) -> Schedule:
    """Pin the fastest row of a kernel that is wanted, with p and a note; the schedule of that row."""
    return asyncio.run(_pin(database, kernel_key, wanted))


def unpin_with_keys(database: Path, kernel_key: str) -> None:
    """Go to the kernel's pinned row and press u."""
    asyncio.run(_unpin(database, kernel_key))
