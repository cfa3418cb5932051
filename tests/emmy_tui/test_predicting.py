"""Predictions beside measurements: of the rows that are seen, by the prior that steers the next run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from emmy_tui.predicting import Predictions
from engine.store import Candidate, CandidateQuery, Store
from tests.emmy_tui.looking import rows, running, screen_text
from tests.emmy_tui.measured import CONTEXT, fill, matmul, over, press
from tests.emmy_tui.reported import StillPrior


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db")


def candidates(store: Store) -> list[Candidate]:
    numbers = store.candidate_numbers(CandidateQuery(matmul().key, "", CONTEXT.key))
    return list(store.candidate_rows(numbers).values())


def test_every_row_with_a_text_is_predicted(database: Path) -> None:
    with Store.open(database, read_only=True) as store:
        found = candidates(store)
        predictions = Predictions()
        told = predictions.of(store, found)
        assert set(told) == {row.number for row in found}
        assert all(us > 0 for us in told.values())
        assert predictions.of(store, found[::-1]) == told
        assert predictions.version(store)


def test_a_row_of_an_unknown_kernel_is_left_out(database: Path) -> None:
    with Store.open(database, read_only=True) as store:
        row = candidates(store)[0]
        assert Predictions().of(store, [replace(row, kernel="unknown")]) == {}


def test_the_prior_is_read_anew_after_forgetting(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def steering(path: Path) -> StillPrior:
        read.append(path)
        return StillPrior()

    monkeypatch.setattr("emmy_tui.predicting.steering", steering)
    with Store.open(database, read_only=True) as store:
        predictions = Predictions()
        for _ in range(3):
            predictions.of(store, candidates(store))
        assert len(read) == 1
        predictions.forget()
        predictions.of(store, candidates(store))
        assert len(read) == 2


async def test_the_list_shows_them_where_there_is_room(database: Path) -> None:
    app = over(database)
    async with running(app, (160, 45)) as pilot:
        await press(app, pilot, "2")
        assert "predicted  off%" in screen_text(app)
        assert all(float(line.split()[-9]) > 0 for line in rows(app)[4:10])
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert "predicted" not in screen_text(app)


async def test_a_low_screen_keeps_the_knobs_whole(database: Path) -> None:
    app = over(database)
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "2")
        assert "ranking" not in rows(app)[3]
        await press(app, pilot, "s")
        assert "ranking▲" in rows(app)[3]
