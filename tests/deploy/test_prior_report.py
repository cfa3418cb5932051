"""What the report says of a prior: judged on kernels it never saw, whoever fitted it."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from engine.codegen import offered_schedules
from engine.deploy import database_rows, knob_reports, prior_report, report_steps
from engine.deploy.knob_report import knob_pairs, knob_regrets
from engine.ir import Graph, GraphBuilder, TensorSpec
from engine.ir.kernel import Kernel
from engine.ir.plan import Program
from engine.prior import group_name, models_path, refit, save_models, training_rows
from engine.store import RunInfo, Store
from engine.vocabulary import Context, Measurement, Regime, Schedule, Status, Target, Timing

CONTEXT = Context("GPU", "9.0", "1", "2", "3", "4")


def _graph(size: int) -> Graph:
    builder = GraphBuilder()
    sides = [builder.input(TensorSpec.contiguous((size, size), "bfloat16")) for _ in range(2)]
    return builder.build(builder.add("matmul", *sides))


def _kernel(size: int) -> Kernel:
    return Kernel("contraction", _graph(size), label=f"matmul {size}")


def _us(schedule: Schedule) -> float:
    knobs = schedule.as_dict()
    return 20.0 + abs(int(knobs["BLOCK_M"]) - 64) + abs(int(knobs["BLOCK_N"]) - int(knobs["BLOCK_M"])) / 2


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = Store.open(tmp_path / "t.db")
    opened.record_context(CONTEXT, Target())
    run = opened.start_run(RunInfo("m", Program(_graph(256), "m"), "cuda:0", "GPU", CONTEXT.key, 0, 50, "cold-1"))
    for size in (256, 384, 512):
        kernel = _kernel(size)
        opened.record_kernel(kernel)
        for schedule in list(offered_schedules(kernel, Target()))[::25]:
            us = _us(schedule)
            timing = Timing(us, us, us, (us,))
            row = Measurement(kernel.key, schedule, Regime.RANKING, CONTEXT.key, Status.OK, timing=timing)
            opened.record_measurement(row, run=run)
    return opened


def test_what_was_not_fitted_here_is_judged_on_what_was_measured_here(store: Store) -> None:
    with store:
        report = prior_report(store)
    assert report.shipped
    assert {one.label for one in report.kernels} == {"matmul 256", "matmul 384", "matmul 512"}
    assert [one.family for one in report.families] == ["contraction"]
    assert report.families[0].kernels == 3
    assert len(report.pairs) == sum(one.rows for one in report.kernels)
    assert all(math.isfinite(residual) for residual in report.residuals)
    assert sum(share for _, share in report.importance) == pytest.approx(1.0)


def test_what_was_fitted_here_is_judged_on_held_out_kernels(store: Store) -> None:
    with store:
        fitted = refit(database_rows(store))
        assert fitted is not None
        save_models(models_path(store.path), [fitted])
        report = prior_report(store)
    assert (report.shipped, report.learned) == (False, fitted.model.version)
    assert report.version == (report.learned if report.trusted else "cold-1")
    assert {one.gpu for one in report.trained_on} == {"GPU"}
    assert report.spearman == fitted.calibration.spearman
    assert sum(one.rows for one in report.trained_on) == report.rows


def test_of_many_candidates_some_stand_for_all_and_it_says_of_how_many(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store:
        whole = prior_report(store)
        module = import_module("engine.deploy.prior_report")  # its name is that of its function too
        monkeypatch.setattr(module, "JUDGED", 20)
        monkeypatch.setattr(module, "PAIRS_SHOWN", 25)
        some = prior_report(store)
    assert whole.sampled is None
    assert {one.rows for one in some.kernels} == {20}
    assert [one.measured for one in some.kernels] == [one.rows for one in whole.kernels]
    assert some.sampled == (60, len(whole.pairs))
    assert 20 <= len(some.pairs) <= 25
    assert {pair.kernel for pair in some.pairs} == {pair.kernel for pair in whole.pairs}
    best = {kernel: min(p.measured_us for p in whole.pairs if p.kernel == kernel) for kernel in {_kernel(256).key}}
    assert min(one.measured_us for one in some.pairs) == pytest.approx(min(best.values()))


def test_who_asks_in_steps_may_do_something_else_after_each_kernel(store: Store) -> None:
    with store:
        *between, report = report_steps(store)
        assert between == [None] * 3
        assert report == prior_report(store)


def test_the_rows_that_train_are_those_of_all_times(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in map(import_module, ("engine.deploy.database_rows", "engine.prior.training")):
        monkeypatch.setattr(module, "FASTEST", 5)
        monkeypatch.setattr(module, "OTHERS", 15)
    monkeypatch.setattr("engine.prior.training.MOST", 20)
    with store:
        found = database_rows(store)
        (context,) = (context.key for context in store.contexts())
        for kernel in store.kernels():
            rows, log_us = training_rows(kernel, store.timed(kernel.key, context), Target())
            mine = found.groups == group_name(kernel.key, context)
            np.testing.assert_array_equal(found.matrix.values[mine], rows.values)
            np.testing.assert_array_equal(found.log_us[mine], log_us)


def test_a_damaged_file_is_a_problem_and_no_end(store: Store) -> None:
    with store:
        models_path(store.path).write_bytes(b"nothing")
        assert "damaged" in prior_report(store).problem


def test_an_empty_database(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as empty:
        report = prior_report(empty)
        assert (report.kernels, report.pairs, report.spearman) == ((), (), None)
        assert list(knob_reports(empty)) == []


def test_the_regret_of_a_value_is_what_it_costs_at_best(store: Store) -> None:
    with store:
        (report,) = knob_reports(store, "matmul 256")
        times = store.timed(report.kernel, report.context)
    blocks = next(knob for knob in report.knobs if knob.knob == "BLOCK_M")
    assert blocks.values[0].value == 64
    assert blocks.values[0].regret == 0.0
    assert report.best_us == min(times.values())
    assert sum(value.tried for value in blocks.values) == report.timed == len(times)


def test_knobs_that_must_be_chosen_together_are_found() -> None:
    def times(us: dict[tuple[int, int], float]) -> dict[Schedule, float]:
        return {Schedule.of({"NUM_WARPS": warps, "NUM_STAGES": stages}): t for (warps, stages), t in us.items()}

    crossed = times({(1, 1): 10.0, (1, 2): 20.0, (2, 1): 30.0, (2, 2): 12.0})
    (pair, *_) = knob_pairs(crossed)
    assert {pair.knob, pair.other} == {"NUM_WARPS", "NUM_STAGES"}
    assert pair.regret > 0.2
    apart = times({(1, 1): 10.0, (1, 2): 20.0, (2, 1): 15.0, (2, 2): 30.0})
    assert knob_pairs(apart) == ()
    assert [knob.knob for knob in knob_regrets(apart)] == ["NUM_STAGES", "NUM_WARPS"]
