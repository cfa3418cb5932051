"""Focus, cursor, folding and following on the running application, over a scripted source."""

from __future__ import annotations

from engine.events import Logged
from tests.emmy_tui.looking import application, rows, running, screen_text, showing
from tests.emmy_tui.scripted import START, ScriptedSource, search_events

EVENTS = search_events()
RUNNING = EVENTS[: len(EVENTS) // 3]


async def test_tab_and_shift_tab_go_round_the_panels() -> None:
    app = showing(RUNNING)
    async with running(app, (100, 30)) as pilot:
        seen = [app.live.focused_panel()]
        for _ in range(4):
            await pilot.press("tab")
            seen.append(app.live.focused_panel())
        assert seen == ["kernels", "tree", "log", "curve", "kernels"]
        await pilot.press("shift+tab")
        assert app.live.focused_panel() == "curve"


async def test_moving_in_a_list() -> None:
    app = showing(EVENTS)
    async with running(app, (100, 30)) as pilot:
        app.focus_panel("log")
        await pilot.pause()
        log = app.live.log_panel
        last = log.count() - 1
        assert log.following
        for key, place in (
            ("up", last - 1),
            ("k", last - 2),
            ("j", last - 1),
            ("down", last),
            ("g", 0),
            ("pagedown", log._page()),
            ("pageup", 0),
            ("end", last),
            ("home", 0),
            ("up", 0),
            ("G", last),
            ("down", last),
        ):
            await pilot.press(key)
            assert log.cursor == place, key
        assert not log.following
        await pilot.press("f")
        assert log.following


async def test_the_log_stays_where_a_person_looks() -> None:
    source = ScriptedSource(EVENTS)
    app = application(source)
    async with running(app, (100, 30)) as pilot:
        app.focus_panel("log")
        await pilot.press("k", "k")
        event = app.live.log_panel.selected()
        shown = rows(app)[-4:-1]
        source.add(*(Logged(at=START, level="info", text=f"line {n}") for n in range(1200)))
        app.tick()
        await pilot.pause()
        assert app.live.log_panel.selected() is event
        assert rows(app)[-4:-1] == shown


async def test_folding_and_unfolding_nodes() -> None:
    app = showing(EVENTS)
    async with running(app, (120, 40)) as pilot:
        tree = app.live.search_tree
        await pilot.press("tab", "g", "j")
        root = tree.line_key()
        assert root is not None
        assert not tree.following
        lines = len(tree.index)
        for opens, closes in (("right", "left"), ("l", "h"), ("enter", "enter")):
            await pilot.press(opens)
            assert len(tree.index) > lines
            await pilot.press(closes)
            assert len(tree.index) == lines
        await pilot.press("l", "l")
        assert tree.line_key() != root
        await pilot.press("h")
        assert tree.line_key() == root


async def test_untried_siblings_unfold() -> None:
    app = showing(EVENTS[:120])
    async with running(app, (120, 40)) as pilot:
        tree = app.live.search_tree
        place = next(n for n, line in enumerate(tree.index.lines(0, 99)) if line.key.untried)
        hidden = tree.index.lines(place, 1)[0].hidden
        assert f"{hidden} untried (prior ≤" in screen_text(app)
        tree.move_to(place)
        lines = len(tree.index)
        await pilot.press("tab", "enter")
        assert len(tree.index) == lines + hidden
        await pilot.press("left")
        assert len(tree.index) == lines


async def test_follow_goes_along_with_the_run() -> None:
    source = ScriptedSource(EVENTS, per_drain=40)
    app = application(source)
    async with running(app, (120, 40)) as pilot:
        tree = app.live.search_tree
        for _ in range(4):
            app.tick()
        assert tree.following
        key = tree.line_key()
        assert key is not None
        assert tree.index.position(key) == tree.cursor
        await pilot.press("tab", "g")
        assert not tree.following
        for _ in range(10):
            app.tick()
        assert tree.cursor == 0
        await pilot.press("f")
        assert tree.following
        assert tree.cursor != 0
        while source.waiting:
            app.tick()
        await pilot.press("f")
        assert not tree.following


async def test_the_cursor_keeps_its_node_and_height_while_the_tree_grows() -> None:
    source = ScriptedSource(EVENTS[:150])
    app = application(source)
    async with running(app, (120, 40)) as pilot:
        tree = app.live.search_tree
        tree.move_to(next(n for n, line in enumerate(tree.index.lines(0, 99)) if n > 4 and not line.key.untried))
        key, height = tree.line_key(), tree.cursor - tree.top
        source.add(*EVENTS[150:260])
        app.tick()
        await pilot.pause()
        assert tree.line_key() == key
        assert tree.cursor - tree.top == height or tree.top == 0
