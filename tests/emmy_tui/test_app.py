"""Every key on the running application, over a scripted source."""

from __future__ import annotations

import sys

import pytest
from textual.command import CommandPalette

from emmy_tui.desk import TURN_S
from emmy_tui.dialogs import Leave
from emmy_tui.help import Help
from emmy_tui.look import Look
from emmy_tui.source import Anew, Mode
from emmy_tui.tree_index import Key
from emmy_tui.verbs import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK
from engine.events import NodeVisited, RunState, StateChanged
from engine.snapshot import apply
from tests.emmy_tui.looking import application, rows, running, screen_text, showing
from tests.emmy_tui.scripted import START, ScriptedSource, failed_events, search_events

EVENTS = search_events()
RUNNING = EVENTS[: len(EVENTS) // 3]


async def test_the_first_frame_shows_the_run() -> None:
    app = showing(RUNNING)
    async with running(app, (160, 45)) as pilot:
        await pilot.pause()
        text = screen_text(app)
        for words in ("LIVE", "running", "NVIDIA H200", "0/5 kernels", "00:01:30", "Search tree matmul", "Selected"):
            assert words in text
        assert f"measured {app.view.snapshot.measured}  cached 0" in text
        assert app.focused is app.live.kernel_panel


async def test_a_thread_beside_the_screen_gives_way_soon() -> None:
    before = sys.getswitchinterval()
    try:
        async with running(showing(EVENTS)):
            assert sys.getswitchinterval() == pytest.approx(TURN_S)
    finally:
        sys.setswitchinterval(before)


async def test_q_leaves_when_nothing_runs() -> None:
    app = showing(EVENTS, capabilities=("start",))
    async with running(app) as pilot:
        await pilot.press("q")
    assert app.return_code == EXIT_OK


@pytest.mark.parametrize(("key", "stopped"), [("enter", True), ("y", True), ("escape", False), ("q", False)])
async def test_q_asks_while_a_run_is_on(key: str, stopped: bool) -> None:
    source = ScriptedSource(RUNNING)
    app = application(source)
    async with running(app) as pilot:
        await pilot.press("q")
        assert isinstance(app.screen, Leave)
        await pilot.press(key)
        assert not isinstance(app.screen, Leave)
        assert source.asked == (["stop"] if stopped else [])
        assert app.is_running
        if stopped:
            assert "stopping 0s, ^c exits now" in screen_text(app)
            source.stopped()
            app.tick()
            await pilot.pause()
    assert app.return_code == (EXIT_OK if stopped else None)


async def test_ctrl_c_stops_first_and_leaves_next() -> None:
    source = ScriptedSource(RUNNING)
    app = application(source)
    async with running(app) as pilot:
        await pilot.press("ctrl+c")
        assert source.asked == ["stop"]
        assert app.is_running
        await pilot.press("ctrl+c")
    assert source.asked == ["stop", "abort"]
    assert app.return_code == EXIT_INTERRUPTED


async def test_ctrl_c_leaves_at_once_without_a_run_and_in_a_dialog() -> None:
    app = showing(EVENTS, capabilities=("start",))
    async with running(app) as pilot:
        await pilot.press("question_mark", "ctrl+c")
    assert app.return_code == EXIT_OK


async def test_ctrl_c_stops_from_within_the_question() -> None:
    source = ScriptedSource(RUNNING)
    app = application(source)
    async with running(app) as pilot:
        await pilot.press("q", "ctrl+c", "ctrl+c")
    assert source.asked == ["stop", "abort"]


async def test_pause_resume_stop_start() -> None:
    source = ScriptedSource(RUNNING)
    app = application(source)
    async with running(app) as pilot:
        await pilot.press("P")
        app.tick()
        await pilot.pause()
        assert "PAUSED" in screen_text(app)
        assert "P Resume" in rows(app)[-1]
        await pilot.press("P", "X")
        source.stopped()
        app.tick()
        await pilot.pause()
        assert "R Start" in rows(app)[-1]
        assert "X Stop" not in rows(app)[-1]
        await pilot.press("X", "P", "R")
    assert source.asked == ["pause", "resume", "stop", "start"]


async def test_freezing_holds_the_view_and_thawing_catches_up() -> None:
    source = ScriptedSource(RUNNING)
    app = application(source)
    async with running(app) as pilot:
        await pilot.press("space")
        source.add(*EVENTS[len(RUNNING) :])
        app.tick()
        await pilot.pause()
        assert f"FROZEN +{len(EVENTS) - len(RUNNING)}" in screen_text(app)
        assert "0/5 kernels" in screen_text(app)
        await pilot.press("space")
        await pilot.pause()
        assert "FROZEN" not in screen_text(app)
        assert "5/5 kernels" in screen_text(app)


async def test_a_new_run_replaces_what_was_shown() -> None:
    source = ScriptedSource(EVENTS)
    app = application(source)
    async with running(app) as pilot:
        await pilot.pause()
        source.add(Anew(at=START), *failed_events())
        app.tick()
        await pilot.pause()
        text = screen_text(app)
        assert "matmul" not in text
        assert "rope" in text


async def test_help_opens_lists_keys_and_closes() -> None:
    app = showing(RUNNING)
    async with running(app, (100, 30)) as pilot:
        await pilot.press("question_mark")
        assert isinstance(app.screen, Help)
        assert "Pause the engine after this candidate" in screen_text(app)
        await pilot.press("G")
        assert "Dark, light, or the terminal's own colours" in screen_text(app)
        await pilot.press("escape")
        assert not isinstance(app.screen, Help)
        await pilot.press("f1", "q")
        assert not isinstance(app.screen, Help)


async def test_the_palette_runs_an_action() -> None:
    source = ScriptedSource(RUNNING)
    app = application(source)
    async with running(app) as pilot:
        await pilot.press("ctrl+p")
        assert isinstance(app.screen, CommandPalette)
        await pilot.press(*"pause")
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        await pilot.press("enter")
        await pilot.pause()
    assert source.asked == ["pause"]


async def test_choosing_a_kernel() -> None:
    app = showing(EVENTS)
    async with running(app, (120, 40)) as pilot:
        await pilot.press("right_square_bracket")
        assert app.view.chosen == "5f1c"
        await pilot.press("left_square_bracket", "left_square_bracket")
        assert app.view.chosen == "c03e"
        assert "Best vs trial · softmax" in screen_text(app)
        app.focus_panel("kernels")
        await pilot.press("g", "j", "enter")
        assert app.view.chosen == "9ab0"
        assert "Tree linear_g" in screen_text(app)
        tree = app.live.search_tree
        assert tree.line_key() == Key(tree.kernel_root())


async def test_curve_keys() -> None:
    app = showing(RUNNING)
    async with running(app, (120, 40)) as pilot:
        assert "log y" in screen_text(app)
        assert "trials (t)" in screen_text(app)
        await pilot.press("L", "t")
        assert "linear y" in screen_text(app)
        assert "time (t)" in screen_text(app)


async def test_zoom_gives_the_focused_panel_all_of_it_and_back() -> None:
    app = showing(RUNNING)
    async with running(app, (120, 40)) as pilot:
        for panel in ("kernels", "curve", "tree", "log"):
            app.focus_panel(panel)
            await pilot.pause()
            await pilot.press("z")
            await pilot.pause()
            assert app.live.panels[panel].size == (120, 37)
            assert sum(shown.display for shown in app.live.panels.values()) == 1
            await pilot.press("z")
            await pilot.pause()
        hidden = {name for name, panel in app.live.panels.items() if not panel.display}
        assert hidden == {"plan", "health"}, "they take the tree's place when they are asked for"


async def test_v_flips_the_shared_place() -> None:
    app = showing(RUNNING)
    async with running(app, (70, 24)) as pilot:
        await pilot.pause()
        assert "Kernels" in screen_text(app)
        await pilot.press("v")
        await pilot.pause()
        assert "Best vs trial" in screen_text(app)
        assert app.live.focused_panel() == "curve"
        await pilot.press("v")
        await pilot.pause()
        assert app.live.focused_panel() == "kernels"


async def test_theme_and_mouse() -> None:
    app = showing(EVENTS)
    async with running(app, (120, 40)) as pilot:
        await pilot.press("T")
        assert not app.current_theme.dark
        await pilot.click("#kernels", offset=(5, 3))
        assert app.live.kernel_panel.cursor == 1
        await pilot.click("#kernels", offset=(5, 4), times=2)
        assert app.view.chosen == "77d2"


async def test_browsing_offers_no_steering() -> None:
    source = ScriptedSource(EVENTS, mode=Mode.BROWSE, capabilities=())
    app = application(source, Look(read_only=True))
    async with running(app) as pilot:
        await pilot.press("P", "R", "X")
        text = screen_text(app)
        assert "BROWSE" in text
        assert "RO" in rows(app)[0]
        assert "Pause" not in rows(app)[-1]
        await pilot.press("q")
    assert source.asked == []
    assert app.return_code == EXIT_OK


async def test_the_start_screen_says_the_ways_in_and_d_opens_the_demo() -> None:
    opened: list[ScriptedSource] = []

    def demo() -> ScriptedSource:
        opened.append(ScriptedSource(RUNNING, mode=Mode.REPLAY))
        return opened[-1]

    app = application(None, demo=demo)
    async with running(app) as pilot:
        await pilot.pause()
        text = screen_text(app)
        assert all(way in text for way in ("--demo", "FILE.db", "--code TEXT"))
        assert "Pause" not in rows(app)[-1]
        await pilot.press("space", "z", "f", "d")
        await pilot.pause()
        assert len(opened) == 1
        assert "REPLAY" in screen_text(app)
        assert "Search tree" in screen_text(app)
        await pilot.press("d")
        assert len(opened) == 1


async def test_a_failed_run_says_its_sentence() -> None:
    source = ScriptedSource(capabilities=("start",))
    app = application(source)
    async with running(app) as pilot:
        reason = "no GPU was found: open a database, or replay with --demo"
        source.add(StateChanged(at=START, state=RunState.FAILED, reason=reason))
        app.tick()
        await pilot.pause()
        assert "FAILED" in rows(app)[0]
        assert reason in screen_text(app)
        await pilot.press("q")
    assert app.return_code == EXIT_FAILED


async def test_an_exception_in_the_screen_ends_it_with_a_sentence() -> None:
    app = showing(RUNNING)

    def broken() -> None:
        raise RuntimeError("broken on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):  # noqa: PT012
        async with running(app) as pilot:
            app.call_later(broken)
            await pilot.pause()
    assert app.crash == "RuntimeError: broken on purpose"
    assert app.return_code == 1


async def test_an_equal_snapshot_repaints_nothing() -> None:
    """What is painted again is what differs: one visit count changes cells of one tree line only."""
    source = ScriptedSource(RUNNING)
    app = application(source)
    async with running(app, (120, 40)) as pilot:
        await pilot.pause()
        tree = app.live.search_tree
        tree._exchange_repaint_regions()
        tree.repaint()
        assert not tree._exchange_repaint_regions()
        key = tree.line_key()
        assert key is not None
        apply(app.view.snapshot, NodeVisited(at=START, node=key.node, visits=99, best_us=1.0, state="measured"))
        tree.repaint()
        regions = list(tree._exchange_repaint_regions())
        assert regions
        assert all(region.height == 1 and region.x > 0 for region in regions)
