"""Every candidate as numbers in any order, and rows by their numbers: filters and sorts mean what a person reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engine.store import Candidate, CandidateQuery, Compared, Condition, Store, StoreError
from engine.vocabulary import FailureKind, Regime

IS, IS_NOT, BELOW, AT_LEAST = Compared.IS, Compared.IS_NOT, Compared.BELOW, Compared.AT_LEAST


@pytest.fixture
def filled(store: Store, run: str, sample) -> Store:
    """Five rows: two plain, one with a deploy time, one failed, one that only the deploy regime knows."""
    for trial, measurement in enumerate(
        (
            sample.ok(12.0, NUM_WARPS=1, BLOCK_M=16, PERSISTENT=True),
            sample.failed("hung after 5 s", FailureKind.HANG, NUM_WARPS=2, BLOCK_M=32),
            sample.ok(10.0, NUM_WARPS=4),
            sample.ok(11.0, NUM_WARPS=8),
        ),
        start=1,
    ):
        store.record_measurement(measurement, run=run, trial=trial)
    store.record_measurement(sample.ok(9.5, Regime.DEPLOY, NUM_WARPS=4), run=run)
    store.record_measurement(sample.ok(9.0, Regime.DEPLOY, NUM_WARPS=16), run=run)
    store.record_measurement(sample.ok(99.0, kernel=sample.relu), run=run)
    return store


def found(store: Store, query: CandidateQuery) -> list[Candidate]:
    numbers = store.candidate_numbers(query)
    rows = store.candidate_rows(numbers)
    return [rows[number] for number in numbers]


def test_the_size_of_the_code_is_read_from_both_regimes(store: Store, run: str, sample) -> None:
    for regime, warps, size in ((Regime.RANKING, 1, 4096), (Regime.DEPLOY, 2, 8192)):
        measured = sample.ok(10.0, regime, NUM_WARPS=warps)
        assert measured.build is not None
        store.record_measurement(replace(measured, build=replace(measured.build, code_bytes=size)), run=run)
    rows = found(store, CandidateQuery(sample.matmul.key))
    assert {row.schedule["NUM_WARPS"]: row.code_bytes for row in rows} == {1: 4096, 2: 8192}


def warps(store: Store, query: CandidateQuery) -> list[object]:
    return [row.schedule["NUM_WARPS"] for row in found(store, query)]


def test_rows_hold_all_that_is_known(filled: Store, sample) -> None:
    rows = found(filled, CandidateQuery(sample.matmul.key))
    assert [(row.us, row.deploy_us) for row in rows] == [
        (None, 9.0),
        (10.0, 9.5),
        (11.0, None),
        (12.0, None),
        (None, None),
    ]
    assert [row.best_us for row in rows] == [9.0, 9.5, 11.0, 12.0, None]
    assert [row.regime for row in rows] == [Regime.DEPLOY, Regime.DEPLOY, Regime.RANKING, Regime.RANKING, None]
    deployed, best, failed = rows[0], rows[1], rows[4]
    assert (best.low_us, best.high_us, best.registers, best.spills, best.shared_bytes) == (9.5, 10.5, 96, 0, 49152)
    assert (best.label, best.trial, best.status, best.pinned) == ("matmul", 3, "ok", False)
    assert deployed.number < 0 < best.number
    assert (deployed.status, deployed.regime, deployed.registers) == ("ok", Regime.DEPLOY, 96)
    assert (failed.failure, failed.cause, failed.status) == ("hang", "hung after 5 s", "failed")


def test_a_pinned_row_says_so(filled: Store, sample) -> None:
    filled.record_pin(sample.matmul.key, sample.schedule(NUM_WARPS=16), sample.context.key, author="ana")
    rows = found(filled, CandidateQuery(sample.matmul.key))
    assert [row.schedule["NUM_WARPS"] for row in rows if row.pinned] == [16]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Condition("us", BELOW, 11.5), [4, 8]),
        (Condition("deploy", BELOW, 9.2), [16]),
        (Condition("st", IS, "ok"), [16, 4, 8, 1]),
        (Condition("st", IS_NOT, "OK"), [2]),
        (Condition("failure", IS, "ha*"), [2]),
        (Condition("cause", IS, "*after*"), [2]),
        (Condition("regime", IS, "deploy"), [16, 4]),
        (Condition("regime", IS, "ranking"), [4, 8, 1, 2]),
        (Condition("NUM_WARPS", IS, "4"), [4]),
        (Condition("NUM_WARPS", AT_LEAST, 8), [16, 8]),
        (Condition("PERSISTENT", IS, "True"), [1]),
        (Condition("PERSISTENT", IS, "1"), []),
        (Condition("BLOCK_M", IS_NOT, "64"), [1, 2]),
        (Condition('x"] OR 1', IS, "4"), []),
        (Condition("NOPE", IS_NOT, "4"), [16, 4, 8, 1, 2]),
    ],
)
def test_a_condition_means_what_it_says(filled: Store, sample, condition: Condition, expected: list[int]) -> None:
    assert warps(filled, CandidateQuery(sample.matmul.key, conditions=(condition,))) == expected


def test_sorting_puts_what_lacks_the_value_last(filled: Store, sample) -> None:
    key = sample.matmul.key
    assert warps(filled, CandidateQuery(key, sort="us", descending=True)) == [1, 8, 4, 16, 2]
    assert warps(filled, CandidateQuery(key, descending=True)) == [1, 8, 4, 16, 2]
    assert warps(filled, CandidateQuery(key, sort="trial")) == [16, 1, 2, 4, 8]
    with pytest.raises(StoreError, match="can't be sorted by 'nope'; the columns are best, us, low"):
        filled.candidate_numbers(CandidateQuery(key, sort="nope"))


def test_kernels_are_found_by_text_and_contexts_stay_apart(filled: Store, run: str, sample) -> None:
    labels = {row.label for row in found(filled, CandidateQuery("", kernel_text="re*"))}
    assert labels == {"relu"}
    assert len(found(filled, CandidateQuery("", kernel_text="mat*"))) == 5
    assert found(filled, CandidateQuery("", kernel_text="nothing")) == []
    other = replace(sample.context, gpu="NVIDIA A100")
    filled.record_context(other)
    filled.record_measurement(replace(sample.ok(30.0), context_key=other.key), run=run)
    assert [context[1:] for context in filled.kernel_contexts(sample.matmul.key)] == [
        ("NVIDIA A100", 1),
        ("NVIDIA H200", 4),
    ]
    assert [row.us for row in found(filled, CandidateQuery(sample.matmul.key, context=other.key))] == [30.0]


def test_a_row_that_is_gone_is_left_out(filled: Store) -> None:
    assert filled.candidate_rows([10**9, -(10**9)]) == {}
    assert filled.candidate_rows([]) == {}


@pytest.mark.parametrize("compared", Compared)
def test_a_schedule_that_is_no_json_is_left_out(filled: Store, sample, compared: Compared) -> None:
    every = filled.candidate_rows(filled.candidate_numbers(CandidateQuery(sample.matmul.key)))
    spoiled = next(row.number for row in every.values() if row.trial == 1)
    filled._connection.db.conn.execute("UPDATE measurement SET schedule = '{[' WHERE trial = 1")
    value = "64" if compared in (IS, IS_NOT) else 64
    query = CandidateQuery(sample.matmul.key, conditions=(Condition("BLOCK_M", compared, value),))
    filled.candidate_rows(filled.candidate_numbers(query))
    left = filled.candidate_rows(filled.candidate_numbers(CandidateQuery(sample.matmul.key)))
    assert set(left) == set(every) - {spoiled}
    (said,) = filled.left_out
    assert f"row {spoiled} of table measurement" in said
    assert "can't be read" in said


HOLDS: dict[Compared, Callable[[int, int], bool]] = {
    Compared.IS: lambda a, b: a == b,
    Compared.IS_NOT: lambda a, b: a != b,
    Compared.BELOW: lambda a, b: a < b,
    Compared.AT_MOST: lambda a, b: a <= b,
    Compared.ABOVE: lambda a, b: a > b,
    Compared.AT_LEAST: lambda a, b: a >= b,
}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(compared=st.sampled_from(Compared), value=st.integers(0, 40))
def test_knobs_compare_like_numbers(filled: Store, sample, compared: Compared, value: int) -> None:
    wanted = value if compared not in (IS, IS_NOT) else str(value)
    query = CandidateQuery(sample.matmul.key, conditions=(Condition("NUM_WARPS", compared, wanted),))
    assert set(warps(filled, query)) == {number for number in (1, 2, 4, 8, 16) if HOLDS[compared](number, value)}


def test_the_time_that_counts_and_its_regime_are_compared(filled: Store, sample) -> None:
    def of(*conditions: Condition) -> set[float | None]:
        return {row.best_us for row in found(filled, CandidateQuery(sample.matmul.key, conditions=conditions))}

    assert of(Condition("best", BELOW, 10.0)) == {9.0, 9.5}
    assert of(Condition("by", IS, "deploy")) == {9.0, 9.5}
    assert of(Condition("by", IS, "ranking")) == {11.0, 12.0}
    assert of(Condition("by", IS_NOT, "deploy")) == {11.0, 12.0, None}


def test_a_number_is_equal_within_what_is_said(filled: Store, sample) -> None:
    def of(condition: Condition) -> set[float | None]:
        return {row.us for row in found(filled, CandidateQuery(sample.matmul.key, conditions=(condition,)))}

    assert of(Condition("us", IS, 10.9, within=0.2)) == {11.0}
    assert of(Condition("us", IS_NOT, 10.9, within=0.2)) == {10.0, 12.0}
    assert of(Condition("us", IS, 10.9)) == set()
    assert of(Condition("us", BELOW, 10.9, within=0.2)) == {10.0}


def test_the_names_of_the_knobs_are_those_of_the_rows_of_any_kernel(filled: Store, sample) -> None:
    assert "NUM_WARPS" in filled.knob_names(sample.matmul.key)
    filled._connection.db.conn.execute(
        "UPDATE measurement SET schedule = '{\"Odd\":1}' WHERE kernel_key = ?", (sample.relu.key,)
    )
    filled._connection.db.conn.execute("UPDATE measurement SET schedule = '{[' WHERE trial = 1")
    names = filled.knob_names(sample.matmul.key)
    assert {"NUM_WARPS", "Odd"} <= names
    assert filled.knob_names("unknown") <= names


@given(wanted=st.floats(8.0, 13.0), within=st.floats(0.0, 1.5))
@example(wanted=8.0, within=math.nextafter(1.5, 0.0))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
def test_of_less_equal_and_more_exactly_one_holds(filled: Store, sample, wanted: float, within: float) -> None:
    def rows(compared: Compared) -> set[int]:
        one = Condition("best", compared, wanted, within)
        return set(filled.candidate_numbers(CandidateQuery(sample.matmul.key, conditions=(one,))))

    timed = {row.number for row in found(filled, CandidateQuery(sample.matmul.key)) if row.us or row.deploy_us}
    less, equal, more = rows(Compared.BELOW), rows(Compared.IS), rows(Compared.ABOVE)
    assert less | equal | more == timed
    assert len(less) + len(equal) + len(more) == len(timed)
    assert rows(Compared.AT_MOST) == less | equal
    assert rows(Compared.AT_LEAST) == equal | more
