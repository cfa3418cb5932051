"""Where the focus is, what shows it, and what becomes of it when panels are hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emmy_tui.looking import running, showing, strips
from tests.emmy_tui.measured import fill, over, press, settled
from tests.emmy_tui.scripted import search_events

EVENTS = search_events()


def framed_as_focused(app: object) -> list[str]:
    """The panels of the front tab whose frames are painted as having the focus."""
    return [
        name
        for name, panel in app.tab.panels.items()  # type: ignore[attr-defined]
        if panel.display and any(tone == "frame-focused" for line in panel._painted for _, tone in line)
    ]


async def test_exactly_the_focused_panel_is_framed_as_such_at_once() -> None:
    app = showing(EVENTS)
    async with running(app, (100, 40)) as pilot:
        for _ in range(5):
            await pilot.press("tab")
            assert framed_as_focused(app) == [app.live.focused_panel()]


async def test_enter_on_a_cluster_shows_the_cursor_in_its_rows(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db"))
    async with running(app) as pilot:
        await press(app, pilot, "3", "enter")
        assert framed_as_focused(app) == ["cluster"]
        styles = {segment.style.bgcolor for strip in strips(app) for segment in strip if segment.style}
        assert app.failures.detail.marked_line() is not None
        assert len(styles) > 1


@pytest.mark.parametrize(("keys", "panel"), [(("1", "tab"), "tree"), (("2",), "variants"), (("3", "tab"), "cluster")])
async def test_the_focus_is_back_after_the_terminal_was_too_small(
    tmp_path: Path, keys: tuple[str, ...], panel: str
) -> None:
    app = over(fill(tmp_path / "tune.db", rows=12), more=EVENTS[:200])
    async with running(app) as pilot:
        await press(app, pilot, *keys)
        assert app.tab.focused_panel() == panel
        for small in ((40, 12), (59, 15), (60, 14), (20, 5), (10, 2)):
            await pilot.resize_terminal(*small)
            await settled(app, pilot)
            await pilot.resize_terminal(80, 24)
            await settled(app, pilot)
            assert app.tab.focused_panel() == panel, small
            before = app.tab.panels[panel].cursor  # type: ignore[attr-defined]
            await press(app, pilot, "down", "up")
            assert app.tab.panels[panel].cursor == before, small  # type: ignore[attr-defined]


async def test_a_followed_tree_and_log_show_where_the_run_is_after_any_resizing() -> None:
    app = showing(EVENTS[: len(EVENTS) // 3])
    async with running(app, (160, 45)) as pilot:
        for size in ((60, 15), (40, 12), (80, 15), (20, 5), (100, 30), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        tree, log = app.live.search_tree, app.live.log_panel
        assert tree.following
        assert log.following
        assert tree.top <= tree.cursor < tree.top + tree._room(tree.inner_size.height)
        assert log.top + log._room(log.inner_size.height) == log.count()
