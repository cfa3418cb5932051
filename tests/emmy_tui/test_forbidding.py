"""Forbidding a corner on the Failures tab: asked, kept, listed, undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from emmy_tui.forbidding import CornerChoice, ForbidQuestion
from emmy_tui.look import Look
from engine.store import Store
from tests.emmy_tui.looking import running, screen_text
from tests.emmy_tui.measured import fill, matmul, only_eight_warps_fail, over, press


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return only_eight_warps_fail(fill(tmp_path / "tune.db"))


def corners(path: Path) -> list[tuple[str, str]]:
    with Store.open(path, read_only=True) as store:
        return [(one.kernel_key, one.family) for one in store.forbidden()]


async def test_a_corner_is_forbidden_once_confirmed_listed_and_undone(database: Path) -> None:
    app = over(database)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "3", "F")
        assert isinstance(app.screen, ForbidQuestion)
        assert "measured there" in screen_text(app)
        await press(app, pilot, "escape")
        assert corners(database) == []
        await press(app, pilot, "F", "enter")
        assert corners(database) == [(matmul().key, "contraction")]
        assert "1 forbidden" in screen_text(app)
        assert "U undoes it" in app.footer.said
        await press(app, pilot, "C")
        assert isinstance(app.screen, CornerChoice)
        await press(app, pilot, "a")
        assert corners(database) == []
        await press(app, pilot, "U")
        assert len(corners(database)) == 1
        await press(app, pilot, "U")
        assert corners(database) == []
        await press(app, pilot, "U")
        assert "No forbidding is left to undo" in app.footer.said


async def test_what_is_forbidden_already_is_no_step_to_undo(database: Path) -> None:
    app = over(database)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "3", "F", "enter", "F", "enter")
        assert app.footer.said.startswith("forbidden already: ")
        assert len(corners(database)) == 1
        await press(app, pilot, "U")
        assert corners(database) == []
        await press(app, pilot, "U")
        assert "No forbidding is left to undo" in app.footer.said


async def test_a_whole_family(database: Path) -> None:
    app = over(database)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "3", "F", "f")
        assert corners(database) == [("", "contraction")]
        assert app.failures.list.corners


async def test_reading_only_forbids_nothing(database: Path) -> None:
    app = over(database, Look(read_only=True))
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "3", "F", "U")
        assert not isinstance(app.screen, ForbidQuestion)
        assert "reading only" in app.footer.said
    assert corners(database) == []
