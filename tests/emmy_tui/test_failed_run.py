"""A run that fails: its sentence is read in full, on the screen and in the result; and how a new run begins."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from emmy_tui.notice import failure_lines
from emmy_tui.source import Anew, Mode
from emmy_tui.text import plain
from emmy_tui.verbs import EXIT_FAILED, EXIT_OK
from emmy_tui.view import View
from engine.events import Event, RunState, StateChanged
from tests.emmy_tui.looking import rows, running, screen_text, showing
from tests.emmy_tui.scripted import START, ScriptedSource, search_events

SENTENCE = (
    "cuda:0 can't be used: torch sees no CUDA GPU here (is the driver installed, and is torch a CUDA build?); tuning "
    "needs a GPU; without one, browse a database with `emmy-tui DB`, or watch the demo with `emmy-tui --demo`"
)
FAILED = StateChanged(at=START + 3, state=RunState.FAILED, reason=SENTENCE)


@pytest.mark.parametrize("size", [(80, 24), (60, 15), (160, 45)])
@pytest.mark.parametrize("before", [[], search_events()[:200]], ids=["at once", "later"])
async def test_the_way_out_is_readable(size: tuple[int, int], before: Sequence[Event]) -> None:
    app = showing([*before, FAILED], capabilities=("start",))
    async with running(app, size) as pilot:
        await pilot.pause()
        above = rows(app)[2:8]
        assert SENTENCE in " ".join(" ".join(above).split())
        await pilot.press("q")
    assert app.return_code == EXIT_FAILED
    assert app.own_failure == SENTENCE


async def test_a_new_run_takes_the_sentence_away() -> None:
    app = showing([FAILED], capabilities=("start",))
    async with running(app) as pilot:
        assert isinstance(app.source, ScriptedSource)
        app.source.add(Anew(at=START), *search_events()[:50])
        app.tick()
        await pilot.pause()
        assert "can't be used" not in screen_text(app)
        assert not app.failure.display
        assert app.own_failure == ""


async def test_a_failed_run_in_a_database_is_no_failure_of_the_screen() -> None:
    app = showing([FAILED], mode=Mode.BROWSE, capabilities=())
    async with running(app) as pilot:
        assert "can't be used" in screen_text(app)
        await pilot.press("q")
    assert app.return_code == EXIT_OK
    assert app.own_failure == ""


async def test_a_frozen_view_knows_of_the_failure() -> None:
    app = showing(search_events()[:50])
    async with running(app) as pilot:
        await pilot.press("space")
        assert isinstance(app.source, ScriptedSource)
        app.source.add(FAILED)
        app.tick()
        await pilot.pause()
        assert app.own_failure == SENTENCE


def test_a_failure_without_a_reason_is_still_said() -> None:
    assert [plain(line) for line in failure_lines(View(state=RunState.FAILED), 40)] == ["the run failed"]
    assert failure_lines(View(state=RunState.FINISHED, reason="x"), 40) == []


async def test_a_new_run_is_followed() -> None:
    app = showing(search_events()[:400], capabilities=("start",))
    async with running(app) as pilot:
        await pilot.press("tab", "j")
        app.live.log_panel.follow(False)
        assert not app.live.search_tree.following
        assert isinstance(app.source, ScriptedSource)
        app.source.add(Anew(at=START), *search_events()[:400])
        app.tick()
        await pilot.pause()
        assert app.live.search_tree.following
        assert app.live.log_panel.following
