"""A database that somebody edited opens on every tab, or says in a sentence what is wrong with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from emmy_tui.database_source import DatabaseSource
from emmy_tui.main import main
from tests.cli.hostile import edit, fill
from tests.emmy_tui.looking import application, running, screen_text
from tests.emmy_tui.measured import settled

EDITS = (
    ("kernel", "body", "x" * 10_000_000),
    ("kernel", "label", "x\x1b[2J'\"\n"),
    ("measurement", "measured_at", "{}"),
    ("measurement", "median_us", "NaN"),
    ("measurement", "registers", "many"),
    ("measurement", "schedule", '{"BLOCK_M": [1]}'),
    ("event", "body", '{"kernel": -4}'),
    ("node", "depth", "deep"),
    ("pin", "schedule", "[" * 5000),
    ("run", "started_at", "yesterday"),
    ("run", "summary", '{"us": []}'),
    ("grouping", "plan", "null"),
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("hostile") / "base.db")


@pytest.mark.parametrize(("table", "column", "value"), EDITS, ids=[f"{edit[0]}.{edit[1]}" for edit in EDITS])
@pytest.mark.slow
async def test_every_tab_opens(base: Path, tmp_path: Path, table: str, column: str, value: str) -> None:
    path = Path(shutil.copy(base, tmp_path / "e.db"))
    edit(path, table, column, 1, value)
    app = application(DatabaseSource(path))
    async with running(app) as pilot:
        for key in ("1", "down", "2", "down", "3", "4", "5", "6", "7"):
            await pilot.press(key)
            await settled(app, pilot)
            assert "internal error" not in screen_text(app)


@pytest.mark.parametrize(("table", "column", "value"), EDITS, ids=[f"{edit[0]}.{edit[1]}" for edit in EDITS])
def test_one_frame_or_one_sentence(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str, column: str, value: str
) -> None:
    path = Path(shutil.copy(base, tmp_path / "e.db"))
    edit(path, table, column, 1, value)
    try:
        code = main([str(path), "--once"])
    except SystemExit as left:
        code = left.code
    said = capsys.readouterr()
    assert code in (0, 1, 2, None)
    assert "Traceback" not in said.err
    assert "internal error" not in said.err
    assert said.out if not code else said.err.count("\n") == 1
