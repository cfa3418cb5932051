"""A model of many equal layers: tuned by its few kernels, put together of all, and again for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.cli.programs import programs_of
from engine.cli.structure import structure_lines
from engine.events import Event, GroupingEntered
from engine.ir import Graph
from engine.ir.plan import Grouping
from engine.ir.verify_plan import verify_grouping
from engine.measure import AssembledResult
from engine.snapshot import Snapshot, apply
from engine.tune.problem import CapturedProblem
from engine.tune.settings import Settings
from engine.vocabulary import Option, Schedule, Target
from tests.grouping.rewritable import stacked

from .fake_device import FakeDevice
from .rig import program_of, tune_with

LAYERS = 12
SETTINGS = Settings(patience=4, outer_patience=3)


class Assembling(FakeDevice):
    """Remembers the plans that it was asked to put together."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: list[Grouping] = []

    def assemble(
        self,
        grouping: Grouping,
        schedules: Mapping[str, Schedule],
        program: Graph | None = None,
        *,
        pdl: bool = False,
    ) -> AssembledResult:
        self.plans.append(grouping)
        return super().assemble(grouping, schedules, program, pdl=pdl)


def test_a_model_is_tuned_by_its_distinct_kernels_and_put_together_of_all(tmp_path: Path) -> None:
    device, events = Assembling(), list[Event]()
    finished = tune_with(tmp_path / "db", device, program_of(stacked(LAYERS)), SETTINGS, events=events)
    assert finished.assembled_us is not None
    assert finished.sum_us is not None
    assert device.plans
    for plan in device.plans:
        verify_grouping(plan)
        assert len(plan.calls) >= 2 * LAYERS
    entered = [event for event in events if isinstance(event, GroupingEntered)]
    assert len(entered) > 1
    for event in entered:
        assert sum(event.counts) >= 2 * LAYERS
        assert len(event.kernels) <= 20
    again = Assembling()
    tune_with(tmp_path / "db", again, program_of(stacked(LAYERS)), SETTINGS)
    assert again.launches == []


def test_the_report_names_kernels_and_distinct_kernels(tmp_path: Path) -> None:
    events = list[Event]()
    tune_with(tmp_path / "db", FakeDevice(), program_of(stacked(LAYERS)), SETTINGS, events=events)
    snapshot = Snapshot()
    for event in events:
        snapshot = apply(snapshot, event)
    (program,) = programs_of(snapshot)
    assert program.chosen is not None
    launches, distinct = sum(program.chosen.counts), len(program.chosen.kernels)
    assert launches > distinct
    line = next(line for line in structure_lines(program, None, replayed=False) if line.startswith("kernels"))
    assert line.split(maxsplit=1)[1] == f"{launches}, {distinct} of them distinct"


def test_about_how_often_a_kernel_occurs_is_how_often_it_does() -> None:
    problem = CapturedProblem(program_of(stacked(LAYERS)), Target())
    space = problem.outer_space()
    path: tuple[Option, ...] = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[0])
    assert dict(problem.kernel_counts(path)) == problem.grouping(path).kernel_counts()
