"""A screen that was frozen for ten thousand events shows, once it goes on, what one shows that never was."""

from __future__ import annotations

from emmy_tui.app import EmmyApp
from engine.events import Event
from tests.emmy_tui.looking import application, running, screen_text
from tests.emmy_tui.scripted import ROWWISE, WORKS, ScriptedSource, Work, search_events

MANY = 10_000


def many_events() -> list[Event]:
    more = [
        Work(f"f{number:03}", f"sum{number}", "rowwise", "64x4096 bf16", 1, ROWWISE, 5.0, 75) for number in range(16)
    ]
    events = search_events(works=(*WORKS, *more))
    assert len(events) > MANY + 1000
    return events


async def shown(app: EmmyApp, source: ScriptedSource, later: list[Event], *, frozen: bool) -> list[str]:
    """What each tab of the Live screen's run looks like once all has come."""
    pictures = []
    async with running(app, (160, 45)) as pilot:
        app.tick()
        if frozen:
            await pilot.press("space")
            await pilot.pause()
        before = screen_text(app)
        source.add(*later)
        for _ in range(30):
            app.tick()
        await pilot.pause()
        if frozen:
            assert "frozen" in screen_text(app).lower()
            await pilot.press("space")
        for _ in range(30):
            app.tick()
        await pilot.pause()
        assert not source.waiting
        assert screen_text(app) != before
        for key in ("1", "G", "L", "t", "z", "z"):
            await pilot.press(key)
            await pilot.pause()
            app.tick()
            await pilot.pause()
            pictures.append(screen_text(app))
    return pictures


async def test_a_screen_that_was_frozen_shows_what_its_twin_shows() -> None:
    events = many_events()
    pictures = []
    for frozen in (True, False):
        source = ScriptedSource(events[:500])
        pictures.append(await shown(application(source), source, events[500:], frozen=frozen))
    assert pictures[0] == pictures[1]
