"""One row that can't be read costs itself and one sentence: every answer is as if the row weren't there."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.events import GroupingsExplored, Measured, RunState
from engine.store import LeftOut, Store, StoreError, Suggestion, unlike
from engine.vocabulary import Regime, Timing, Verdict

NO_TIMES = st.one_of(
    st.floats(max_value=0.0, allow_nan=False),
    st.sampled_from([math.inf, 1e-320, 5e-324, "NaN", "", "fast", "[1]", b"\xff", b"10", 0, -1, -(2**62)]),
)
RANKING = ("median_us", "low_us", "high_us")
DEPLOY = ("deploy_us", "deploy_low_us", "deploy_high_us")
WARPS = (1, 2, 4, 8)


def judge(mine: Timing, other: Timing, noise: float | None) -> Verdict:
    return Verdict.FASTER if other.median_us < mine.median_us else Verdict.SAME


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, sample) -> Path:
    """Four candidates in both regimes, the first the fastest; two groupings, a pin, a suggestion, events."""
    path = tmp_path_factory.mktemp("left_out") / "base.db"
    with Store.open(path) as store:
        run = sample.begin(store)
        for trial, warps in enumerate(WARPS, start=1):
            for regime in Regime:
                store.record_measurement(sample.ok(10.0 + trial, regime, NUM_WARPS=warps), run=run, trial=trial)
        for us in (30.0, 31.0):
            grouping = store.record_grouping(run, sample.grouping)
            store.score_grouping(grouping, us)
            schedules = {sample.matmul.key: sample.schedule()}
            store.record_assembled(grouping, Timing(us, us, us, (us,)), schedules=schedules)
        store.record_pin(sample.matmul.key, sample.schedule(NUM_WARPS=8), sample.context.key, author="ana")
        store.suggest([Suggestion(sample.matmul.key, sample.schedule(), sample.context, "elsewhere", 3.0)])
        store.forbid({"NUM_WARPS": 16}, kernel_key=sample.matmul.key, author="ana")
        told = Measured(
            at=1.0, kernel=sample.matmul.key, node="n", schedule="NUM_WARPS=4", regime="ranking", trial=1, status="ok"
        )
        store.record_events(run, [told, told])
        store.end_run(run, RunState.FINISHED)
    return path


def edited(base: Path, folder: Path, statement: str, *parameters: object) -> Path:
    path = folder / "edited.db"
    shutil.copyfile(base, path)
    connection = sqlite3.connect(path)
    connection.execute(statement, parameters)
    connection.commit()
    connection.close()
    return path


def answers(store: Store, sample: Any) -> dict[str, Any]:
    """All that is asked of a kernel's times, in comparable form."""
    place = sample.matmul.key, sample.context.key
    found: dict[str, Any] = {"timed": store.timed(*place), "pairs": store.regime_pairs(place[1])}
    for regime in Regime:
        found[f"best {regime}"] = store.best(*place, regime)
        found[f"second {regime}"] = store.second_best(*place, regime, sample.schedule(NUM_WARPS=2))
        for warps in WARPS:
            schedule = sample.schedule(NUM_WARPS=warps)
            found[f"fastest {regime} {warps}"] = store.fastest_of(place[0], schedule, place[1], regime)
    standings = [(one.us, one.best_us, one.standing) for one in store.pin_standings(judge)]
    return {**found, "standings": standings}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=NO_TIMES, column=st.sampled_from((*RANKING, *DEPLOY)), warps=st.sampled_from(WARPS))
