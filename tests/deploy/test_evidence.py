"""The order of evidence, on a real database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.codegen import offered_schedules
from engine.deploy import Source
from engine.deploy.deployment import kernel_choice
from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.ir.plan import Program
from engine.prior import ColdModel, FeatureMatrix
from engine.prior.geometry import Column
from engine.store import RunInfo, Store
from engine.vocabulary import Context, Measurement, Regime, Schedule, Status, Target, Timing

CONTEXT = Context("GPU", "9.0", "1", "2", "3", "4")
TARGET = Target()


def _kernel() -> Kernel:
    builder = GraphBuilder()
    left = builder.input(TensorSpec.contiguous((256, 256), "bfloat16"))
    right = builder.input(TensorSpec.contiguous((256, 256), "bfloat16"))
    return Kernel("contraction", builder.build(builder.add("matmul", left, right)), "matmul")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "t.db") as opened:
        opened.record_context(CONTEXT, TARGET)
        opened.record_kernel(_kernel())
        yield opened


def _record(store: Store, schedule: Schedule, regime: Regime, us: float) -> None:
    program = Program(_kernel().body, "matmul")
    run = store.start_run(RunInfo("matmul", program, "cuda:0", "GPU", CONTEXT.key, 0, 50, "cold-1"))
    timing = Timing(us, us, us, (us,))
    measurement = Measurement(_kernel().key, schedule, regime, CONTEXT.key, Status.OK, timing)
    store.record_measurement(measurement, run=run, trial=1)


def test_without_measurements_the_prior_decides(store: Store) -> None:
    decided = kernel_choice(_kernel(), 1, store, CONTEXT.key, TARGET, ColdModel()).chosen
    assert decided is not None
    assert decided.source is Source.PRIOR
    assert decided.us is not None
    assert decided.us > 0


class Unasked(ColdModel):
    """A prior that is not to be asked."""

    def predict(self, matrix: FeatureMatrix) -> Column:
        raise AssertionError("it was asked to predict")


def test_where_a_time_decides_nothing_is_predicted_unless_every_line_is_wanted(store: Store) -> None:
    first, *_ = offered_schedules(_kernel(), TARGET)
    _record(store, first, Regime.RANKING, 1.0)
    choice = kernel_choice(_kernel(), 1, store, CONTEXT.key, TARGET, Unasked())
    assert [line.source for line in choice.lines] == [Source.RANKING]
    with pytest.raises(AssertionError, match="asked to predict"):
        kernel_choice(_kernel(), 1, store, CONTEXT.key, TARGET, Unasked(), every_line=True)


def test_a_deploy_time_outranks_a_faster_ranking_time(store: Store) -> None:
    first, second, *_ = offered_schedules(_kernel(), TARGET)
    _record(store, first, Regime.RANKING, 1.0)
    assert kernel_choice(_kernel(), 1, store, CONTEXT.key, TARGET, ColdModel()).chosen is not None
    _record(store, second, Regime.DEPLOY, 2.0)
    lines = kernel_choice(_kernel(), 1, store, CONTEXT.key, TARGET, ColdModel(), every_line=True).lines
    assert [line.source for line in lines] == [Source.DEPLOY, Source.RANKING, Source.PRIOR, Source.FIRST]
    assert (lines[0].schedule, lines[0].us) == (second, 2.0)
    assert (lines[1].schedule, lines[1].us) == (first, 1.0)


def test_times_of_another_context_are_no_evidence(store: Store) -> None:
    first = next(offered_schedules(_kernel(), TARGET))
    _record(store, first, Regime.DEPLOY, 1.0)
    decided = kernel_choice(_kernel(), 1, store, "another context", TARGET, ColdModel()).chosen
    assert decided is not None
    assert decided.source is Source.PRIOR


def test_a_pin_outranks_everything_and_shows_its_own_time(store: Store) -> None:
    first, second, *_ = offered_schedules(_kernel(), TARGET)
    _record(store, first, Regime.DEPLOY, 1.0)
    store.record_pin(_kernel().key, second, CONTEXT.key, author="me")
    decided = kernel_choice(_kernel(), 1, store, CONTEXT.key, TARGET, ColdModel()).chosen
    assert decided is not None
    assert (decided.source, decided.schedule, decided.us) == (Source.PIN, second, None)
    _record(store, second, Regime.RANKING, 3.0)
    decided = kernel_choice(_kernel(), 1, store, CONTEXT.key, TARGET, ColdModel()).chosen
    assert decided is not None
    assert decided.us == 3.0


def test_a_pin_that_cannot_be_built_is_shown_with_its_reason_and_decides_nothing(store: Store) -> None:
    first = next(offered_schedules(_kernel(), TARGET))
    _record(store, first, Regime.DEPLOY, 1.0)
    store.record_pin(_kernel().key, Schedule.of({**first.as_dict(), "BLOCK_M": 7}), CONTEXT.key, author="me")
    lines = kernel_choice(_kernel(), 1, store, CONTEXT.key, TARGET, ColdModel(), every_line=True).lines
    assert lines[0].source is Source.PIN
    assert "BLOCK_M" in lines[0].illegal
    decided = kernel_choice(_kernel(), 1, store, CONTEXT.key, TARGET, ColdModel()).chosen
    assert decided is not None
    assert decided.source is Source.DEPLOY


def test_an_unpinned_kernel_is_decided_by_measurement_again(store: Store) -> None:
    first, second, *_ = offered_schedules(_kernel(), TARGET)
    _record(store, first, Regime.DEPLOY, 1.0)
    store.record_pin(_kernel().key, second, CONTEXT.key, author="me")
    store.unpin(_kernel().key, CONTEXT.key)
    decided = kernel_choice(_kernel(), 1, store, CONTEXT.key, TARGET, ColdModel()).chosen
    assert decided is not None
    assert decided.source is Source.DEPLOY
