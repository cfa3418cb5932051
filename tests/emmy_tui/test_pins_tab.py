"""Every key of the Pins tab, over a real database."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from emmy_tui.dialogs import Reading
from emmy_tui.prompt import Prompt
from engine.store import Store
from tests.emmy_tui.looking import rows, running, screen_text
from tests.emmy_tui.measured import (
    CONTEXT,
    OTHER,
    fill,
    matmul,
    over,
    press,
    relu,
    schedules,
    settled,
    suggest,
    type_text,
)

WIDE = (160, 45)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db")


def pin(database: Path, place: int, context: str = CONTEXT.key, note: str = "") -> None:
    with Store.open(database) as store:
        store.record_pin(matmul().key, schedules(matmul())[place], context, author="ana", note=note)


async def test_how_pins_stand(database: Path) -> None:
    pin(database, 1, note="[b]steady[/]")
    pin(database, 0, OTHER.key)
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "6")
        text = screen_text(app)
        for words in ("2 pins, 1 stale", "a faster is known", "stale: context", "ana", "[b]steady[/]", "+70.0%"):
            assert words in text
        await press(app, pilot, "j")
        assert "the newest run used another GPU or toolchain" in screen_text(app)
        await press(app, pilot, "y")
        assert (database.parent / "copied.txt").read_text().startswith("BLOCK_M=")


async def test_the_pins_that_a_key_tunes_again_are_those_that_the_title_calls_stale(database: Path) -> None:
    pin(database, 0, OTHER.key)
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "6")
        assert "1 pin, 1 stale" in screen_text(app)
        assert app.pins.row.stale
    pin(database, 1)
    with Store.open(database) as store:
        store.unpin(matmul().key, OTHER.key)
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "6")
        assert "stale" not in "".join(rows(app)[:-1])
        assert not app.pins.row.stale


async def test_typing_knobs_that_were_never_measured(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "6")
        assert "Nothing is pinned: p pins knob values that you type" in screen_text(app)
        await press(app, pilot, "p")
        assert isinstance(app.screen, Prompt)
        assert "legal; enter pins it" in screen_text(app)
        await press(app, pilot, "backspace", "backspace")
        await type_text(app, pilot, "17")
        assert "NUM_STAGES=17 is more than 16" in screen_text(app)
        await press(app, pilot, "enter")
        assert isinstance(app.screen, Prompt)
        await press(app, pilot, "backspace", "backspace")
        await type_text(app, pilot, "5 #try")
        await press(app, pilot, "enter")
        assert not isinstance(app.screen, Prompt)
        text = screen_text(app)
        assert "unmeasured" in text
        assert "NUM_STAGES=5" in text
        assert "try" in text
        await press(app, pilot, "u")
        assert app.pins.list.count() == 0
        await press(app, pilot, "U")
        assert app.pins.list.count() == 1
        await press(app, pilot, "U")
        assert app.pins.list.count() == 0


async def test_one_knob_is_enough_and_a_name_that_is_none_is_named(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "6", "p", "ctrl+u")
        await type_text(app, pilot, "NUM_WARP=8")
        assert "NUM_WARP is no knob of a contraction kernel; near it are NUM_WARPS" in screen_text(app)
        await press(app, pilot, "ctrl+u")
        await type_text(app, pilot, "num_warps=8")
        assert "legal; enter pins it" in screen_text(app)
        await press(app, pilot, "enter")
        with Store.open(database, read_only=True) as store:
            (stored,) = store.pins()
            best = store.best_known(matmul().key, CONTEXT.key)
        assert best is not None
        assert stored.pin.schedule.as_dict() == {**best.schedule.as_dict(), "NUM_WARPS": 8}


async def test_exporting_and_importing(database: Path, tmp_path: Path) -> None:
    pin(database, 1, note="steady")
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "6", "e")
    (file,) = (database.parent / "out").glob("emmy-pins-*.json")
    assert json.loads(file.read_text())["schedules"][0]["pin"]["note"] == "steady"
    (tmp_path / "b").mkdir()
    other = over(fill(tmp_path / "b" / "tune.db"))
    async with running(other, WIDE) as pilot:
        await press(other, pilot, "6", "I")
        await type_text(other, pilot, str(file))
        await press(other, pilot, "enter")
        assert other.pins.list.count() == 1
        assert "1 pinned" in other.footer.said
        await press(other, pilot, "I")
        await type_text(other, pilot, str(file))
        await press(other, pilot, "enter")
        assert other.footer.said == "0 pinned, 1 was in force already"
        await press(other, pilot, "U")
        assert other.pins.list.count() == 0
        await press(other, pilot, "I")
        await type_text(other, pilot, str(tmp_path / "none.json"))
        assert "none.json is no file" in screen_text(other)
        await press(other, pilot, "enter")
        assert len(other.screen_stack) == 2


async def test_the_footer_fits_what_works(database: Path) -> None:
    app = over(database)
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "6")
        footer = rows(app)[-1]
        assert "p Pin" in footer
        assert "I Import" in footer
        assert "u Unpin" not in footer
        assert "s Sort" not in footer


@pytest.mark.parametrize("size", [(80, 24), WIDE])
async def test_suggestions_are_listed_with_their_reason_and_can_be_pinned(
    database: Path, size: tuple[int, int]
) -> None:
    suggested = suggest(database)
    app = over(database)
    async with running(app, size) as pilot:
        await press(app, pilot, "6", "tab")
        assert app.pins.focused_panel() == "suggestions"
        text = screen_text(app)
        for words in ("2 from elsewhere", "pinned on an NVIDIA A100", "8.500 us there"):
            assert words in text
        await press(app, pilot, "enter")
        assert isinstance(app.screen, Reading)
        for words in ("the next search tries it first", "ben", "[b]fast there[/]"):
            assert words in screen_text(app)
        await press(app, pilot, "escape", "p", "enter")
        assert [one.stored.pin.schedule for one in app.pins.list.pins] == [suggested]
        await press(app, pilot, "y")
        assert (database.parent / "copied.txt").read_text().startswith("BLOCK_M=")
        await press(app, pilot, "u")
        assert app.pins.list.count() == 0
        await press(app, pilot, "u")
        assert "matmul has no pin here; p pins it." in app.footer.said


async def test_without_suggestions_there_is_no_list_of_them(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "6", "tab")
        assert app.pins.focused_panel() == "deploys"
        assert not app.pins.suggestions.display


@pytest.mark.parametrize("size", [(80, 24), WIDE])
async def test_what_would_deploy_now_and_what_decides(database: Path, size: tuple[int, int]) -> None:
    pin(database, 1)
    app = over(database)
    async with running(app, size) as pilot:
        await press(app, pilot, "6", "tab")
        found = {one.label: one for one in app.pins.deploys.found}
        assert found["matmul"].schedule == schedules(matmul())[1]
        text = screen_text(app)
        for words in ("Deploys now", "2 kernels", "What decides", "decided by pin", "ranking time"):
            assert words in text
        await press(app, pilot, "enter")
        assert "prediction" in screen_text(app)
        await press(app, pilot, "escape", "u")
        assert app.pins.list.count() == 0
        assert {one.label: one.chosen and one.chosen.source.value for one in app.pins.deploys.found} == {
            "matmul": "deploy measurement",
            "relu": "ranking measurement",
        }
        await press(app, pilot, "z")
        assert not app.pins.list.display


@pytest.mark.parametrize("size", [(80, 24), (60, 15)])
@pytest.mark.parametrize("pins", [0, 1])
async def test_every_box_that_is_seen_says_something(database: Path, size: tuple[int, int], pins: int) -> None:
    if pins:
        pin(database, 1)
    suggest(database)
    app = over(database)
    async with running(app, size) as pilot:
        await press(app, pilot, "6")
        visited = []
        for _ in range(3):
            name = app.tab.focused_panel()
            visited.append(name)
            seen = {one: panel.size.height for one, panel in app.pins.panels.items() if panel.display}
            assert min(seen.values()) >= 4
            assert seen[name] >= min(app.pins.panels[name].count(), 2) + 3
            assert sum(seen.values()) == size[1] - 3
            await press(app, pilot, "tab")
        assert sorted(visited) == ["deploys", "pins", "suggestions"]
        assert "tab: " in screen_text(app)


async def test_kernels_that_come_later_are_asked_for(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "6")
        assert app.pins.deploys.wanted == 2
        first = next(iter(app.view.snapshot.kernels.values()))
        app.view.snapshot.kernels["later"] = replace(first, kernel="later", label="later")
        app.tick()
        await settled(app, pilot)
        later = app.pins.deploys.found[-1]
        assert later.label == "later"
        assert "no kernel" in later.why


async def test_keys_that_need_a_pin_are_offered_where_there_is_one(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "6")
        for key, words in (
            ("e", "Nothing is pinned, so there is nothing to export; p pins."),
            ("R", "Nothing is pinned, so no pin is stale; p pins."),
            ("r", "tab leads to the kernels that deploy now"),
            ("m", "tab leads to the kernels that deploy now"),
        ):
            await press(app, pilot, key)
            assert words in " ".join(screen_text(app).split())
        await press(app, pilot, "tab")
        for offered in ("u Unpin", "e Export", "R All stale"):
            assert offered not in rows(app)[-1]
        assert "m Measure" in rows(app)[-1]
        await press(app, pilot, "u")
        assert "matmul has no pin here; p pins it." in app.footer.said
        await press(app, pilot, "p", "enter")
        for offered in ("u Unpin", "e Export"):
            assert offered in rows(app)[-1]


async def test_nothing_pinned_is_said_whole(database: Path) -> None:
    app = over(database)
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "6")
        assert "Nothing is pinned: p pins knob values that you type; on tab 2, a row" in screen_text(app)


async def test_typing_behind_the_offered_knobs_says_how_to_empty_the_line(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "6", "p")
        assert "ctrl+u empties the line" in screen_text(app)
        await type_text(app, pilot, "NUM_WARPS=8")
        assert "stands twice" in screen_text(app)
        assert "(ctrl+u empties the line)" in screen_text(app)
        await press(app, pilot, "ctrl+u")
        await type_text(app, pilot, "NUM_WARPS=8")
        assert "legal; enter pins it" in screen_text(app)


async def test_what_deploys_follows_a_pin_and_its_undo_before_the_other_kernels(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "6")

        def sources() -> list[str]:
            return [one.chosen.source.value for one in app.pins.deploys.found if one.chosen]

        before = sources()
        await press(app, pilot, "p", "enter")
        assert sources() == ["pin", before[1]]
        await press(app, pilot, "U")
        assert sources() == before
        reading = app.pins._deploying
        reading._queue, reading._asking = dict(app.view.snapshot.kernels), True
        reading.ask_first({relu().key})
        assert list(reading._queue) == [relu().key, matmul().key]
