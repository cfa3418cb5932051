"""The graph of the leading grouping: launches first, and many decisions in one line until they are asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emmy_tui.app import EmmyApp
from emmy_tui.text import plain
from emmy_tui.widgets.plan import Launch
from engine.events import Event, GroupingEntered, KernelFound
from tests.emmy_tui.looking import rows, running, screen_text, showing
from tests.emmy_tui.measured import press
from tests.emmy_tui.scripted import search_events

MANY = tuple(f"NORM_SCALE_{number}=scaled" for number in range(22))


def decided(*decisions: str) -> list[Event]:
    return [replace(one, decisions=decisions) if isinstance(one, GroupingEntered) else one for one in search_events()]


def with_launches(app: EmmyApp) -> None:
    """As the desk answers where a database is behind what is shown."""
    kernel = next(one for one in search_events() if isinstance(one, KernelFound))
    launches = tuple(Launch(kernel.kernel, kernel.label, kernel.shape, (), 2, (2,)) for _ in range(3))
    row = app.view.snapshot.leading_grouping()
    assert row is not None
    app.live.plan_panel._asked = (row.run, row.grouping)
    app.live.plan_panel._found(launches)


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (160, 45)])
async def test_launches_come_first_and_the_decisions_are_unfolded_by_enter(size: tuple[int, int]) -> None:
    app = showing(decided(*MANY))
    async with running(app, size) as pilot:
        await press(app, pilot, "o")
        with_launches(app)
        app.focus_panel("plan")
        await pilot.pause()
        text = screen_text(app)
        shown = [plain(line).split()[0] for line in app.live.plan_panel.rows(0, 4, 76)]
        assert shown == ["1", "2", "3", "decided:"]
        assert "3 launches, 22 decisions" in text
        assert "decided: 22 answers, enter shows all: NORM_SCALE_0=scaled" in text
        await press(app, pilot, "z", "G", "enter", "G")
        assert "NORM_SCALE_21=scaled" in screen_text(app)
        await press(app, pilot, "enter")
        assert "decided: 22 answers" in screen_text(app)
        assert "NORM_SCALE_21=scaled" not in screen_text(app)
        await press(app, pilot, "g", "enter")
        assert app.view.chosen == app.live.plan_panel._launches[0].kernel


async def test_few_decisions_stand_whole() -> None:
    app = showing(decided("FUSE=epilogue"))
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "o")
        with_launches(app)
        await pilot.pause()
        assert "decided: FUSE=epilogue" in screen_text(app)


async def test_the_trees_title_cuts_the_name_before_what_f_changes() -> None:
    long = "3 matmuls+mul+mean+add+rsqrt+mul+mul+silu+mul 512x4096x1024"
    events = [replace(one, label=long) if isinstance(one, KernelFound) else one for one in search_events()]
    app = showing(events)
    async with running(app, (80, 24)) as pilot:
        app.focus_panel("tree")
        await pilot.pause()
        for word in ("on", "off"):
            title = next(line for line in rows(app) if "Tree" in line or "Search tree" in line)
            assert "3 matmuls" in title
            assert f"follow {word}" in title
            assert "patience" in title
            await press(app, pilot, "f")
