"""Every key of the Failures tab, over a real database."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from emmy_tui.dialogs import Reading
from engine.store import Store
from tests.emmy_tui.looking import rows, running, screen_text
from tests.emmy_tui.measured import fill, only_eight_warps_fail, over, press


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db")


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_clusters_and_the_one_under_the_cursor(database: Path, size: tuple[int, int]) -> None:
    app = over(database)
    async with running(app, size) as pilot:
        await press(app, pilot, "3")
        text = " ".join(screen_text(app).split())
        for words in ("8 rows in 1 cluster", "they share", "out of resource: shared memory", "Required: <n>"):
            assert words in text
        assert "Required: 262150" in text
        assert "[-Wfoo=1]" in text


async def test_enter_leads_to_the_rows_and_opens_one(database: Path) -> None:
    app = over(database)
    async with running(app, (160, 45)) as pilot:
        await press(app, pilot, "3", "enter")
        assert app.failures.focused_panel() == "cluster"
        await press(app, pilot, "j", "enter")
        assert isinstance(app.screen, Reading)
        text = screen_text(app)
        assert "Required: 262157" in text
        assert "@triton.jit" in text
        await press(app, pilot, "escape", "g", "enter")
        assert not isinstance(app.screen, Reading)
        await press(app, pilot, "tab")
        assert app.failures.focused_panel() == "clusters"


@pytest.mark.parametrize("zoomed", [False, True])
async def test_escape_leads_back_from_the_rows_to_the_clusters(database: Path, zoomed: bool) -> None:
    app = over(database)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "3", *(["z"] if zoomed else []), "enter")
        assert app.failures.focused_panel() == "cluster"
        assert "esc Clusters" in screen_text(app)
        await press(app, pilot, "escape")
        assert app.failures.focused_panel() == "clusters"
        assert app.failures.list.display
        await press(app, pilot, "escape")
        assert app.failures.focused_panel() == "clusters"


async def test_zoom_and_open_from_there(database: Path) -> None:
    app = over(database)
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "3", "z")
        assert not app.failures.detail.display
        await press(app, pilot, "enter")
        assert app.failures.detail.display
        assert not app.failures.list.display
        await press(app, pilot, "z")
        assert app.failures.list.display


async def test_exporting(database: Path) -> None:
    app = over(database)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "3", "e", "j")
    (file,) = (database.parent / "out").glob("emmy-failures-*.json")
    assert json.loads(file.read_text())[0]["count"] == 8


async def test_nothing_failed(database: Path) -> None:
    with Store.open(database) as store:
        store._connection.db.conn.execute("DELETE FROM measurement WHERE status = 'failed'")
    app = over(database)
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "3", "enter", "e")
        assert "No candidate failed" in screen_text(app)


async def test_what_shares_nothing_is_not_offered_to_be_forbidden(database: Path) -> None:
    app = over(only_eight_warps_fail(database))
    async with running(app, (160, 45)) as pilot:
        await press(app, pilot, "3")
        assert "F Forbid" in rows(app)[-1]
        app.failures.list.show([replace(one, shared=()) for one in app.failures.list.clusters])
        await press(app, pilot, "F")
        assert "F Forbid" not in rows(app)[-1]
        assert "sets these failures apart from what worked, so there is no corner to forbid" in app.footer.said
