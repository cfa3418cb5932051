"""Kernels and runs are found by typing in the palette."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from textual.command import CommandList
from textual.pilot import Pilot

from emmy_tui.action import LIVE, VARIANTS
from emmy_tui.actions import BY_NAME
from emmy_tui.app import EmmyApp
from emmy_tui.database_source import DatabaseSource
from emmy_tui.palette import Commands, Findings, has_words
from emmy_tui.pressing import palette_title
from emmy_tui.run_source import RunSource
from emmy_tui.source import Mode
from tests.emmy_tui.looking import application, running, screen_text, showing
from tests.emmy_tui.measured import fill, over, press, settled, type_text
from tests.emmy_tui.recorded import record
from tests.emmy_tui.scripted import search_events
from tests.emmy_tui.two_runs import record_runs


async def search(app: EmmyApp, pilot: Pilot[None], text: str, found: str) -> None:
    """Type into the palette, wait for a line, and take the first one."""
    await pilot.press("ctrl+p")
    await settled(app, pilot)
    await type_text(app, pilot, text)
    for _ in range(200):
        if found in screen_text(app) and app.screen.query_one(CommandList).option_count:
            break
        await asyncio.sleep(0.02)
        await pilot.pause()
    assert found in screen_text(app)
    await press(app, pilot, "enter")
    for _ in range(100):
        await settled(app, pilot)
        if len(app.screen_stack) == 1:
            return


async def test_a_kernel_is_jumped_to_by_its_name() -> None:
    app = showing(search_events(), capabilities=())
    async with running(app) as pilot:
        await press(app, pilot, "3")
        await search(app, pilot, "kernelsoftmax", "Kernel: softmax 16384x4096")
        assert app.view.tab == LIVE
        assert app.view.kernel is not None
        assert app.view.kernel.label == "softmax"
        current = app.live.kernel_panel.current()
        assert current is not None
        assert current.label == "softmax"
        assert app.tab.focused_panel() == "kernels"


async def test_the_variants_of_a_kernel_are_jumped_to(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=3))
    async with running(app) as pilot:
        await search(app, pilot, "variantsrelu", "Variants: relu")
        assert app.view.tab == VARIANTS
        assert "Variants relu" in screen_text(app)


async def reads(app: EmmyApp, pilot: Pilot[None], done: Any) -> None:
    for _ in range(300):
        app.tick()
        await settled(app, pilot)
        if done():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(screen_text(app))


async def test_an_older_run_is_loaded_and_left(tmp_path: Path) -> None:
    path = record_runs(tmp_path / "two.db")
    app = application(None)
    source = DatabaseSource(path)
    app.attach(source)
    async with running(app) as pilot:
        await reads(app, pilot, lambda: not source.reading)
        await search(app, pilot, "loadrun", "Load run: ")
        await reads(app, pilot, lambda: isinstance(app.source, RunSource) and not app.source.reading)
        assert app.view.mode is Mode.BROWSE
        assert app.now.returns
        await press(app, pilot, "backspace")
        assert app.source is source
        source.close()


async def test_what_does_not_work_now_comes_last() -> None:
    app = showing(search_events(), capabilities=())
    async with running(app) as pilot:
        await pilot.pause()
        provider = Commands(app.screen)
        listed = [hit.help or "" async for hit in provider.discover()]
        works = [not help_.startswith("Not now") for help_ in listed]
        assert works == sorted(works, reverse=True)
        assert {True, False} == set(works)
        hits = [hit async for hit in provider.search("s")]
        words = [hit for hit in hits if has_words("s", hit.text or "")]
        for alike in (words, [hit for hit in hits if hit not in words]):
            scores = [hit.score for hit in alike if not (hit.help or "").startswith("Not now")]
            assert all(hit.score < min(scores) for hit in alike if (hit.help or "").startswith("Not now"))


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        *(
            ("pareto", "pareto"),
            ("quit", "leave"),
            ("exit", "leave"),
            ("theme", "toggle_theme"),
            ("dark", "toggle_theme"),
        ),
        *(("light", "toggle_theme"), ("help", "help"), ("keys", "help"), ("search", "filter"), ("filter", "filter")),
        *(("find", "filter"), ("copy", "copy_knobs"), ("yank", "copy_knobs"), ("export", "export"), ("save", "export")),
        *(("pause", "pause"), ("stop", "stop"), ("screenshot", "picture"), ("sort", "sort"), ("order", "sort")),
    ],
)
async def test_an_action_is_found_by_the_words_that_people_type(typed: str, name: str) -> None:
    app = showing(search_events(), capabilities=())
    async with running(app) as pilot:
        await pilot.pause()
        hits = sorted([hit async for hit in Commands(app.screen).search(typed)], key=lambda hit: -hit.score)
        assert palette_title(BY_NAME[name]) in [str(hit.match_display) for hit in hits[:6]]


def test_words_are_the_beginnings_of_words() -> None:
    assert has_words("export", "Export rows  e")
    assert has_words("load run", "Load run: 3f2a")
    assert has_words("kernelsoft", "Kernel: softmax 16384x4096")
    assert not has_words("export", "Load run: every xylophone plays or talks")
    assert not has_words("port", "Export")
    assert not has_words("?", "Help  ?")


@pytest.mark.parametrize("query", ["export", "undo", "forbid", "import", "pin"])
async def test_an_action_by_its_name_comes_before_a_run_with_its_letters(query: str, tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    record(path, [], target=" ".join(f"{letter}..." for letter in query))
    app = application(None)
    source = DatabaseSource(path)
    app.attach(source)
    async with running(app) as pilot:
        await reads(app, pilot, lambda: not source.reading)
        found = Findings(app.screen)
        asked = asyncio.create_task(found.startup())
        await settled(app, pilot)
        await asked
        runs = [hit async for hit in found.search(query)]
        actions = [hit async for hit in Commands(app.screen).search(query)]
        best = max(actions, key=lambda hit: hit.score)
        assert runs
        assert max(hit.score for hit in runs) < best.score
        assert query in (best.text or "").casefold()
        source.close()
