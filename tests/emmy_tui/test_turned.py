"""Keys that are pressed right after the kernel, the filter or the order has changed: the rows that are still seen are
of before, and nothing is done to them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from emmy_tui.app import EmmyApp
from emmy_tui.prompt import Prompt
from engine.store import Store
from tests.emmy_tui.looking import rows, running, screen_text
from tests.emmy_tui.measured import CONTEXT, fill, matmul, over, press, relu, schedules, settled, type_text
from tests.emmy_tui.two_runs import record_runs

NEXT, BEFORE = "right_square_bracket", "left_square_bracket"
STILL = "still being read"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db")


@contextmanager
def slow(app: EmmyApp) -> Iterator[None]:
    """The database answers nothing within."""
    gate = threading.Event()
    app.desk.ask("held", lambda store: gate.wait(20), lambda answer: None, lambda sentence: None)
    try:
        yield
    finally:
        gate.set()


def pins(database: Path) -> list[str]:
    with Store.open(database, read_only=True) as store:
        return [one.pin.kernel_key for one in store.pins()]


async def told(app: EmmyApp) -> None:
    """The last key has waited for its rows, and says that they don't come."""
    ends = time.monotonic() + 20
    while STILL not in app.footer.said:
        assert time.monotonic() < ends, app.footer.said
        await asyncio.sleep(0.02)


async def burst(app: EmmyApp, pilot: Pilot[None], *keys: str) -> None:
    app.footer.say("", warns=False)
    with slow(app):
        await pilot.press(*keys)
        await told(app)
        assert len(app.screen_stack) == 1
    await settled(app, pilot)


@pytest.mark.parametrize("first", [NEXT, BEFORE])
@pytest.mark.parametrize("key", ["u", "p", "y", "Y", "b", "a", "i", "o", "e", "c", "enter"])
async def test_after_a_change_of_kernel_no_key_acts_on_the_one_before(database: Path, first: str, key: str) -> None:
    with Store.open(database) as store:
        store.record_pin(matmul().key, schedules(matmul(), 1)[0], CONTEXT.key, author="x", note="")
    app = over(database)
    copied = database.parent / "copied.txt"
    async with running(app) as pilot:
        await press(app, pilot, "2")
        await burst(app, pilot, first, key)
        assert pins(database) == [matmul().key]
        assert not copied.exists()
        assert app.variants.list.marked is None
        assert not (database.parent / "out").exists()
        await press(app, pilot, "y")
        assert app.footer.said.startswith("knobs of relu copied")


async def test_from_the_live_tab_the_pin_is_of_the_kernel_that_was_gone_to(database: Path) -> None:
    app = over(database)
    async with running(app) as pilot:
        await press(app, pilot, "2", "1")
        await burst(app, pilot, "j", "2", "p", "enter")
        assert pins(database) == []
        await press(app, pilot, "p")
        assert "Pin relu" in screen_text(app)
        await press(app, pilot, "enter")
        assert pins(database) == [relu().key]


async def test_after_another_order_or_filter_no_key_acts_on_the_rows_of_before(database: Path) -> None:
    app = over(database)
    async with running(app) as pilot:
        await press(app, pilot, "2")
        await burst(app, pilot, "S", "p")
        await burst(app, pilot, "s", "enter")
        await burst(app, pilot, "c", "y")
        await press(app, pilot, "slash")
        app.footer.say("", warns=False)
        with slow(app):
            await type_text_slowly(pilot)
            await pilot.press("enter", "p")
            await told(app)
        await settled(app, pilot)
        assert pins(database) == []
        await press(app, pilot, "p")
        assert isinstance(app.screen, Prompt)


async def type_text_slowly(pilot: Pilot[None]) -> None:
    await pilot.press(*"st", "colon", *"ok")


async def test_a_look_at_the_same_rows_again_holds_no_key_up(database: Path) -> None:
    app = over(database)
    async with running(app) as pilot:
        await press(app, pilot, "2")
        with slow(app):
            app.variants.ask()
            assert not app.variants.behind
            await pilot.press("p")
            assert isinstance(app.screen, Prompt)


async def test_an_answer_for_the_kernel_before_opens_nothing(database: Path) -> None:
    app = over(database)
    async with running(app) as pilot:
        await press(app, pilot, "2")
        with slow(app):
            await pilot.press("enter", NEXT)
        await settled(app, pilot)
        assert len(app.screen_stack) == 1


async def test_while_a_filter_runs_the_title_says_so(database: Path) -> None:
    app = over(database)
    async with running(app, (120, 30)) as pilot:
        await press(app, pilot, "2", "slash")
        with slow(app):
            await pilot.press(*"st", "colon", *"failed")
            app.tick()
            await pilot.pause()
            title = next(row for row in rows(app) if "Variants matmul" in row)
            assert "/ st:failed" in title
            assert "counting" in title
            assert "60 rows" not in title
        await settled(app, pilot)
        title = next(row for row in rows(app) if "Variants matmul" in row)
        assert "8 rows" in title
        assert "counting" not in title
        await type_text(app, pilot, "x")
        assert "counting" not in screen_text(app)


async def test_two_runs_that_are_being_swapped_are_not_swapped_or_opened_again(tmp_path: Path) -> None:
    app = over(record_runs(tmp_path / "tune.db"))
    async with running(app, (120, 30)) as pilot:
        await press(app, pilot, "5")
        before = app.compare.list.comparison
        assert before is not None
        for key in ("w", "enter", "e"):
            await burst(app, pilot, "w", key)
        now = app.compare.list.comparison
        assert now is not None
        assert (now.a.run.id, now.b.run.id) == (before.b.run.id, before.a.run.id)
