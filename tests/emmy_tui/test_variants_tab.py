"""Every key of the Variants tab, over a real database."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from emmy_tui.dialogs import Reading
from emmy_tui.look import Look
from emmy_tui.pareto import FrontChoice, front
from emmy_tui.prompt import Prompt
from engine.events import Health
from engine.store import CandidateQuery, Store
from engine.vocabulary import Measurement, Regime, Schedule, Status, Timing
from tests.emmy_tui.looking import application, rows, running, screen_text
from tests.emmy_tui.measured import (
    COMMAND,
    CONTEXT,
    OTHER,
    ROWS,
    events,
    fill,
    matmul,
    over,
    press,
    schedules,
    settled,
    type_text,
)
from tests.emmy_tui.scripted import ScriptedSource

WIDE = (160, 45)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db")


def pins(database: Path) -> list[tuple[str, str]]:
    with Store.open(database, read_only=True) as store:
        return [(stored.pin.schedule.key, stored.pin.note) for stored in store.pins()]


async def test_it_lists_every_candidate_best_first(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2")
        assert app.variants.list.count() == ROWS
        text = screen_text(app)
        for words in (
            "[2 Variants]",
            f"{ROWS} rows",
            "Variants matmul",
            "NVIDIA H200 (1 of 2)",
            "us▲",
            "deploy",
            "spill",
        ):
            assert words in text
        times = [float(line.split()[-11]) for line in rows(app)[4:10]]
        assert times == sorted(times)
        await press(app, pilot, "G")
        assert "out of shared memory" in screen_text(app)
        assert app.variants.list.cursor == ROWS - 1


async def test_only_pages_are_held(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=400))
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "2")
        assert len(app.variants.list.held_rows()) < 100
        await press(app, pilot, "G")
        assert app.variants.list.current_row() is not None
        assert len(app.variants.list.held_rows()) < 250


async def test_sorting_keeps_the_cursor_on_its_row(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2", "j", "j")
        number = app.variants.list.current()
        for column in ("ranking", "regs", "spill", "smem", "error", "trial", "us"):
            await press(app, pilot, "s")
            assert f"{column}▲" in screen_text(app)
            assert app.variants.list.current() == number
        await press(app, pilot, "S")
        assert "us▼" in screen_text(app)
        shown = app.variants.list
        rows = [row for row in (shown._rows[number] for number in shown.numbers[:40]) if row.best_us is not None]
        order = [(row.deploy_us is None, row.best_us) for row in rows]
        assert order == sorted(order, reverse=True)


async def test_filtering_as_one_types(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2", "slash")
        assert isinstance(app.screen, Prompt)
        await type_text(app, pilot, "us<2")
        assert app.variants.list.count() == 0
        await type_text(app, pilot, "0")
        narrowed = app.variants.list.count()
        assert 0 < narrowed < ROWS
        await type_text(app, pilot, " st")
        assert "st is no condition" in screen_text(app)
        assert app.variants.list.count() == narrowed
        await press(app, pilot, "enter")
        assert isinstance(app.screen, Prompt)
        await type_text(app, pilot, ":ok")
        await press(app, pilot, "enter")
        assert not isinstance(app.screen, Prompt)
        assert "/ us<20 st:ok" in screen_text(app)
        assert "esc Show all" in rows(app)[-1]
        await press(app, pilot, "slash")
        await type_text(app, pilot, " BLOCK_M=16")
        assert app.variants.list.count() < narrowed
        await press(app, pilot, "escape")
        assert app.variants.list.count() == narrowed
        await press(app, pilot, "escape")
        assert app.variants.list.count() == ROWS


async def test_a_filter_that_finds_nothing_says_so(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2")
        app.variants.set_filter("us<1")
        await settled(app, pilot)
        assert "No row passes the filter; esc takes it away" in screen_text(app)


async def test_kernels_by_text_and_the_next_kernel(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2")
        app.variants.set_filter("kernel:* regime:ranking")
        await settled(app, pilot)
        assert app.variants.list.count() == ROWS + 2
        assert "relu" in screen_text(app)
        await press(app, pilot, "escape", "right_square_bracket")
        assert app.variants.list.count() == 1
        assert "Variants relu" in screen_text(app)


async def test_contexts_are_shown_one_at_a_time(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2", "c")
        assert app.variants.list.count() == 1
        assert "NVIDIA A100 (2 of 2)" in screen_text(app)
        row = app.variants.list.current_row()
        assert row is not None
        assert row.context == OTHER.key
        await press(app, pilot, "c")
        assert app.variants.list.count() == ROWS


async def test_enter_opens_a_row_with_its_source(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2", "enter")
        assert isinstance(app.screen, Reading)
        text = screen_text(app)
        for words in ("BLOCK_M=16", "ranking", "deploy", "registers", "@triton.jit", "tl.dot", "driver 580.1", COMMAND):
            assert words in text
        await press(app, pilot, "G", "escape")
        assert not isinstance(app.screen, Reading)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("{}", "can't be read"),
        ('{"family": "contraction"', "can't be read"),
        ("[" * 5000, "can't be read"),
    ],
)
async def test_a_hostile_body_is_one_sentence(database: Path, body: str, sentence: str) -> None:
    with Store.open(database) as store:
        store._connection.db.conn.execute("UPDATE kernel SET body = ?", (body,))
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2", "enter")
        assert isinstance(app.screen, Reading)
        assert sentence in " ".join(screen_text(app).split())
        assert "@triton.jit" not in screen_text(app)


async def test_a_schedule_of_other_knobs_has_no_source(database: Path) -> None:
    with Store.open(database) as store:
        store._connection.db.conn.execute("UPDATE measurement SET schedule = '{\"ODD[b]\":true}' WHERE trial = 1")
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2", "s", "enter")
        assert "ODD[b]=True" in screen_text(app)
        assert "The schedule lacks BLOCK_M" in screen_text(app)


async def test_comparing_two(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2", "b")
        assert app.variants.list.marked is not None
        await press(app, pilot, "b")
        assert app.variants.list.marked is None
        await press(app, pilot, "b", "j", "b")
        assert isinstance(app.screen, Reading)
        text = screen_text(app)
        assert "≠ BLOCK_M" in text
        assert "A is faster by" in text
        await press(app, pilot, "escape")
        assert " A M" in screen_text(app)


@pytest.mark.parametrize(
    ("floor", "words"),
    [
        (0.002, "B is faster by 0.6 % in the deploy regime"),
        (0.01, "Within noise in the deploy regime"),
        (None, "Within noise in the deploy regime"),
    ],
)
async def test_two_deploy_times_are_told_apart_by_the_measured_noise(
    database: Path, floor: float | None, words: str
) -> None:
    with Store.open(database) as store:
        (run,) = store.runs()
        for us, schedule in zip((5.0, 5.03), schedules(matmul(), 3)[1:], strict=True):
            samples = tuple(us * (1 + step / 20_000) for step in (-2, -1, 0, 1, 2))
            row = Measurement(
                matmul().key,
                schedule,
                Regime.DEPLOY,
                CONTEXT.key,
                Status.OK,
                Timing(us, us * 0.98, us * 1.02, samples),
            )
            store.record_measurement(row, run=run.id)
        if floor is not None:
            store.record_events(
                run.id,
                [Health(at=1.0, search_share=0.1, gpu_idle_share=0.1, compiling=0, respawns=0, noise_share=floor)],
            )
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2", "j", "b", "k", "b")
        assert words in " ".join(screen_text(app).split()), app.footer.said


async def test_copying_knobs_and_the_command(database: Path) -> None:
    app = over(database)
    copied = database.parent / "copied.txt"
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2", "y")
        row = app.variants.list.current_row()
        assert row is not None
        assert copied.read_text().startswith(f"BLOCK_M={row.schedule['BLOCK_M']} BLOCK_N=")
        assert "knobs of matmul copied, if the terminal takes OSC 52; also in" in app.footer.said
        await press(app, pilot, "Y")
        assert copied.read_text() == COMMAND + "\n"


async def test_pinning_unpinning_and_undoing(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2", "j", "U")
        row = app.variants.list.current_row()
        assert row is not None
        await press(app, pilot, "p")
        await type_text(app, pilot, "steady")
        await press(app, pilot, "enter")
        assert pins(database) == [(Schedule.of(row.schedule).key, "steady")]
        assert "⚑" in screen_text(app)
        assert "U Undo" in rows(app)[-1]
        await press(app, pilot, "u")
        assert pins(database) == []
        await press(app, pilot, "U")
        assert pins(database) == [(Schedule.of(row.schedule).key, "steady")]
        await press(app, pilot, "U")
        assert pins(database) == []
        await press(app, pilot, "p", "escape")
        assert pins(database) == []
        await press(app, pilot, "u")
        assert "matmul has no pin here; p pins it." in app.footer.said


async def test_read_only_writes_nothing(database: Path) -> None:
    app = over(database, Look(read_only=True))
    before = database.read_bytes()
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2", "p", "u", "U", "6", "p", "I", "u")
        assert not isinstance(app.screen, Prompt)
        assert "Pin" not in rows(app)[-1].replace("6 Pins", "")
    assert pins(database) == []
    assert database.read_bytes() == before


@pytest.mark.parametrize(
    ("keys", "ending"),
    [("c", "csv"), ("enter", "csv"), ("j", "json"), ("m", "md"), ("down enter", "json"), ("up down down enter", "md")],
)
async def test_exporting(database: Path, keys: str, ending: str) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2", "e", *keys.split())
    (file,) = (database.parent / "out").glob(f"emmy-variants-*.{ending}")
    if ending == "json":
        records = json.loads(file.read_text())
    elif ending == "csv":
        records = list(csv.DictReader(file.open()))
    else:
        records = file.read_text().splitlines()[2:]
    assert len(records) == ROWS
    assert not list((database.parent / "out").glob("emmy-failures*"))


async def test_without_a_database_it_says_so() -> None:
    app = application(ScriptedSource(events(), capabilities=()))
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2")
        assert "there is no database behind what is shown" in screen_text(app)
        await press(app, pilot, "p", "b", "y", "e", "enter", "3", "6")
        assert "there is no database behind what is shown" in screen_text(app)


async def test_rows_that_come_meanwhile_appear(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emmy_tui.tabs.variants.FRESH_S", 0.0)
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2")
        with Store.open(database) as store:
            store._connection.db.conn.execute("DELETE FROM measurement WHERE trial > 50")
        app.view.snapshot.touch("log")
        app.tick()
        await settled(app, pilot)
        assert app.variants.list.count() == 50 + 1, "the deploy row of a candidate without ranking row stays"
        assert matmul().key == app.variants.list.held_rows()[0].kernel
        assert app.variants.list.held_rows()[0].context == CONTEXT.key


async def test_the_page_stays_when_the_run_goes_on_to_the_next_kernel(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2")
        shown = app.variants.list.current()
        kernels = list(app.view.snapshot.kernels)
        app.view.snapshot.current_kernel = next(k for k in kernels if k != app.view.snapshot.current_kernel)
        app.view.snapshot.touch("log", "kernels")
        app.variants.ask()
        await settled(app, pilot)
        assert app.variants.list.current() == shown
        assert app.variants.list.count() == ROWS
        await press(app, pilot, "1", "2")
        assert app.variants.kernel_here() is app.view.kernel


async def test_another_order_starts_at_the_top_where_nobody_moved(database: Path) -> None:
    app = over(database)
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "2", "s")
        assert (app.variants.list.cursor, app.variants.list.top) == (0, 0)


async def test_the_front_of_time_against_registers_gives_a_pin(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2", "o")
        assert isinstance(app.screen, FrontChoice)
        assert "Time against registers" in screen_text(app)
        await press(app, pilot, "p")
        assert isinstance(app.screen, Prompt)
        await press(app, pilot, "enter")
    ((pinned, _),) = pins(database)
    with Store.open(database, read_only=True) as store:
        rows = store.candidate_rows(store.candidate_numbers(CandidateQuery(matmul().key, context=CONTEXT.key))).values()
    best = front(rows)
    assert pinned == Schedule.of(best[0].schedule).key
    for one in best:
        assert not any(
            other.best_us < one.best_us and other.registers < one.registers
            for other in rows
            if other.best_us is not None and other.registers is not None
        )
