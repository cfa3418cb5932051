"""Groupings that hold a kernel without a legal schedule: the search passes them by, and says why of one it enters."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.capture import capture
from engine.codegen import unbuildable_because
from engine.grouping import grouping_space
from engine.ir.kernel import Kernel
from engine.ir.plan import Program
from engine.prior import UNBUILDABLE_US, ColdModel
from engine.store import Store
from engine.tune.grouping_scoring import GroupingScorer
from engine.tune.problem import CapturedProblem
from engine.vocabulary import Target
from tests.tune.fake_device import FakeDevice
from tests.tune.rig import tune_with

TEXT = "No schedule of it is legal on this chip."
OPERANDS = [", ".join(f"torch.randn(1, 2, {length}, 256)" for _ in range(3)) for length in (33, 20)]
CODE = f"torch.add(*[F.scaled_dot_product_attention(*s).sum() for s in (({OPERANDS[0]}), ({OPERANDS[1]}))])"


@pytest.fixture(scope="module")
def program() -> Program:
    return Program(capture(CODE).graph, CODE)


def fused(program: Program) -> Kernel:
    space = grouping_space(program.graph)
    path = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[0])
    kernels = [kernel for kernel, _ in space.grouping(path).kernel_counts().values()]
    return next(kernel for kernel in kernels if kernel.family == "attention")


def test_a_body_that_is_fine_may_have_no_schedule_on_the_chip(program: Program) -> None:
    kernel, target = fused(program), FakeDevice().target
    assert unbuildable_because(kernel, target) == TEXT
    problem = CapturedProblem(program, target)
    assert problem.declined_because(kernel) == TEXT
    scorer = GroupingScorer(ColdModel(), problem, problem.outer_space(), Target())
    assert scorer.predicted_us(kernel) == UNBUILDABLE_US
    assert [speed > 0 for speed in scorer((), problem.outer_space().fork(()).options)] == [True, True]  # type: ignore[union-attr]


def test_a_search_spends_no_visits_on_them(program: Program, tmp_path: Path) -> None:
    tune_with(tmp_path / "t.db", FakeDevice(), program)
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        (run,) = store.runs()
        rows = store.recorded_groupings(run.id)
    assert rows
    assert all(row.sum_us is not None for row in rows if not row.reason)
    assert rows[0].sum_us is not None


def test_one_that_is_entered_says_why_and_the_search_goes_on(tmp_path: Path) -> None:
    code = f"F.scaled_dot_product_attention({OPERANDS[0]})"
    tune_with(tmp_path / "t.db", FakeDevice(), Program(capture(code).graph, code))
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        (run,) = store.runs()
        rows = store.recorded_groupings(run.id)
    failed = [row for row in rows if row.sum_us is None]
    assert [row.reason for row in failed] in ([], [f"attention: {TEXT}"])
    assert len(rows) > len(failed)
