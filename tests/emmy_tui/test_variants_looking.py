"""What one looks at on the Variants tab: which kernel, which rows, and that sort and filter are always seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from emmy_tui import format as fmt
from emmy_tui.filter import parse_filter
from emmy_tui.predicting import Predictions
from emmy_tui.prompt import Prompt
from emmy_tui.source import Anew, Mode
from emmy_tui.text import UNICODE, plain
from emmy_tui.variant_query import off_percent, read_found
from emmy_tui.widgets.variant_list import SORTS, Columns, Shown, header_line
from engine.store import Candidate, CandidateQuery, Store
from tests.emmy_tui.looking import rows, running, screen_text
from tests.emmy_tui.measured import CONTEXT, ROWS, events, fill, matmul, over, press, relu, settled, type_text
from tests.emmy_tui.scripted import START


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db")


@pytest.mark.parametrize("width", [58, 62, 70, 78, 98, 100, 130, 158])
@pytest.mark.parametrize("sort", SORTS)
def test_the_column_that_sorts_is_seen_at_any_width(width: int, sort: str) -> None:
    columns = Columns.of(width, True, sort)
    assert UNICODE.rising in plain(header_line(columns, Shown(sort), UNICODE))[:width]
    assert UNICODE.falling in plain(header_line(columns, Shown(sort, True), UNICODE))[:width]


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (100, 30)])
async def test_every_press_of_sort_shows_what_sorts_and_its_numbers(database: Path, size: tuple[int, int]) -> None:
    app = over(database)
    async with running(app, size) as pilot:
        await press(app, pilot, "2")
        for heading in ("ranking", "regs", "spill", "smem", "error", "trial", "us"):
            await press(app, pilot, "s")
            assert f"{heading}▲" in rows(app)[3]
            row = app.variants.list.current_row()
            assert row is not None
            shown = {"error": f"{row.error:.1e}", "trial": str(row.trial), "ranking": fmt.us(row.us)}
            assert shown.get(heading, "") in rows(app)[4 + app.variants.list.cursor - app.variants.list.top]


@pytest.mark.parametrize("mode", [Mode.LIVE, Mode.REPLAY])
@pytest.mark.parametrize("size", [(60, 15), (80, 24), (160, 45)])
async def test_the_title_names_the_kernel_whose_rows_are_shown(
    database: Path, size: tuple[int, int], mode: Mode
) -> None:
    app = over(database, mode=mode)
    heading = "Variants (recorded)" if mode is Mode.REPLAY else "Variants"
    async with running(app, size) as pilot:
        for keys, name in (("2", "matmul"), (("right_square_bracket",), "relu"), (("/", *"us>0"), "relu")):
            await press(app, pilot, *keys)
            assert f"┌ {heading} {name} " in screen_text(app), (keys, screen_text(app))


async def test_a_new_run_elsewhere_leaves_the_kernel_that_one_looks_at(database: Path) -> None:
    app = over(database)
    async with running(app, (160, 45)) as pilot:
        await press(app, pilot, "2", "right_square_bracket")
        assert "Variants relu" in screen_text(app)
        row = app.variants.list.current()
        source = app.source
        source.add(Anew(at=START), *events()[:3])  # type: ignore[union-attr]
        app.tick()
        await settled(app, pilot)
        assert list(app.view.snapshot.kernels) == [matmul().key]
        assert "Variants relu" in screen_text(app)
        assert app.variants.list.current() == row
        await press(app, pilot, "p")
        assert isinstance(app.screen, Prompt)
        assert rows(app)[-4].startswith("Pin relu: BLOCK=")
        await press(app, pilot, "enter")
        with Store.open(database, read_only=True) as store:
            assert [stored.pin.kernel_key for stored in store.pins()] == [relu().key]
        await press(app, pilot, "1", "2")
        assert "Variants matmul" in screen_text(app)


async def test_the_pin_prompt_names_kernel_and_schedule_in_one_line(database: Path) -> None:
    app = over(database)
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "2", "p")
        assert rows(app)[-4].startswith("Pin matmul: M")
        assert rows(app)[-4].rstrip().endswith("Note:")


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (160, 45)])
async def test_the_number_of_rows_stands_beside_any_filter(database: Path, size: tuple[int, int]) -> None:
    app = over(database)
    async with running(app, size) as pilot:
        await press(app, pilot, "2")
        for text in ("us<20", " ".join(["us<2000"] * 40), f"kernel:*{'?' * 300}* us<20", "kernel:*m*"):
            app.variants.set_filter(text)
            await settled(app, pilot)
            top = rows(app)[2]
            assert f"· {fmt.plural(app.variants.list.count(), 'row')} " in top
            assert "/ " in top
            assert top.endswith("┐")


def found_by(database: Path, text: str) -> list[Candidate]:
    wanted = parse_filter(text)
    query = CandidateQuery(matmul().key, context=CONTEXT.key, conditions=wanted.conditions)
    with Store.open(database, read_only=True) as store:
        found = read_found(query, wanted.predicted, Predictions(), with_knobs=False)(store)
        return list(store.candidate_rows(found.numbers).values())


def test_a_filter_finds_the_numbers_as_they_are_shown(database: Path) -> None:
    every = found_by(database, "")
    assert len(every) == ROWS
    for row in every:
        if row.best_us is not None:
            shown = f"us={fmt.us(row.best_us)}"
            assert row.number in {one.number for one in found_by(database, shown)}, shown
            assert row.number not in {one.number for one in found_by(database, shown.replace("=", "!="))}
        if row.shared_bytes:
            assert row.number in {one.number for one in found_by(database, f"smem={fmt.size(row.shared_bytes)}")}


def test_headings_filter_as_their_columns_say(database: Path) -> None:
    every = found_by(database, "")
    by_deploy = {row.number for row in every if row.deploy_us is not None}
    assert {row.number for row in found_by(database, "by:deploy")} == by_deploy
    by_ranking = {row.number for row in every if row.deploy_us is None and row.us is not None}
    assert {row.number for row in found_by(database, "by:rank")} == by_ranking
    assert {row.spills for row in found_by(database, "spill=0")} == {0}
    assert min(row.shared_bytes or 0 for row in found_by(database, "smem>8K")) > 8192


def test_predictions_filter_too(database: Path) -> None:
    every = found_by(database, "st:ok")
    with Store.open(database, read_only=True) as store:
        times = Predictions().of(store, every)
    middle = sorted(times.values())[len(times) // 2]
    assert {row.number for row in found_by(database, f"predicted<{middle!r} st:ok")} == {
        number for number, us in times.items() if us < middle
    }
    off = {row.number: off_percent(row, times[row.number]) for row in every}
    over_ten = {number for number, percent in off.items() if percent is not None and percent > 10}
    assert {row.number for row in found_by(database, "off%>10 st:ok")} == over_ten


async def test_the_knobs_of_the_tables_rows_are_known_and_others_are_refused(database: Path) -> None:
    with Store.open(database) as store:
        store._connection.db.conn.execute("UPDATE measurement SET schedule = '{\"Odd\":7}' WHERE trial = 1")
        assert "Odd" in store.knob_names(matmul().key)
    app = over(database)
    async with running(app, (160, 45)) as pilot:
        await press(app, pilot, "2", "slash")
        await type_text(app, pilot, "Odd=7")
        assert app.variants.list.count() == 1
        await pilot.press(*["backspace"] * 5)
        await type_text(app, pilot, "Od=7")
        assert "Od is no column and no knob here: perhaps Odd" in screen_text(app)
        await pilot.press(*["backspace"] * 4)
        await type_text(app, pilot, "ZZZ=1")
        assert "ZZZ is no column and no knob: write one of us, ranking, predicted" in screen_text(app)


async def test_a_sentence_that_is_cut_ends_in_an_ellipsis(database: Path) -> None:
    app = over(database)
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "2", "slash")
        await type_text(app, pilot, "ZZZ=1")
        assert rows(app)[-2].rstrip().endswith("…")
