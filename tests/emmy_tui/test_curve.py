"""The curve's time axis: what lies between two runs is no time of a kernel's search."""

from __future__ import annotations

from emmy_tui.text import plain
from emmy_tui.view import View
from emmy_tui.widgets.curve import Points, drawn, plot
from engine.snapshot import KernelRow
from engine.snapshot_rows import TrialPoint
from tests.emmy_tui.looking import application, running, screen_text
from tests.emmy_tui.scripted import ScriptedSource, search_events


def points(*moments: float) -> Points:
    row = KernelRow("k", "matmul", "contraction", "", 1, 0, 0)
    row.points = [TrialPoint(number, at, 5.0 + number) for number, at in enumerate(moments, 1)]
    found = Points(row)
    found.update()
    return found


def test_two_runs_stand_side_by_side() -> None:
    apart = points(100.0, 101.0, 103.0, 1603.0, 1604.0)
    assert list(apart.seconds) == [0.0, 1.0, 3.0, 3.0, 4.0]
    seen = View(by_time=True)
    text = "\n".join(plain(line) for line in plot(apart, drawn(apart, 60, 10, seen), 60, seen))
    assert "time in runs (t)" in text
    assert "00:25" not in text


def test_one_run_is_on_its_own_time() -> None:
    one = points(100.0, 160.0, 200.0)
    assert list(one.seconds) == [0.0, 60.0, 100.0]
    assert not one.paused


async def test_the_view_behind_a_dialog_goes_on() -> None:
    events = search_events()
    source = ScriptedSource(events[:200])
    app = application(source)
    async with running(app) as pilot:
        await pilot.press("x", "A")
        before = screen_text(app)
        source.add(*events[200:])
        app.tick()
        await pilot.pause()
        assert "Waiting to be tuned again" in screen_text(app)
        assert screen_text(app) != before
