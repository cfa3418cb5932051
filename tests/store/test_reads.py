"""Lookups give back what was recorded, and a row that lies is named."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.events import RunFinished, RunState
from engine.store import Store, StoreError
from engine.store.errors import BadRow
from engine.vocabulary import Failure, FailureKind, Regime, Schedule, Timing


def change(path: Path, statement: str, *parameters: object) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement, parameters)
    connection.commit()
    connection.close()


def test_the_fastest_wins_and_ties_break_by_knob_order(store: Store, run: str, sample) -> None:
    place = sample.matmul.key, sample.context.key
    assert store.best(*place, Regime.RANKING) is None
    for measurement in (
        sample.ok(12.0),
        sample.ok(10.0, NUM_WARPS=8),
        sample.ok(10.0, BLOCK_M=32, NUM_WARPS=16),
        sample.ok(10.0, BLOCK_M=128, NUM_WARPS=1),
        sample.failed(BLOCK_M=16),
    ):
        for regime in Regime:
            store.record_measurement(replace(measurement, regime=regime), run=run)
    for regime in Regime:
        best = store.best(*place, regime)
        assert best == replace(sample.ok(10.0, regime, BLOCK_M=32, NUM_WARPS=16), cached=True)


def test_schedules_come_in_the_order_of_recording(store: Store, run: str, sample) -> None:
    schedules = [sample.schedule(NUM_WARPS=warps) for warps in (8, 1, 4)]
    for schedule, measurement in zip(schedules, (sample.ok(), sample.failed(), sample.ok()), strict=True):
        store.record_measurement(replace(measurement, schedule=schedule), run=run)
    assert store.schedules(sample.matmul.key, sample.context.key) == tuple(schedules)
    assert store.schedules(sample.matmul.key, "another context") == ()


def test_times_of_another_context_are_not_served(store: Store, run: str, sample) -> None:
    store.record_measurement(sample.ok(), run=run)
    other = replace(sample.context, driver="999")
    assert store.ranking(sample.matmul.key, sample.schedule(), other.key) is None
    assert store.best(sample.matmul.key, other.key, Regime.RANKING) is None


def test_kernels_programs_and_runs_come_back(store: Store, run: str, sample) -> None:
    assert store.kernels() == (sample.matmul, sample.relu)
    found = store.kernel(sample.matmul.key)
    assert (found, found.label) == (sample.matmul, "matmul")
    assert store.program(run) == sample.program
    later = store.start_run(sample.run_info("later"))
    store.end_run(run, RunState.FINISHED, json.dumps({"measured": 3}))
    first, second = store.runs()
    assert store.latest_run() == second
    assert (first.id, first.state, json.loads(first.summary)) == (run, "finished", {"measured": 3})
    assert (second.id, second.state, second.ended_at, second.target) == (later, "running", None, "later")
    assert first.ended_at >= first.started_at


def test_groupings_come_back_in_order(store: Store, run: str, sample) -> None:
    names = [store.record_grouping(run, sample.grouping) for _ in range(3)]
    store.score_grouping(names[0], 30.0)
    store.score_grouping(names[1], None, "relu could not be tuned")
    first, second, third = store.recorded_groupings(run)
    assert [first.id, second.id, third.id] == names
    assert (first.grouping, first.decisions) == (sample.grouping, sample.grouping.decisions)
    assert (first.sum_us, second.sum_us, second.reason) == (30.0, None, "relu could not be tuned")


def test_assemblies_are_found_by_plan_and_schedules(store: Store, run: str, sample) -> None:
    schedules = {sample.matmul.key: sample.schedule(), sample.relu.key: Schedule.of({"BLOCK": 128})}
    other = {**schedules, sample.relu.key: Schedule.of({"BLOCK": 256})}
    context = sample.context.key
    assert store.assembled(sample.grouping, context) is None
    timing = Timing(31.5, 31.0, 32.0, (31.5, 31.5))
    failure = Failure(FailureKind.WRONG_RESULT, "off")
    store.record_assembled(store.record_grouping(run, sample.grouping), timing, 1e-4, None, schedules)
    store.record_assembled(store.record_grouping(run, sample.grouping), None, 0.5, failure, other)
    found = store.assembled(sample.grouping, context)
    assert (found.timing, found.error, found.failure, dict(found.schedules)) == (timing, 1e-4, None, schedules)
    assert store.assembled(sample.grouping, context, other).failure == failure
    assert store.assembled(sample.grouping, context, {}) is None
    assert store.assembled(sample.grouping, "another context") is None
    assert store.assembled(replace(sample.grouping, decisions=()), context) is None
    assert [item.assembled_us for item in store.recorded_groupings(run)] == [31.5, None]


def test_a_grouping_that_is_put_together_anew_keeps_no_time_of_other_schedules(store: Store, run: str, sample) -> None:
    schedules = {sample.matmul.key: sample.schedule(), sample.relu.key: Schedule.of({"BLOCK": 128})}
    other = {**schedules, sample.relu.key: Schedule.of({"BLOCK": 256})}
    name = store.record_grouping(run, sample.grouping)
    for pdl, us in ((False, 40.0), (True, 30.0)):
        store.record_assembled(name, Timing(us, us, us, (us,)), 1e-4, None, schedules, pdl=pdl)
    store.record_assembled(name, Timing(35.0, 35.0, 35.0, (35.0,)), 1e-4, None, other)
    (row,) = store.recorded_groupings(run)
    assert (row.assembled_us, row.pdl_us, dict(row.schedules)) == (35.0, None, other)
    assert store.assembled(sample.grouping, sample.context.key, other, pdl=True) is None
    before = store.assembled(name, sample.context.key, schedules, pdl=True)
    assert before is not None
    assert before.timing == Timing(30.0, 30.0, 30.0, (30.0,))
    assert store.assembled("nowhere/1", sample.context.key, schedules) is None


def test_when_a_time_was_taken_is_known_a_regime(path: Path, sample) -> None:
    clock = iter(range(100, 1000))
    with Store.open(path, clock=lambda: float(next(clock))) as store:
        run = sample.begin(store)
        key, schedule, context = sample.matmul.key, sample.schedule(), sample.context.key
        assert store.measured_at(key, schedule, context, Regime.RANKING) is None
        store.record_measurement(sample.ok(), run=run)
        store.record_measurement(sample.ok(regime=Regime.DEPLOY), run=run)
        ranking, deploy = (store.measured_at(key, schedule, context, one) for one in (Regime.RANKING, Regime.DEPLOY))
        assert ranking is not None
        assert deploy is not None
        assert 100.0 <= ranking < deploy
        assert store.measured_at(key, schedule, "another context", Regime.DEPLOY) is None


def test_a_summary_from_before_graphs_were_refined_is_read(store: Store, run: str) -> None:
    names = ("measured", "cached", "failed", "best_us", "sum_us", "assembled_us", "search_share", "gpu_idle_share")
    store.end_run(run, RunState.FINISHED, json.dumps({**dict.fromkeys(names, 1), "wall_s": 2.0}))
    (end,) = (event for event in store.events_of(run) if isinstance(event, RunFinished))
    assert (end.wall_s, end.in_place, end.alone_us) == (2.0, 0, None)


SPOILS = [
    ("UPDATE kernel SET body = ?", lambda s, run, x: s.kernel(x[0]), "kernel"),
    ("UPDATE run SET program = ?", lambda s, run, x: s.program(run), "the program of run"),
    ("UPDATE grouping SET plan = ?", lambda s, run, x: s.recorded_groupings(run), "grouping"),
    ("UPDATE measurement SET samples = ?", lambda s, run, x: s.ranking(*x), "the ranking row of kernel"),
    ("UPDATE measurement SET status = ?", lambda s, run, x: s.ranking(*x), "the ranking row of kernel"),
    ("UPDATE measurement SET schedule = ?", lambda s, run, x: s.schedules(x[0], x[2]), "a schedule of kernel"),
    ("UPDATE measurement SET schedule = ?", lambda s, run, x: s.variants(), "the schedule"),
    ("UPDATE node SET deploy_samples = ?", lambda s, run, x: s.deploy(*x), "the deploy row of kernel"),
    ("UPDATE event SET body = ?", lambda s, run, x: list(s.events_of(run)), "event"),
    ("UPDATE event SET kind = ?", lambda s, run, x: list(s.events_of(run)), "event"),
    ("UPDATE run SET summary = ?", lambda s, run, x: list(s.events_of(run)), "the summary of run"),
]
LIES = ['{"a":', "[]", "null", '{"__class__": "os.system"}', "[[1e999]]", '"x"', "[" * 5000, "7"]


@pytest.mark.parametrize("lie", LIES, ids=range(len(LIES)))
@pytest.mark.parametrize(("statement", "ask", "named"), SPOILS, ids=[statement for statement, _, _ in SPOILS])
def test_a_lying_row_is_named_or_harmless(
    path: Path, sample, statement: str, ask: Callable[..., object], named: str, lie: str
) -> None:
    with Store.open(path) as store:
        run = sample.begin(store)
        store.record_grouping(run, sample.grouping)
        store.record_measurement(sample.ok(), run=run)
        store.record_measurement(sample.ok(regime=Regime.DEPLOY), run=run)
        store.end_run(run, RunState.FINISHED)
    change(path, statement, lie)
    with Store.open(path, read_only=True) as store:
        said = complaint(lambda: ask(store, run, (sample.matmul.key, sample.schedule(), sample.context.key)))
    assert said is None or named in said
    assert said is None or ("\n" not in said and len(said) < 500)


def complaint(ask: Callable[[], object]) -> str | None:
    """The text of the BadRow that asking raises; None if the answer is harmless."""
    try:
        ask()
    except BadRow as error:
        return str(error)
    return None


def test_what_is_not_there_is_said(store: Store, run: str) -> None:
    for ask in (store.kernel, store.program, lambda key: list(store.events_of(key))):
        with pytest.raises(StoreError, match="holds no"):
            ask("nothing")


def test_the_second_best_is_the_fastest_of_the_other_schedules(store: Store, run: str, sample) -> None:
    place = sample.matmul.key, sample.context.key
    first, second = sample.ok(10.0, NUM_WARPS=8), sample.ok(11.0, NUM_WARPS=4)
    for measurement in (second, first, sample.ok(12.0, NUM_WARPS=16), sample.failed(BLOCK_M=16)):
        for regime in Regime:
            store.record_measurement(replace(measurement, regime=regime), run=run)
    for regime in Regime:
        found = store.second_best(*place, regime, first.schedule)
        assert found == replace(second, regime=regime, cached=True)
        assert store.second_best("no kernel", place[1], regime, first.schedule) is None