def test_a_time_that_is_none_is_a_row_that_is_not_there(
    base: Path, tmp_path: Path, sample, value: object, column: str, warps: int
) -> None:
    key = sample.schedule(NUM_WARPS=warps).key
    table, gone = ("node", "deploy_status = NULL") if column in DEPLOY else ("measurement", "status = 'gone'")
    edit = f"UPDATE {table} SET {column} = ? WHERE schedule = ?"
    with Store.open(edited(base, tmp_path, edit, value, key), read_only=True) as store:
        found = answers(store, sample)
        said = store.left_out
        row = store.variants(sample.matmul.label, 4)[0].rows
    (named,) = said
    assert f"of table {table} (a {'deploy' if column in DEPLOY else 'ranking'} row of kernel" in named
    assert "can't be read" in named
    assert "sqlite3" in named
    assert all(one.best_us is not None and 0 < one.best_us < math.inf for one in row)
    with Store.open(edited(base, tmp_path, f"UPDATE {table} SET {gone} WHERE schedule = ?", key)) as store:
        without = answers(store, sample)
    if column in ("low_us", "high_us", "deploy_low_us", "deploy_high_us"):
        for of_medians in ("timed", "pairs"):  # they ask for no interval
            del found[of_medians], without[of_medians]
    del found["standings"], without["standings"]  # a pin is FAILED of a failed row, UNMEASURED without one
    assert found == without


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=NO_TIMES, place=st.integers(0, 1), regime=st.sampled_from(Regime))
def test_a_sample_that_is_no_time_spoils_its_row(
    base: Path, tmp_path: Path, sample, value: object, place: int, regime: Regime
) -> None:
    samples: list[object] = [11.0, 11.25]
    samples[place] = value if not isinstance(value, bytes) else "bytes"
    table, column = ("measurement", "samples") if regime is Regime.RANKING else ("node", "deploy_samples")
    key = sample.schedule(NUM_WARPS=1).key
    path = edited(base, tmp_path, f"UPDATE {table} SET {column} = ? WHERE schedule = ?", json.dumps(samples), key)
    with Store.open(path, read_only=True) as store:
        best = store.best(sample.matmul.key, sample.context.key, regime)
        (said,) = store.left_out
    assert best is not None
    assert best.schedule == sample.schedule(NUM_WARPS=2)
    assert f"of table {table}" in said


ROWS = [
    ("UPDATE grouping SET plan = '{' WHERE position = (SELECT min(position) FROM grouping)", "grouping"),
    ("UPDATE grouping SET schedules = '{' WHERE position = (SELECT min(position) FROM grouping)", "grouping"),
    ("UPDATE grouping SET sum_us = -1 WHERE position = (SELECT min(position) FROM grouping)", "grouping"),
    ("UPDATE grouping SET assembled_us = 'x' WHERE position = (SELECT min(position) FROM grouping)", "grouping"),
    ("UPDATE pin SET schedule = '{'", "pin"),
    ("UPDATE forbidden SET knobs = '{'", "forbidden"),
    ("UPDATE suggestion SET schedule = '['", "suggestion"),
    ("UPDATE suggestion SET us = 0", "suggestion"),
    ("UPDATE context SET gpu = x'ff'", "context"),
    ("UPDATE event SET body = '{' WHERE seq = (SELECT min(seq) FROM event)", "event"),
    ("UPDATE event SET kind = 'Boom' WHERE seq = (SELECT min(seq) FROM event)", "event"),
    ("UPDATE node SET label = NULL WHERE rowid = (SELECT min(rowid) FROM node)", "node"),
    ("UPDATE node SET best_us = -1 WHERE rowid = (SELECT min(rowid) FROM node)", "node"),
]


def everything(store: Store) -> dict[str, int]:
    """How many rows each question finds."""
    (run,) = store.runs()
    return {
        "grouping": len(store.recorded_groupings(run.id)),
        "pin": len(store.pins()),
        "forbidden": len(store.forbidden()),
        "suggestion": len(store.suggestions()),
        "context": len(store.contexts()),
        "event": sum(isinstance(event, Measured) for event in store.events_of(run.id)),
        "node": sum(type(event).__name__.startswith("Node") for event in store.events_of(run.id)),
    }


@pytest.mark.parametrize(("statement", "table"), ROWS, ids=[statement[:40] for statement, _ in ROWS])
def test_the_rest_is_found_without_the_row(base: Path, tmp_path: Path, statement: str, table: str) -> None:
    with Store.open(base, read_only=True) as store:
        before = everything(store)
        assert store.left_out == ()
    with Store.open(edited(base, tmp_path, statement), read_only=True) as store:
        after = everything(store)
        (said,) = store.left_out
    assert f"of table {table}" in said
    assert "the rest is read without it" in said
    assert after.pop(table) == before.pop(table) - 1
    assert after == before


