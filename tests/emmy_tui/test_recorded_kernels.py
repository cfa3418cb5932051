"""Kernels that only rows tell of, imported or merged: in every list, until a run tells of them."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from emmy_tui.database_source import DatabaseSource, recorded_events
from emmy_tui.known import RECORDED, KnownKernels, Rows, fold
from emmy_tui.once import frame
from emmy_tui.palette import Findings
from engine.deploy import fastest_deployed
from engine.events import Event, KernelFinished, KernelFound, KernelStarted
from engine.snapshot import Snapshot
from engine.store import Store, merge_databases
from engine.vocabulary import Regime
from tests.emmy_tui.looking import application, running, screen_text
from tests.emmy_tui.measured import CONTEXT, _ok, fill, matmul, press, relu, schedules
from tests.emmy_tui.recorded import record
from tests.emmy_tui.scripted import search_events
from tests.emmy_tui.test_empty_database import until

COMMANDS = ("emmy tune --code TEXT", "emmy import RESULTS")


def without_runs(path: Path) -> Path:
    """The database with its measurements and nothing that a run told."""
    fill(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE measurement SET run = NULL")
        for table in ("event", "node", "run"):
            connection.execute(f"DELETE FROM {table}")
        connection.commit()
    return path


def folded(path: Path) -> Snapshot:
    snapshot = Snapshot()
    for event in recorded_events(path):
        fold(snapshot, event)
    return snapshot


def test_rows_without_a_run_are_kernels_with_their_best(tmp_path: Path) -> None:
    path = without_runs(tmp_path / "tune.db")
    rows = folded(path).kernels
    row = rows[matmul().key]
    assert set(rows) == {matmul().key, relu().key}
    with Store.open(path, read_only=True) as store:
        best = store.best(matmul().key, CONTEXT.key, Regime.RANKING)
        assert best is not None
        assert (row.chosen_us, row.best_schedule) == (best.us, str(best.schedule))
        assert row.candidates == dict((key, n) for key, _, n in store.kernel_contexts(matmul().key))[CONTEXT.key]
    assert (row.state, row.count) == (RECORDED, 0)


def test_a_deploy_time_decides_and_the_sum_is_without_them(tmp_path: Path) -> None:
    snapshot = folded(fill(tmp_path / "tune.db"))
    row = snapshot.kernels[matmul().key]
    assert row.deploy_us is not None
    assert row.chosen_us == row.deploy_us
    assert snapshot.sum_best_us() is None


def test_one_frame_lists_them(tmp_path: Path) -> None:
    path = without_runs(tmp_path / "tune.db")
    text = frame(recorded_events(path), path, ascii_only=True)
    line = next(line for line in text.splitlines() if line.strip().startswith("matmul"))
    assert all(word in line for word in ("recorded", " - ", "60"))
    assert "2/2 kernels" in text


def test_one_frame_of_an_empty_database_names_what_fills_it(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    Store.open(path).close()
    text = frame(recorded_events(path), path, ascii_only=True)
    assert all(command in " ".join(text.split()) for command in COMMANDS)


def test_a_run_that_tells_of_one_takes_its_place(tmp_path: Path) -> None:
    snapshot = folded(without_runs(tmp_path / "tune.db"))
    key = matmul().key
    told = KernelFound(at=1.0, kernel=key, label="mm", family="f", shape="s", count=3, flops=1, bytes_moved=1)
    fold(snapshot, told)
    row = snapshot.kernels[key]
    assert (row.label, row.state, row.count, row.candidates) == ("mm", "waiting", 3, 0)


def test_what_was_told_is_not_told_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emmy_tui.known.LOOK_S", 0.0)
    monkeypatch.setattr("emmy_tui.known.LOOK_SHARE", 1e9)
    path = fill(tmp_path / "tune.db")
    known = KnownKernels()
    with Store.open(path, read_only=True) as store:
        assert sum(isinstance(event, Rows) for event in known.news(store)) == 2
        assert list(known.news(store)) == []
        with Store.open(path) as writer:
            writer.record_measurement(_ok(relu(), schedules(relu(), 2)[1], 0), run=writer.runs()[0].id)
        (news,) = known.news(store)
        assert isinstance(news, Rows)
        assert (news.found.kernel, news.count, news.us) == (relu().key, 2, 10.0)


@pytest.mark.parametrize(
    "told", [(0.9, 1.0), (1.0, 0.9), (1.1, 1.0), (1.0, 1.0), (1.0,), (0.9,), (None, 1.0), (1.0, None)]
)
def test_where_runs_tell_several_times_of_one_schedule_that_of_the_rows_counts(
    tmp_path: Path, told: tuple[float | None, ...]
) -> None:
    """As runs of two machines do whose databases were merged: each took a time, and one is kept."""
    path = fill(tmp_path / "tune.db")
    key = matmul().key
    with Store.open(path, read_only=True) as store:
        row = fastest_deployed(matmul(), store, CONTEXT.key)
        assert row is not None
        assert row.us is not None
        schedule = str(row.schedule)
        events: list[Event] = []
        for share in told:
            us = None if share is None else share * row.us
            events += [
                KernelFound(at=1.0, kernel=key, label="mm", family="f", shape="s", count=1, flops=1, bytes_moved=1),
                KernelStarted(at=1.0, kernel=key, patience=50),
                KernelFinished(at=1.0, kernel=key, state="done", reason="", best_us=us, best_schedule=schedule),
            ]
        known, snapshot = KnownKernels(), Snapshot()
        for event in (*known.noted(events, CONTEXT.key), *known.events(store)):
            fold(snapshot, event)
    assert (snapshot.kernels[key].chosen_us, snapshot.kernels[key].best_schedule) == (row.us, schedule)


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_every_list_has_them(tmp_path: Path, size: tuple[int, int]) -> None:
    app = application(DatabaseSource(without_runs(tmp_path / "tune.db")))
    async with running(app, size) as pilot:
        await until(pilot, lambda: len(app.view.snapshot.kernels) == 2)
        app.tick()
        await pilot.pause()
        assert all(name in screen_text(app) for name in ("matmul", "relu"))
        await press(app, pilot, "2")
        await until(pilot, lambda: app.variants.list.count() > 1)
        await press(app, pilot, "6")
        await until(pilot, lambda: len(app.pins.deploys.found) == 2)
        found = [text for text, _, _ in Findings(app.screen)._kernels()]
        assert all(any(name in text for text in found) for name in ("matmul", "relu"))


async def test_rows_that_come_while_a_database_is_looked_at_are_listed(tmp_path: Path) -> None:
    path, other = tmp_path / "tune.db", without_runs(tmp_path / "other.db")
    record(path, search_events())
    app = application(DatabaseSource(path))
    async with running(app, (160, 45)) as pilot:
        await until(pilot, lambda: not app.view.reading and bool(app.view.snapshot.kernels))
        told = len(app.view.snapshot.kernels)
        await asyncio.to_thread(merge_databases, [path, other])
        await until(pilot, lambda: len(app.view.snapshot.kernels) == told + 2)
        assert app.view.snapshot.kernels[matmul().key].state == RECORDED
        assert app.view.state == "finished"
