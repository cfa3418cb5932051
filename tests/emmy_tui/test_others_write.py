"""What other processes do to the database, or have left in it, while a screen shows it."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from textual.pilot import Pilot

from emmy_tui.app import EmmyApp
from emmy_tui.database_source import DatabaseSource
from emmy_tui.look import Look
from emmy_tui.tabs.compare import RunChoice
from engine.events import RunStarted
from engine.store import Store
from engine.vocabulary import Schedule
from tests.emmy_tui.looking import application, running, screen_text
from tests.emmy_tui.measured import events, fill, over, press, settled, type_text
from tests.emmy_tui.recorded import record

WIDE = (160, 45)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db")


async def test_a_pin_that_another_screen_sets_or_takes_away_is_seen(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2")
        await seen_soon(app, pilot, lambda: app.variants.list.count() > 0)
        row = app.variants.list.current_row()
        assert row is not None
        for pinned in (True, False, True):
            with Store.open(database) as elsewhere:
                if pinned:
                    elsewhere.record_pin(row.kernel, Schedule.of(row.schedule), row.context, author="bo")
                else:
                    elsewhere.unpin(row.kernel, row.context)
            await seen_soon(app, pilot, lambda pinned=pinned: ("⚑" in screen_text(app)) == pinned)


@pytest.mark.parametrize("content", [b"", b"no database", "foreign"])
async def test_a_file_that_can_not_be_compared_with_takes_nothing_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | str
) -> None:
    monkeypatch.chdir(tmp_path)
    app = over(fill_twice(tmp_path / "tune.db"))
    if isinstance(content, bytes):
        (tmp_path / "bad.db").write_bytes(content)
    else:
        with closing(sqlite3.connect(tmp_path / "bad.db")) as other:
            other.execute("CREATE TABLE customers (name TEXT)")
            other.commit()
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "5")
        before = app.compare.list.comparison
        assert before is not None
        await press(app, pilot, "o")
        await type_text(app, pilot, "bad.db")
        await press(app, pilot, "enter")
        assert "bad.db" in app.footer.said
        assert "creates" not in app.footer.said
        assert app.compare.list.comparison is before
        assert app.compare.choice.other is None
        await press(app, pilot, "a")
        assert isinstance(app.screen, RunChoice)


async def test_a_screen_that_looks_on_keeps_what_every_writer_wrote(tmp_path: Path) -> None:
    """Writers of other processes end while it browses and pins; it follows them, and no row is lost."""
    path = told(tmp_path / "tune.db")
    source = DatabaseSource(path)
    app = application(source, Look())
    async with running(app, WIDE) as pilot:
        await seen_soon(app, pilot, lambda: bool(app.view.snapshot.kernels) and not app.view.reading)
        await press(app, pilot, "2")
        await seen_soon(app, pilot, lambda: app.variants.list.count() > 0)
        for number in range(2):
            await press(app, pilot, "p", "enter")
            assert "pinned" in app.footer.said
            await asyncio.to_thread(write_elsewhere, path, number)
            assert path.with_name(f"{path.name}-wal").exists()
            await seen_soon(app, pilot, lambda number=number: shown_target(app) == f"run {number}")
            await press(app, pilot, "I" if number % 2 else "y")
            await press(app, pilot, "escape", "down")
    source.close()
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert plain.execute("SELECT count(*) FROM run WHERE target LIKE 'run %'").fetchone() == (2,)
        assert plain.execute("SELECT count(*) FROM forbidden").fetchone() == (2,)
        assert plain.execute("SELECT count(*) FROM pin").fetchone() == (2,)


def shown_target(app: EmmyApp) -> str:
    run = app.view.snapshot.run
    return run.target if run is not None else ""


def write_elsewhere(path: Path, number: int) -> None:
    """Another process runs, forbids something, and ends."""
    program = (
        "import sys; from pathlib import Path; from engine.store import Store\n"
        "from tests.emmy_tui.recorded import record\n"
        "record(Path(sys.argv[1]), [], target=f'run {sys.argv[2]}', ended=False)\n"
        "with Store.open(sys.argv[1], create=False) as store:\n"
        "    store.forbid({'NUM_WARPS': int(sys.argv[2])}, family='contraction', author='there')"
    )
    subprocess.run([sys.executable, "-c", program, str(path), str(number)], check=True, cwd=Path(__file__).parents[2])


async def test_what_was_read_stays_where_the_file_is_gone_or_emptied(tmp_path: Path) -> None:
    path = told(tmp_path / "tune.db")
    whole = tmp_path / "whole.db"
    shutil.copy(path, whole)
    source = DatabaseSource(path)
    app = application(source, Look())
    async with running(app, WIDE) as pilot:
        await seen_soon(app, pilot, lambda: bool(app.view.snapshot.kernels) and not app.view.reading)
        kernels = list(app.view.snapshot.kernels)
        shutil.move(path, tmp_path / "away.db")
        await seen_soon(app, pilot, lambda: "FILE GONE" in screen_text(app))
        assert list(app.view.snapshot.kernels) == kernels
        path.write_bytes(b"")
        await seen_soon(app, pilot, lambda: "is empty" in screen_text(app))
        assert "CAN'T READ" in screen_text(app)
        assert "FAILED" not in screen_text(app)
        assert list(app.view.snapshot.kernels) == kernels
        subprocess.run(["cp", whole, path], check=True)
        await seen_soon(app, pilot, lambda: "CAN'T READ" not in screen_text(app))
        await seen_soon(app, pilot, lambda: list(app.view.snapshot.kernels) == kernels)
        assert "is empty" not in screen_text(app)
    source.close()


def told(path: Path) -> Path:
    """With a run that says what was found."""
    record(fill(path), [event for event in events() if not isinstance(event, RunStarted)])
    return path


def fill_twice(path: Path) -> Path:
    """Two runs of one target."""
    record(fill(path), [], target="again")
    record(path, [], target="again")
    return path


async def seen_soon(app: EmmyApp, pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Wait for what another process did to be on the screen."""
    ends = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < ends
        await asyncio.sleep(0.05)
        app.tick()
        await settled(app, pilot)


@pytest.mark.parametrize(
    ("command", "copied"),
    [
        ("emmy tune\nrm x", "emmy tune rm x\n"),
        ("emmy tune 'a\x1b[31m'", "emmy tune $'a\\U0000001b[31m'\n"),
        ("emmy tune 'a\n", ""),
    ],
)
async def test_a_command_of_somebody_elses_database_is_copied_in_one_line(
    database: Path, command: str, copied: str
) -> None:
    with closing(sqlite3.connect(database)) as other:
        other.execute("UPDATE run SET command = ?", (command,))
        other.commit()
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2", "Y")
        file = database.parent / "copied.txt"
        assert (file.read_text() if file.exists() else "") == copied
        assert copied or "not copied" in app.footer.said
