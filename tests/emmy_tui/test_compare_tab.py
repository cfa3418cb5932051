"""The Compare tab on the running application, over a real database with two runs; and its arithmetic."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emmy_tui.comparison import Choice, Pair, Verdict, listed_runs, pair_of, read_comparison
from emmy_tui.dialogs import Reading
from emmy_tui.run_state import GONE_S
from emmy_tui.tabs.compare import RunChoice
from emmy_tui.text import UNICODE
from emmy_tui.verdicts import judged, timing_of
from emmy_tui.widgets.compare_list import INTERVAL, interval_text, ratio_text, side_text
from engine.events import Health, RunState
from engine.store import KernelResult, RunInfo, Store
from engine.store.run_results import BestTime
from engine.vocabulary import Measurement, Regime, Schedule, Status, Timing
from tests.emmy_tui.looking import rows, running, screen_text
from tests.emmy_tui.measured import CONTEXT, fill, over, press, type_text
from tests.emmy_tui.two_runs import measured, pointwise, record_runs

WIDE = (160, 45)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return record_runs(tmp_path / "tune.db")


async def test_kernels_stand_beside_each_other_with_a_verdict(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "5")
        assert app.focused is app.compare.list
        verdicts = [(pair.label, pair.verdict) for pair in app.compare.list.ordered()]
        assert verdicts == [
            ("matmul", Verdict.A_FASTER),
            ("relu", Verdict.NOISE),
            ("exp", Verdict.SAME),
            ("neg", Verdict.ONLY_B),
        ]
        text = screen_text(app)
        assert "common 3/4  geomean A/B 0.969" in text
        (line,) = [row for row in rows(app) if " matmul 512" in row]
        assert "12.41    13.60   0.913   0.886-0.940 A faster         deploy" in line
        (line,) = [row for row in rows(app) if " relu " in row]
        assert "3.070    3.080   0.997   0.967-1.027 within noise     rank" in line


async def test_one_measurement_that_both_runs_were_served_is_called_so_without_an_interval(database: Path) -> None:
    with Store.open(database) as store:
        program = store.program(store.runs()[0].id)
        for number in (3, 4):
            info = RunInfo("torch.tanh(x)", program, "cuda:0", CONTEXT.gpu, CONTEXT.key, number, 50, "cold-1")
            store.record_kernel(pointwise("tanh"))
            run = store.start_run(info)
            store.record_events(run, measured(pointwise("tanh"), 2.0, Regime.RANKING, 0))
            store.end_run(run, RunState.FINISHED)
        (pair,) = read_comparison(Choice(run))(store).pairs
    assert (pair.verdict, pair.ratio, pair.low, interval_text(pair)) == (Verdict.SHARED, 1.0, None, "-")


async def test_enter_says_it_in_full_and_s_sorts(database: Path) -> None:
    app = over(database)
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "5", "enter")
        assert isinstance(app.screen, Reading)
        assert "differ in" in screen_text(app)
        await press(app, pilot, "escape", "s")
        assert "by ratio ▼" in screen_text(app)
        assert [pair.label for pair in app.compare.list.ordered()] == ["exp", "relu", "matmul", "neg"]
        await press(app, pilot, "s", "S")
        assert "by time ▲" in screen_text(app)
        assert [pair.label for pair in app.compare.list.ordered()] == ["neg", "relu", "exp", "matmul"]


async def test_runs_are_chosen_and_swapped(database: Path) -> None:
    app = over(database)
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "5")
        before = app.compare.list.comparison
        assert before is not None
        await press(app, pilot, "w")
        swapped = app.compare.list.comparison
        assert swapped is not None
        assert (swapped.a.run.id, swapped.b.run.id) == (before.b.run.id, before.a.run.id)
        await press(app, pilot, "a")
        assert isinstance(app.screen, RunChoice)
        await press(app, pilot, "enter")
        chosen = app.compare.list.comparison
        assert chosen is not None
        assert chosen.a.run.id == before.a.run.id
        await press(app, pilot, "b", "j", "enter")
        assert app.compare.list.comparison is not None
        assert app.compare.list.comparison.b.run.id == before.b.run.id
        await press(app, pilot, "b", "escape")
        assert not isinstance(app.screen, RunChoice)


async def test_a_newest_run_with_nothing_in_common_waits_to_be_chosen_and_a_stays_when_b_is(database: Path) -> None:
    with Store.open(database) as store:
        known = store.runs()
        program = store.program(known[0].id)
        info = RunInfo("torch.tanh(x)", program, "cuda:0", CONTEXT.gpu, CONTEXT.key, 3, 50, "cold-1")
        alone = store.start_run(info)
        store.record_kernel(pointwise("tanh"))
        store.record_events(alone, measured(pointwise("tanh"), 2.0, Regime.RANKING, 0))
        store.end_run(alone, RunState.FINISHED)
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "5")
        shown = app.compare.list.comparison
        assert shown is not None
        assert [shown.b.run.id, shown.a.run.id] == [run.id for run in known]
        await press(app, pilot, "b", "enter")
        beside = app.compare.list.comparison
        assert beside is not None
        assert (beside.a.run.id, beside.b.run.id) == (shown.a.run.id, alone)
        await press(app, pilot, "a", "enter")
        assert app.compare.list.comparison is not None
        assert app.compare.list.comparison.a.run.id == alone


async def test_another_database_is_compared_with(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(database.parent)
    fill(database.parent / "other.db", rows=8)
    app = over(database)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "5", "o")
        await type_text(app, pilot, "nowhere")
        assert "nowhere is no file" in screen_text(app)
        await press(app, pilot, *["backspace"] * 7)
        await type_text(app, pilot, "other.db")
        await press(app, pilot, "enter")
        comparison = app.compare.list.comparison
        assert comparison is not None
        assert (comparison.a.path.name, comparison.b.path.name) == ("tune.db", "other.db")
        assert comparison.pairs[0].ratio is not None
        ratio = comparison.pairs[0].ratio
        await press(app, pilot, "w")
        swapped = app.compare.list.comparison
        assert swapped is not None
        assert (swapped.a.path.name, swapped.b.path.name) == ("other.db", "tune.db")
        assert (swapped.a.run.id, swapped.b.run.id) == (comparison.b.run.id, comparison.a.run.id)
        (pair,) = [one for one in swapped.pairs if one.kernel == comparison.pairs[0].kernel]
        assert pair.ratio == pytest.approx(1 / ratio)
        await press(app, pilot, "a")
        assert "Run A" in screen_text(app)
        assert len(app.screen._runs) == 1, "those of other.db"
        await press(app, pilot, "escape", "b")
        assert len(app.screen._runs) == 2
        await press(app, pilot, "escape", "w")
        again = app.compare.list.comparison
        assert again is not None
        assert [pair.verdict for pair in again.pairs] == [pair.verdict for pair in comparison.pairs]


async def test_one_run_says_what_to_do(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=8))
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "5")
        assert "There is one run only: tune again, or take" in screen_text(app)
        await press(app, pilot, "e")
        assert "Two runs are compared here; o takes the second one" in app.footer.said


async def test_the_comparison_is_exported(database: Path) -> None:
    app = over(database)
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "5", "e", "j")
    (file,) = (database.parent / "out").glob("emmy-comparison-*.json")
    first = json.loads(file.read_text())[0]
    assert (first["label"], first["verdict"], first["regime"]) == ("matmul", "A faster", "deploy")
    assert first["a_us"] == 12.41


def test_an_imported_run_has_its_rows(tmp_path: Path) -> None:
    with Store.open(fill(tmp_path / "tune.db"), read_only=True) as store:
        matmul, relu = store.run_results(store.runs()[0].id)
        assert (matmul.label, matmul.failed, relu.ok) == ("matmul", 8, 1)
        assert matmul.ranking is not None
        assert matmul.ranking.us == 10.0


TIMES = st.floats(0.1, 1e6)


@given(TIMES, TIMES, st.floats(0.0, 0.2), st.floats(0.0, 0.2))
def test_swapping_sides_swaps_the_verdict(a_us: float, b_us: float, a_wide: float, b_wide: float) -> None:
    def side(us: float, wide: float) -> KernelResult:
        return KernelResult("k", "k", "", 1, 0, BestTime(us, us * (1 - wide), us * (1 + wide), {}), None)

    def told(a: KernelResult, b: KernelResult) -> Pair:
        assert a.ranking is not None
        assert b.ranking is not None
        return judged(pair_of(a, b), timing_of(a.ranking), timing_of(b.ranking), None)

    there, back = told(side(a_us, a_wide), side(b_us, b_wide)), told(side(b_us, b_wide), side(a_us, a_wide))
    swapped = {Verdict.A_FASTER: Verdict.B_FASTER, Verdict.B_FASTER: Verdict.A_FASTER}
    assert there.low is not None
    assert there.high is not None
    at_the_edge = min(abs(there.low - 1), abs(there.high - 1)) < 1e-9
    assert swapped.get(there.verdict, there.verdict) is back.verdict or at_the_edge
    assert there.ratio == pytest.approx(a_us / b_us)
    assert there.low <= a_us / b_us * (1 + 1e-9)
    assert there.high >= a_us / b_us * (1 - 1e-9)


async def test_kept_samples_decide_and_not_their_extremes(database: Path) -> None:
    """The intervals of the samples overlap, their medians don't: a run's own statistics call that a difference."""
    with Store.open(database) as store:
        old, new = store.runs()
        for run, best in ((old, 3.08), (new, 3.07)):
            own = next(one for one in store.run_results(run.id) if one.label == "relu")
            assert own.ranking is not None
            samples = tuple(best * (1 + step / 20_000) for step in (-2, -1, 0, 0, 1, 2, 0, 1, -1))
            timing = Timing(best, best * 0.99, best * 1.01, samples)
            row = Measurement(
                own.kernel, Schedule.of(own.ranking.schedule), Regime.RANKING, CONTEXT.key, Status.OK, timing
            )
            store.record_measurement(row, run=run.id)
            store.record_events(
                run.id,
                [Health(at=1.0, search_share=0.1, gpu_idle_share=0.1, compiling=0, respawns=0, noise_share=0.0005)],
            )
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "5")
        (relu,) = [pair for pair in app.compare.list.ordered() if pair.label == "relu"]
        assert relu.verdict is Verdict.A_FASTER
        assert relu.high is not None
        assert relu.high < 1


def test_a_run_without_an_end_is_said_to_have_ended(tmp_path: Path) -> None:
    path = record_runs(tmp_path / "tune.db")
    with sqlite3.connect(path) as database:
        database.execute("UPDATE run SET state = 'running', ended_at = NULL")
    with Store.open(path, read_only=True) as store:
        heard = store.last_heard(store.runs()[-1].id)
        assert heard is not None
        assert [state for _, state in listed_runs(store, heard + 1)] == ["running", "ended without a word"]
        assert {state for _, state in listed_runs(store, heard + GONE_S + 1)} == {"ended without a word"}


@pytest.mark.parametrize("width", [77, 160])
def test_the_gpu_and_the_file_stay_beside_a_long_command(database: Path, width: int) -> None:
    with Store.open(database) as store:
        side = read_comparison(Choice())(store).a
    target = "torch.matmul(torch.randn(512, 512, device='cuda'), torch.randn(512, 512, device='cuda'))" * 3
    text = side_text(replace(side, run=replace(side.run, target=target)), UNICODE, width)
    assert len(text) <= width
    assert "torch.matmul(" in text
    for words in (side.run.gpu, side.path.name):
        assert words in text


def test_the_interval_agrees_with_the_verdict_to_its_last_digit() -> None:
    pair = Pair("k", "k", "", Regime.DEPLOY, None, None, 0.9958, 0.9912, 0.9997, Verdict.A_FASTER)
    assert interval_text(pair) == "0.9912-0.9997"
    assert len(interval_text(pair)) <= INTERVAL
    assert interval_text(replace(pair, verdict=Verdict.NOISE)) == "0.991-1.000"
    assert ratio_text(replace(pair, ratio=0.9998)) == "0.9998"
    assert ratio_text(replace(pair, ratio=None)) == "-"
