"""How the tests look at a running application: as text, a line a row."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot
from textual.strip import Strip

from emmy_tui.app import EmmyApp
from emmy_tui.look import Look
from engine.events import Event
from tests.emmy_tui.scripted import START, ScriptedSource

NOW = START + 90


def application(source: ScriptedSource | None, look: Look | None = None, **more: Any) -> EmmyApp:
    return EmmyApp(source, look, clock=lambda: NOW, bite_s=60.0, **more)


def showing(events: Sequence[Event] = (), look: Look | None = None, **source: Any) -> EmmyApp:
    """An application over a source that has these events."""
    return application(ScriptedSource(events, **source), look)


@asynccontextmanager
async def running(app: EmmyApp, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Pilot[None]]:
    """The application at a size, when its first frame is painted."""
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.pause()
        yield pilot


def strips(app: EmmyApp) -> list[Strip]:
    """What the terminal shows, a strip a row."""
    return app.screen._compositor.render_strips()


def rows(app: EmmyApp) -> list[str]:
    """What the terminal shows, a text a row."""
    return [strip.text for strip in strips(app)]


def screen_text(app: EmmyApp) -> str:
    return "\n".join(rows(app))
