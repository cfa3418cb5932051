"""A measurement is the same after a trip through the database, whatever floats and texts it holds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.store import Store
from engine.store.rows import SHORTEST_US, text
from engine.vocabulary import BuildReport, Failure, FailureKind, Measurement, Regime, Schedule, Status, Timing

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
HOSTILE = st.sampled_from(
    ["'; DROP TABLE measurement; --", '"', "\\", "\x00nul", "[bold]x[/bold]", "%s", "?", ":run", "é漢🙂", "a\nb", ""]
)
FLOAT = st.floats(allow_nan=False)
SIZE = st.none() | st.integers(0, 2**40)
KNOBS = st.dictionaries(
    st.sampled_from(["BLOCK_M", "NUM_WARPS", "LOADS", "PERSISTENT", "'; --"]),
    st.integers(-(2**31), 2**31) | st.booleans() | TEXT | HOSTILE,
    max_size=5,
)
TIME = st.floats(SHORTEST_US, allow_infinity=False)
TIMING = st.builds(Timing, TIME, TIME, TIME, st.lists(TIME, max_size=5).map(tuple))
FAILURE = st.builds(Failure, st.sampled_from(FailureKind), TEXT | HOSTILE)
BUILD = st.builds(BuildReport, SIZE, SIZE, SIZE, st.none() | FLOAT)
OUTCOME = st.tuples(st.just(Status.OK), TIMING, st.none()) | st.tuples(st.just(Status.FAILED), st.none(), FAILURE)

NUMBER = count()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, sample) -> Iterator[tuple[Store, str]]:
    with Store.open(tmp_path_factory.mktemp("rows") / "tune.db") as store:
        yield store, sample.begin(store)


@given(
    knobs=KNOBS,
    regime=st.sampled_from(Regime),
    outcome=OUTCOME,
    build=BUILD,
    error=st.none() | FLOAT,
    run_s=st.none() | FLOAT,
)
def test_every_measurement_survives(shared, sample, knobs, regime, outcome, build, error, run_s) -> None:
    store, run = shared
    status, timing, failure = outcome
    schedule = Schedule.of({**knobs, "UNIQUE": next(NUMBER)})
    measurement = Measurement(
        sample.matmul.key, schedule, regime, sample.context.key, status, timing, failure, build, error, run_s
    )
    store.record_measurement(measurement, run=run, trial=1)
    lookup = store.ranking if regime is Regime.RANKING else store.deploy
    assert lookup(sample.matmul.key, schedule, sample.context.key) == replace(measurement, cached=True)


@pytest.mark.parametrize("regime", Regime)
def test_nan_stays_nan(store: Store, run: str, sample, regime: Regime) -> None:
    measurement = replace(sample.failed(kind=FailureKind.WRONG_RESULT, regime=regime), error=math.nan)
    store.record_measurement(measurement, run=run)
    lookup = store.ranking if regime is Regime.RANKING else store.deploy
    found = lookup(sample.matmul.key, measurement.schedule, sample.context.key)
    assert found is not None
    assert math.isnan(found.error)


def test_a_lone_surrogate_is_kept_as_its_escape(store: Store, run: str, sample) -> None:
    store.record_measurement(sample.failed("ptxas said \udcff"), run=run)
    found = store.ranking(sample.matmul.key, sample.schedule(), sample.context.key)
    assert found.failure.cause == "ptxas said \\udcff" == text("ptxas said \udcff")
