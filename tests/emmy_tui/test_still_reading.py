"""While a database is still being read the screen says so, and gives no reason or total that may turn out false."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from emmy_tui.action import LIVE, STILL_READING, VARIANTS, Now, reason_why_not
from emmy_tui.actions import BY_NAME
from emmy_tui.database_source import DatabaseSource
from emmy_tui.source import Anew, Mode
from engine.events import KernelFound, RunState, StateChanged
from engine.ir.plan import Program
from engine.store import RunInfo, Store
from tests.emmy_tui.looking import application, rows, running, screen_text
from tests.emmy_tui.measured import CONTEXT, fill, matmul, over, press, settled
from tests.emmy_tui.scripted import START, ScriptedSource, failed_events, search_events
from tests.emmy_tui.test_source import until
from tests.emmy_tui.two_runs import record_runs

EVENTS = search_events()


async def test_the_status_line_says_that_it_reads_and_nothing_else() -> None:
    source = ScriptedSource([*EVENTS[:300], StateChanged(at=START, state=RunState.FINISHED)], mode=Mode.BROWSE)
    source.reading = True
    app = application(source)
    async with running(app, (160, 45)) as pilot:
        status = rows(app)[0]
        assert "reading the database" in status
        for early in ("finished", "Σ", "kernels", "00:"):
            assert early not in status
        assert "measured" not in rows(app)[1]
        source.reading = False
        app.tick()
        await pilot.pause()
        for known in ("finished", "Σ", "kernels"):
            assert known in rows(app)[0]
        assert "reading" not in rows(app)[0]


async def test_a_newer_run_leaves_the_view_until_the_past_was_read() -> None:
    source = ScriptedSource([*EVENTS], mode=Mode.BROWSE)
    app = application(source)
    async with running(app, (160, 45)) as pilot:
        before, names = app.view.snapshot, [row for row in rows(app) if "linear_gelu" in row]
        assert names
        source.reading = True
        dead = StateChanged(at=START, state=RunState.FAILED, reason="the GPU fell off the bus")
        source.add(Anew(at=START), *failed_events(), dead)
        app.tick()
        await pilot.pause()
        assert app.view.snapshot is before
        assert "reading the database" in rows(app)[0]
        text = screen_text(app)
        for false in ("finished", "kernels", "Σ"):
            assert false not in rows(app)[0]
        assert "fell off the bus" not in text
        assert "linear_gelu" in text
        source.reading = False
        source.add(*[event for event in EVENTS[:40] if not isinstance(event, StateChanged)])
        source.add(StateChanged(at=START, state=RunState.RUNNING))
        app.tick()
        await pilot.pause()
        assert app.view.snapshot is not before
        assert "running" in rows(app)[0]
        assert "reading" not in rows(app)[0]


async def test_a_key_that_lacks_rows_only_because_they_are_on_their_way_says_so() -> None:
    source = ScriptedSource((), mode=Mode.BROWSE, capabilities=())
    source.reading = True
    app = application(source)
    async with running(app) as pilot:
        for key in ("s", "i", "L", "right_square_bracket"):
            await pilot.press(key)
            assert app.footer.said == f"{STILL_READING}."
        await pilot.press("P")
        assert "only looked at" in app.footer.said
        source.reading = False
        app.tick()
        await pilot.press("s")
        assert app.footer.said == "There are not two kernels to sort."


@pytest.mark.parametrize("name", ["sort", "copy_knobs", "mark", "export", "pin", "next_context", "run_a"])
def test_reasons_wait_for_the_rows(name: str) -> None:
    action = BY_NAME[name]
    now = Now(Mode.BROWSE, tab=action.tabs[0], compared=False, reading=True)
    assert reason_why_not(action, now) == STILL_READING


def test_what_rows_would_not_change_has_its_own_reason() -> None:
    assert "press 2" in reason_why_not(BY_NAME["sort"], Now(Mode.BROWSE, tab=LIVE, reading=True))
    read_only = Now(Mode.BROWSE, tab=VARIANTS, writable=False, reading=True)
    assert "reading only" in reason_why_not(BY_NAME["pin"], read_only)


async def test_a_tab_whose_rows_were_asked_for_gives_no_reason_yet(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=12))
    async with running(app) as pilot:
        await settled(app, pilot)
        held, go = threading.Event(), threading.Event()

        def hold(store: Store) -> None:
            held.set()
            go.wait(10)

        app.desk.ask("hold", hold, lambda answer: None, lambda sentence: None)
        assert held.wait(10)
        await pilot.press("2", "y")
        for _ in range(500):  # the key waits for its row a moment
            if app.footer.said:
                break
            await asyncio.sleep(0.01)
        assert app.footer.said == f"{STILL_READING}."
        assert "no row" not in screen_text(app).casefold()
        go.set()
        await settled(app, pilot)
        await press(app, pilot, "y")
        assert "knobs of matmul copied" in app.footer.said


def test_a_database_reads_until_all_that_it_held_was_taken(tmp_path: Path) -> None:
    source = DatabaseSource(record_runs(tmp_path / "two.db"))
    try:
        assert source.reading
        until(lambda: source._read_up)
        assert source.reading, "nothing was taken yet"
        while source.drain(3):
            pass
        assert not source.reading
    finally:
        source.close()


def test_a_run_that_goes_on_does_not_keep_it_reading(tmp_path: Path) -> None:
    path = fill(tmp_path / "tune.db", rows=3)
    with Store.open(path, clock=lambda: START + 60) as store:
        program = Program(matmul().body, "again", "cuda")
        store.start_run(RunInfo("again", program, "cuda:0", CONTEXT.gpu, CONTEXT.key, 1, 50, "cold-1", "emmy tune"))
        source = DatabaseSource(path)
        try:
            until(lambda: source.drain(10_000) == [] and not source.reading)
        finally:
            source.close()


def test_an_empty_database_is_read_at_once(tmp_path: Path) -> None:
    with Store.open(tmp_path / "empty.db"):
        pass
    source = DatabaseSource(tmp_path / "empty.db")
    try:
        until(lambda: not source.reading)
        assert source.drain(10) == []
    finally:
        source.close()


async def test_the_variants_go_along_with_the_read_and_on_from_what_is_shown() -> None:
    source = ScriptedSource([], mode=Mode.BROWSE)
    source.reading = True
    app = application(source)
    events = list(EVENTS)
    found = [event for event in events if isinstance(event, KernelFound)]
    async with running(app, (160, 45)) as pilot:
        app.show_tab(VARIANTS)
        source.add(*events[: events.index(found[-1]) + 1])
        app.tick()
        await pilot.pause()
        keys = [row.kernel for row in app.live.kernel_panel.ordered()]
        assert len(keys) > 1
        app.view.snapshot.current_kernel = keys[0]
        app.tick()
        assert app.variants.kernel_here() is app.view.kernel
        app.view.snapshot.current_kernel = keys[1]
        app.tick()
        assert app.variants.kernel_here() is app.view.kernel
        source.reading = False
        app.tick()
        app.view.snapshot.current_kernel = keys[0]
        app.tick()
        here = app.variants.kernel_here()
        assert here is not None
        assert here.kernel == keys[1]
        await pilot.press("right_square_bracket")
        here = app.variants.kernel_here()
        assert here is not None
        assert here.kernel == keys[2 % len(keys)]
        assert app.view.kernel is here
        await pilot.press("1", "2")
        assert app.variants.kernel_here() is here
