"""One answer away from the best: the most promising first, nothing twice, measured times before guessed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from engine.ir.kernel import Kernel
from engine.search import Path
from engine.tune.neighbourhood import REACH, Neighbourhood
from engine.vocabulary import Option
from tests.search.toys import GridSpace, knobs_of
from tests.tune.rig import matmul_program

FORKS = {
    "FUSE_0": ("apart", "fused"),
    "SPLIT_0": ("whole", "halves", "quarters"),
    "WEIGHT_LAYOUT_0": ("stored", "turned"),
}
PREDICTED = {
    "apart": 11.0,
    "fused": 10.0,
    "whole": 22.0,
    "halves": 21.0,
    "quarters": 20.0,
    "stored": 5.0,
    "turned": 5.0,
}
"""A kernel an answer, and what the model expects of it in us."""


@dataclass
class Answers:
    """A problem whose groupings have one kernel for each answer."""

    target: str = "answers"
    graph: None = None
    made: dict[str, Kernel] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)

    def kernel_counts(self, path: Path) -> Mapping[str, tuple[Kernel, int]]:
        return {str(value): (self.kernel(str(value)), 1) for value in knobs_of(path).values()}

    def kernel(self, answer: str) -> Kernel:
        body = matmul_program(16 + 16 * list(PREDICTED).index(answer)).graph
        return self.made.setdefault(answer, Kernel(self.families.get(answer, "contraction"), body, answer))


class Predictions:
    def predicted_us(self, kernel: Kernel) -> float:
        return PREDICTED[kernel.label]


def path_of(*answers: str) -> Path:
    return tuple(Option(((name, answer),)) for name, answer in zip(FORKS, answers, strict=True))


@pytest.fixture
def around() -> Neighbourhood:
    return Neighbourhood(Answers(), GridSpace(FORKS), Predictions())  # type: ignore[arg-type]


def visit(around: Neighbourhood, path: Path, sum_us: float | None, times: Mapping[str, float] | None = None) -> None:
    around.entered(path)
    around.measured(path, sum_us, times or {})


def offered(around: Neighbourhood) -> Sequence[Path]:
    found = []
    while (path := around.next()) is not None:
        found.append(path)
        around.entered(path)
    return found


def test_nothing_is_near_before_something_was_measured(around: Neighbourhood) -> None:
    assert around.next() is None
    visit(around, path_of("fused", "quarters", "stored"), None)
    assert around.next() is None


def test_neighbours_come_by_their_predicted_difference_and_copies_of_weights_last(around: Neighbourhood) -> None:
    visit(around, path_of("fused", "quarters", "stored"), 40.0)
    assert offered(around) == [
        path_of("apart", "quarters", "stored"),
        path_of("fused", "halves", "stored"),
        path_of("fused", "whole", "stored"),
        path_of("fused", "quarters", "turned"),
    ]


def test_what_is_out_of_reach_is_left_to_the_tree(around: Neighbourhood) -> None:
    best_us = 1.5 / REACH
    visit(around, path_of("fused", "quarters", "stored"), best_us)
    assert path_of("fused", "whole", "stored") not in offered(around)


def test_measured_kernels_outweigh_predictions(around: Neighbourhood) -> None:
    visit(around, path_of("fused", "quarters", "stored"), 40.0, {"fused": 10.0, "quarters": 25.0, "stored": 5.0})
    visit(around, path_of("apart", "whole", "stored"), 41.0, {"apart": 20.0, "whole": 16.0, "stored": 5.0})
    assert around.next() == path_of("fused", "whole", "stored")


def test_the_best_moves_the_neighbourhood(around: Neighbourhood) -> None:
    visit(around, path_of("fused", "quarters", "stored"), 40.0)
    visit(around, path_of("fused", "whole", "stored"), 35.0)
    visit(around, path_of("apart", "whole", "stored"), 36.0)
    found = offered(around)
    assert path_of("fused", "halves", "stored") in found
    assert all(knobs_of(path)["FUSE_0"] == "fused" for path in found)


def test_a_kernel_that_is_far_slower_than_predicted_is_worth_replacing() -> None:
    """By one that computes otherwise; where all kernels are as slow, it is the model's bias and no kernel's own."""
    start, halves = path_of("fused", "quarters", "stored"), path_of("fused", "halves", "stored")
    slow = {"fused": 10.0, "quarters": 60.0, "stored": 5.0}
    all_slow = {"fused": 30.0, "quarters": 60.0, "stored": 15.0}
    for times, families, first in (
        (slow, {"quarters": "rowwise"}, halves),
        (all_slow, {"quarters": "rowwise"}, path_of("apart", "quarters", "stored")),
    ):
        near = Neighbourhood(Answers(families=families), GridSpace(FORKS), Predictions())  # type: ignore[arg-type]
        visit(near, start, sum(times.values()), times)
        assert near.next() == first


@dataclass
class Together(Answers):
    """A problem with one kernel, which all the answers make."""

    def kernel_counts(self, path: Path) -> Mapping[str, tuple[Kernel, int]]:
        made = "+".join(sorted(str(value) for value in knobs_of(path).values()))
        return {made: (self.kernel(made), 1)}

    def kernel(self, answer: str) -> Kernel:
        body = matmul_program(16 + 16 * answer.count("apart")).graph
        return self.made.setdefault(answer, Kernel("contraction", body, answer))


class PaysTogether:
    def predicted_us(self, kernel: Kernel) -> float:
        return {0: 10.0, 1: 10.3, 2: 10.2, 3: 9.0}[kernel.label.count("apart")]


def sparing(*answers: str) -> Path:
    return tuple(Option(((f"SPARE_{number}", answer),)) for number, answer in enumerate(answers))


@pytest.mark.parametrize("offered_at_2", [("fused", "apart"), ("fused",)])
def test_one_answer_is_also_given_wherever_the_same_is_asked(offered_at_2: tuple[str, ...]) -> None:
    """Where it is offered: a fork without that answer keeps the best one's."""
    space = GridSpace({"SPARE_0": ("fused", "apart"), "SPARE_1": ("fused", "apart"), "SPARE_2": offered_at_2})
    near = Neighbourhood(Together(), space, PaysTogether())  # type: ignore[arg-type]
    visit(near, sparing("fused", "fused", "fused"), 10.0)
    found = offered(near)
    assert found[0] == sparing("apart", "apart", offered_at_2[-1])
    assert len(found) == len(set(found))
    assert sparing("fused", "fused", "fused") not in found
