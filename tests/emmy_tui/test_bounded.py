"""The Live tab over a run with a grouping that can't win: it is marked so, and its kernels are no rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from emmy_tui.database_source import DatabaseSource
from engine.store import Store
from tests.emmy_tui.looking import application, running, screen_text
from tests.tune.test_bounding import SLOW_MEMORY, near_the_floor, tuned


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bounded")
    tuned(near_the_floor(SLOW_MEMORY), folder)
    return folder / "t.db"


async def test_the_run_is_whole_without_the_kernels_that_were_not_tuned(database: Path) -> None:
    with Store.open(database, read_only=True) as store:
        first, other = (row.grouping for row in store.recorded_groupings(store.runs()[0].id))
    app = application(DatabaseSource(database))
    async with running(app, (170, 50)) as pilot:
        while "1/1 kernels" not in screen_text(app):
            await pilot.pause(0.05)
        snapshot = app.view.snapshot
        assert set(snapshot.kernels) == set(first.kernel_counts())
        assert not set(snapshot.kernels) & set(other.kernel_counts())
        text = screen_text(app)
        assert "grouping not tuned  can't win: its kernels take" in text
        assert "2 groupings entered, 0 failed, 1 that can't win" in text
        bounded = next(node for node in snapshot.nodes.values() if node.state == "bounded")
        app.live.search_tree.index.open(bounded.parent)
        app.live.search_tree.top = 0
        app.live.search_tree.repaint()
        await pilot.pause()
        assert "can't win" in next(line for line in screen_text(app).splitlines() if "FUSE_EPILOGUE_0=apart" in line)
