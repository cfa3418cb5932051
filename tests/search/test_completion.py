"""The first completion of a path: each finished path is costed once, whoever leads to it."""

from __future__ import annotations

import math

from engine.search import FirstCompletion, Path
from engine.vocabulary import Option
from tests.search.toys import GridSpace, TreeSpace, knobs_of


def step(**knobs: int) -> Option:
    return Option(tuple(knobs.items()))


def test_the_rest_of_a_path_is_at_its_first_options_and_costed_once() -> None:
    asked: list[Path] = []

    def cost(path: Path) -> float:
        asked.append(path)
        return float(sum(int(value) for value in knobs_of(path).values()))

    completed = FirstCompletion(GridSpace({"a": (1, 2), "b": (10, 20)}), cost, math.inf)
    assert [completed(path) for path in ((), (step(a=1),), (step(a=2),), (step(a=1), step(b=20)))] == [11, 11, 12, 21]
    assert completed((step(a=1), step(b=10))) == 11
    assert len(asked) == 3


def test_a_path_into_a_dead_end_costs_what_was_said() -> None:
    completed = FirstCompletion(TreeSpace({"a=1": {}, "a=2": None}), lambda path: 1.0, math.inf)
    assert completed(()) == completed((step(a=1),)) == math.inf
    assert completed((step(a=2),)) == 1.0
