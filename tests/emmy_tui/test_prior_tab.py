"""The Prior tab, over a real database: the cold model's report, and a learned one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from emmy_tui.dialogs import Reading
from emmy_tui.text import UNICODE, line_width, plain
from emmy_tui.widgets.prior_panels import importance_lines, scatter_lines, trained_lines, verdict_spans
from engine.deploy import PriorReport
from engine.deploy.prior_report import PredictedPair
from tests.emmy_tui.looking import running, screen_text
from tests.emmy_tui.measured import fill, over, press
from tests.emmy_tui.reported import report


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db")


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emmy_tui.prior_reading.report_steps", lambda store: iter([report()]))


@pytest.mark.usefixtures("reported")
@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_verdict_scatter_importance_and_lists(database: Path, size: tuple[int, int]) -> None:
    app = over(database)
    async with running(app, size) as pilot:
        await press(app, pilot, "4")
        text = " ".join(screen_text(app).split())
        for words in ("QUARANTINED", "rank correlation", "Predicted vs measured", "What decides", "BLOCK_M", "softmax"):
            assert words in text
        assert app.prior.focused_panel() == "ranked"
        assert app.prior.residuals.display == (size[0] >= 120)


@pytest.mark.usefixtures("reported")
async def test_flipping_scoping_zooming_and_what_it_was_trained_on(database: Path) -> None:
    app = over(database)
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "4", "v")
        assert app.prior.focused_panel() == "residuals"
        assert "predicted" in screen_text(app)
        await press(app, pilot, "v", "enter")
        assert app.prior.scatter.kernel == app.prior.ranked.kernels[0].kernel
        assert "all kernels" not in screen_text(app)
        await press(app, pilot, "enter")
        assert "all kernels" in screen_text(app)
        await press(app, pilot, "t")
        assert isinstance(app.screen, Reading)
        assert "learned-2-129: 3 kernels" in screen_text(app)
        await press(app, pilot, "escape", "z")
        assert not app.prior.trust.display


@pytest.mark.usefixtures("reported")
async def test_exporting(database: Path) -> None:
    app = over(database)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "4", "e", "j")
    (file,) = (database.parent / "out").glob("emmy-prior-*.json")
    assert json.loads(file.read_text())[0]["label"] == "softmax"


def test_a_quarantined_model_says_so_once() -> None:
    text = plain(verdict_spans(report()))
    assert text == "QUARANTINED  below 0.5, rank correlation 0.31 on 3 held-out kernels"
    assert plain(verdict_spans(report(trusted=True, reason="trusted, rank correlation 0.87"))).startswith(
        "TRUSTED  rank"
    )


@pytest.mark.parametrize(("width", "height"), [(16, 5), (38, 9), (120, 30)])
def test_a_scatter_fills_its_place_exactly(width: int, height: int) -> None:
    lines = scatter_lines(report().pairs, width, height, UNICODE)
    assert len(lines) == height
    assert {line_width(line) for line in lines} == {width}


def test_one_time_alone_is_a_picture_too() -> None:
    assert len(scatter_lines([PredictedPair("k", "f", 5.0, 5.0)], 40, 10, UNICODE)) == 10


def test_bars_follow_what_the_trees_gain() -> None:
    first, second = importance_lines(report().importance[:2], 40, 9, UNICODE)
    assert plain(first).startswith("BLOCK_M")
    assert plain(first).count("▇") > plain(second).count("▇") > 0


def test_what_it_was_trained_on_is_listed() -> None:
    text = "\n".join(plain(line) for line in trained_lines(report(), 90, UNICODE))
    assert "matmul 512x512x512" in text
    assert "60 rows" in text


async def test_what_the_database_at_hand_says_is_shown(database: Path) -> None:
    app = over(database)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "4")
        assert app.prior.trust.report is not None
        assert app.prior.trust.report.version in screen_text(app)


@pytest.mark.usefixtures("reported")
async def test_the_rows_are_those_that_it_was_trained_on(database: Path) -> None:
    known = report()
    assert known.trained_on
    app = over(database)
    async with running(app, (160, 45)) as pilot:
        await press(app, pilot, "4")
        assert f"trained on {known.rows} rows of {len(known.trained_on)} kernel" in screen_text(app)
        assert f"over {len(known.kernels)} kernels  " in screen_text(app)


async def test_a_long_reading_gives_way_to_what_is_asked_meanwhile(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def steps(store: object) -> Iterator[PriorReport | None]:
        for piece in range(3):
            told.append(f"piece {piece}")
            if piece == 0:
                app.call_from_thread(app.desk.ask, "rows", lambda store: told.append("rows"), print, print)
            yield None
        yield report()

    monkeypatch.setattr("emmy_tui.prior_reading.report_steps", steps)
    monkeypatch.setattr("emmy_tui.prior_reading.AT_ONCE_S", 0.0)
    app = over(database)
    async with running(app, (160, 45)) as pilot:
        await press(app, pilot, "4")
        assert told == ["piece 0", "rows", "piece 1", "piece 2"]
        assert "QUARANTINED" in screen_text(app)


@pytest.mark.usefixtures("reported")
async def test_on_how_many_rows_of_how_many_it_was_judged_is_said(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = tuple(replace(one, rows=4000, measured=300_000) for one in report().kernels)
    monkeypatch.setattr("emmy_tui.prior_reading.report_steps", lambda store: iter([report(kernels=kernels)]))
    app = over(database)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "4")
        assert "over 3 kernels, 12000 of 900k rows" in screen_text(app)


@pytest.mark.usefixtures("reported")
async def test_in_a_low_terminal_what_is_seen_says_something_and_the_tab_key_leads_to_the_rest(database: Path) -> None:
    app = over(database)
    async with running(app, (60, 15)) as pilot:
        await press(app, pilot, "4")
        assert not app.prior.scatter.display
        assert app.prior.ranked.size.height >= 5
        await press(app, pilot, "tab")
        assert app.prior.focused_panel() == "scatter"
        assert app.prior.scatter.size.height >= 5
        assert not app.prior.ranked.display
        await press(app, pilot, "v")
        assert app.prior.focused_panel() == "residuals"