def test_a_kernel_alone_is_none_where_it_cant_be_read(base: Path, tmp_path: Path, sample) -> None:
    spoilt = edited(base, tmp_path, "UPDATE kernel SET body = '{' WHERE label = 'relu'")
    with Store.open(spoilt, read_only=True) as store:
        assert store.readable_kernel(sample.matmul.key) == sample.matmul
        assert store.left_out == ()
        assert store.readable_kernel(sample.relu.key) is None
        assert len(store.left_out) == 1
        with pytest.raises(StoreError):
            store.readable_kernel("no such kernel")


def test_so_is_a_program(base: Path, tmp_path: Path) -> None:
    with Store.open(edited(base, tmp_path, "UPDATE run SET program = '{'"), read_only=True) as store:
        assert store.readable_program(store.runs()[0].id) is None
        assert len(store.left_out) == 1


@pytest.mark.parametrize("spoil", ["body = '{'", "body = '[]'", "key = 'another'"])
def test_a_kernel_whose_body_cant_be_read_is_left_out(base: Path, tmp_path: Path, sample, spoil: str) -> None:
    with Store.open(edited(base, tmp_path, f"UPDATE kernel SET {spoil} WHERE label = 'relu'")) as store:
        assert store.kernels() == store.kernels() == (sample.matmul,)
        (said,) = store.left_out
    assert "of table kernel can't be read" in said


def test_an_assembly_that_cant_be_read_leaves_the_one_before(base: Path, tmp_path: Path, sample) -> None:
    spoil = "UPDATE grouping SET assembled_samples = '[' WHERE position = (SELECT max(position) FROM grouping)"
    with Store.open(edited(base, tmp_path, spoil), read_only=True) as store:
        found = store.assembled(sample.grouping, sample.context.key)
        assert found is not None
        assert found.timing is not None
        assert found.timing.median_us == 30.0
        assert len(store.left_out) == 1


def test_a_run_that_explored_in_words_that_cant_be_read_has_not(base: Path, tmp_path: Path, sample) -> None:
    with Store.open(base, read_only=True) as store:
        (run,) = store.runs()
    edit = "UPDATE event SET kind = ?, body = '[' WHERE seq = (SELECT min(seq) FROM event)"
    with Store.open(edited(base, tmp_path, edit, GroupingsExplored.__name__), read_only=True) as store:
        assert store.explored(run.id) is None
        assert len(store.left_out) == 1


def test_of_many_rows_alike_one_is_told_and_the_others_counted(base: Path, tmp_path: Path) -> None:
    many = ", ".join(f"({number}, 'k', '[', 'ana', 0, '', 'c')" for number in range(10, 30))
    insert = f"INSERT INTO pin (id, kernel_key, schedule, author, at, note, context_key) VALUES {many}"
    said: list[str] = []
    with Store.open(edited(base, tmp_path, insert), read_only=True) as store:
        left_out = LeftOut(store, said.append)
        left_out.tell()
        assert said == []
        assert len(store.pins()) == 1
        store.pins()
        left_out.tell()
        left_out.tell()
    assert len(said) == 2
    assert "row 10 of table pin" in said[0]
    assert said[-1] == "left out: 19 other rows that can't be read"


def test_a_bad_column_is_told_of_once_whatever_it_holds_and_each_bad_column_by_itself(
    base: Path, tmp_path: Path, sample
) -> None:
    path = edited(base, tmp_path, "UPDATE measurement SET median_us = 'bad ' || id")
    path.rename(tmp_path / "ranking.db")
    path = edited(tmp_path / "ranking.db", tmp_path, "UPDATE node SET deploy_us = -key WHERE deploy_us IS NOT NULL")
    said: list[str] = []
    with Store.open(path, read_only=True) as store:
        left_out = LeftOut(store, said.append)
        store.timed(sample.matmul.key, sample.context.key)
        left_out.tell()
        assert len(unlike(store.bad_rows)) == 2
        assert len(store.left_out) == 2 * len(WARPS)
    assert ["of table measurement" in said[0], "of table node" in said[1]] == [True, True]
    assert said[2:] == [f"left out: {2 * len(WARPS) - 2} other rows that can't be read"]
