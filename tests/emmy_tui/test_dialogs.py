"""Dialogs over the screen: their lines follow its size, and the last line of the screen stays in sight."""

from __future__ import annotations

from pathlib import Path

import pytest

from emmy_tui.dialogs import Reading, TextPanel
from emmy_tui.text import Line, Tone
from tests.emmy_tui.looking import rows, running, screen_text
from tests.emmy_tui.measured import fill, over, press, settled


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db")


@pytest.mark.parametrize("keys", [("2", "enter"), ("3", "enter", "enter"), ("2", "b", "j", "b"), ("question_mark",)])
async def test_what_is_read_is_wrapped_anew_for_another_size(database: Path, keys: tuple[str, ...]) -> None:
    app = over(database)
    async with running(app, (120, 40)) as pilot:
        await press(app, pilot, *keys)
        for width in (60, 120, 80):
            await pilot.resize_terminal(width, 30)
            await settled(app, pilot)
            panel = app.screen.query_one(TextPanel)
            assert panel.size.width <= width
            described = [row for row in rows(app) if "│" in row]
            assert described
            assert not [row for row in described if "…│" in row and "BLOCK_M" not in row]


async def test_what_was_being_read_stays_in_sight() -> None:
    made: list[int] = []

    def lines(width: int) -> list[Line]:
        made.append(width)
        rows = 400 if width < 70 else 200
        return [[(f"line {number * 200 // rows} of 200", Tone.PLAIN)] for number in range(rows)]

    app = over(Path("none.db"))
    async with running(app, (100, 30)) as pilot:
        app.push_screen(Reading(app.view, lines, "Long"))
        await pilot.pause()
        await pilot.press(*["pagedown"] * 4)
        first = app.screen.query_one(TextPanel).top
        await pilot.resize_terminal(60, 30)
        await pilot.pause()
        await pilot.pause()
        assert (made[0], made[-1]) == (94, 54)
        assert f"line {first} of 200" in screen_text(app)


@pytest.mark.parametrize("size", [(100, 30), (60, 15), (80, 24)])
async def test_a_dialog_leaves_the_key_that_closes_it_in_sight(database: Path, size: tuple[int, int]) -> None:
    app = over(database)
    async with running(app, size) as pilot:
        await press(app, pilot, "2", "enter")
        assert rows(app)[-1].startswith("esc Close")
