"""Rows of a kernel: candidates, branches with the best below them, and a correction that stays near the cold model."""

from __future__ import annotations

import numpy as np
import pytest

from engine.codegen import offered_schedules
from engine.prior import COLUMNS, ColdModel, Reservoir, calibrate, features, fit, training_rows
from engine.prior.calibration import decided
from engine.prior.training import MOST
from engine.vocabulary import Schedule, Target

from .kernels import matmul

TARGET = Target()
KERNEL = matmul(512, 512, 512)


def timed(count: int) -> dict[Schedule, float]:
    schedules = list(offered_schedules(KERNEL, TARGET))[:count]
    return {schedule: 10.0 + place % 7 for place, schedule in enumerate(schedules)}


def test_branches_have_the_best_below_them() -> None:
    times = timed(200)
    matrix, log_us = training_rows(KERNEL, times, TARGET)
    assert matrix.names == COLUMNS
    whole = decided(matrix)
    assert whole.sum() == 200
    assert (~whole).sum() > 10
    place = COLUMNS.index("BLOCK_M")
    for block in {schedule.as_dict()["BLOCK_M"] for schedule in times}:
        branch = ~whole & (matrix.values[:, place] == block) & np.isnan(matrix.column("BLOCK_N"))
        below = min(us for schedule, us in times.items() if schedule.as_dict()["BLOCK_M"] == block)
        assert np.exp(log_us[branch]) == pytest.approx([below])


def test_the_order_of_candidates_does_not_matter_and_failures_are_no_rows() -> None:
    times = timed(50)
    back = dict(reversed(times.items())) | {next(iter(offered_schedules(KERNEL, TARGET))): float("nan")}
    one, other = training_rows(KERNEL, times, TARGET), training_rows(KERNEL, back, TARGET)
    assert decided(other[0]).sum() == 49
    again = training_rows(KERNEL, dict(reversed(times.items())), TARGET)
    assert np.array_equal(one[0].values, again[0].values, equal_nan=True)


def test_of_too_many_candidates_the_fastest_stay() -> None:
    times = {schedule: 1.0 + place for place, schedule in enumerate(offered_schedules(KERNEL, TARGET))}
    assert len(times) > MOST
    matrix, log_us = training_rows(KERNEL, times, TARGET)
    whole = decided(matrix)
    assert whole.sum() == MOST
    assert sorted(np.exp(log_us[whole]))[: MOST // 4] == pytest.approx(range(1, MOST // 4 + 1))


def test_a_correction_keeps_the_cold_models_view_of_what_it_never_saw() -> None:
    times = timed(300)
    matrix = features(KERNEL, [schedule.as_dict() for schedule in times], TARGET)
    twice = ColdModel().predict(matrix) + np.log(2)
    model = fit(matrix, twice, np.full(len(times), "k"), ColdModel())
    assert model is not None
    other = matmul(4096, 4096, 4096)
    there = features(other, [schedule.as_dict() for schedule in list(offered_schedules(other, TARGET))[::50]], TARGET)
    assert model.predict(there) - ColdModel().predict(there) == pytest.approx(np.log(2), abs=0.05)


def test_a_model_that_ranks_worse_than_the_cold_one_is_quarantined() -> None:
    reservoir = Reservoir(COLUMNS)
    random = np.random.default_rng(0)
    for number in range(4):
        kernel = matmul(256 * (number + 1), 512, 512)
        schedules = list(offered_schedules(kernel, TARGET))[::40]
        matrix = features(kernel, [schedule.as_dict() for schedule in schedules], TARGET)
        cold = ColdModel().predict(matrix)
        reservoir.offer(matrix, cold + random.normal(0, 0.05, len(cold)), f"kernel{number}@here")
    found = calibrate(reservoir, ColdModel())
    assert found.cold_spearman is not None
    assert found.spearman is not None
    assert found.trusted == (found.spearman >= found.cold_spearman)
    assert ("cold model ranks better" in found.reason) == (not found.trusted)
