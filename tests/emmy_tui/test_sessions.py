"""The sessions that a screen steers: each is a process of its own, and a person notices nothing of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from emmy_tui.app import EmmyApp
from emmy_tui.main import arguments_parser
from emmy_tui.opening import queue_of, replay_of
from emmy_tui.source import Again, Mode, SessionSource
from engine.events import Acted, Event, Logged, QueueChanged, RunState
from engine.session import SeparateSession
from tests.emmy_tui.looking import running, screen_text
from tests.emmy_tui.measured import fill, matmul, relu
from tests.session import works

CODE = "torch.matmul(torch.randn(128, 64, device='cuda'), torch.randn(64, 128, device='cuda'))"


async def soon(app: EmmyApp, condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends, screen_text(app)
        await asyncio.sleep(0.05)
        app.tick()


async def test_a_replay_is_paused_goes_on_is_stopped_and_starts_anew(tmp_path: Path) -> None:
    path = fill(tmp_path / "tune.db")
    options = arguments_parser().parse_args(["--demo", "--pace", "0.2"])
    again = [Again(matmul().key, "matmul"), Again(relu().key, "relu")]
    app = EmmyApp(replay_of(options, path, again))
    async with running(app, (120, 40)) as pilot:
        await soon(app, lambda: app.view.state == RunState.RUNNING and bool(app.view.snapshot.kernels))
        assert app.source is not None
        session = app.source._session  # type: ignore[attr-defined]
        assert isinstance(session, SeparateSession)
        await pilot.press("P")
        await soon(app, lambda: app.view.state == RunState.PAUSED)
        await pilot.press("P")
        await soon(app, lambda: app.view.state == RunState.RUNNING)
        await pilot.press("X")
        await soon(app, lambda: app.view.state == RunState.STOPPED and session.wait(0))
        assert app.source.capabilities == {"start"}
        await pilot.press("R")
        await soon(app, lambda: app.view.state == RunState.RUNNING)
        await pilot.press("ctrl+c", "ctrl+c")
    assert app.return_code == 130
    app.source.close()


def test_a_kernel_is_queued_behind_a_run_and_what_is_refused_is_a_line_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", works.ROOT)
    path = tmp_path / "tune.db"
    code = works.tuning(CODE, path, patience=30)
    source = SessionSource(lambda: SeparateSession(code), Mode.LIVE, CODE, str(path), queue=queue_of)
    events: list[Event] = []

    def wait_for(condition: Callable[[], bool]) -> None:
        ends = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < ends
            time.sleep(0.02)
            events.extend(source.drain(5000))

    wait_for(lambda: "retune" in source.capabilities)
    source.enqueue([Again("0" * 24, "nothing that was found")])
    source.set_patience("a kernel", 0)
    wait_for(lambda: any(isinstance(event, QueueChanged) for event in events))
    wait_for(lambda: any(isinstance(event, Logged) and event.level == "error" for event in events))
    wait_for(lambda: source.capabilities == {"start"})
    refused = [event.text for event in events if isinstance(event, Logged) and "refused" in event.text]
    assert refused == ["patience was refused: patience must be at least 1, not 0"]
    assert any(isinstance(event, Acted) and event.verb == "retune" for event in events)
    source.close()
