"""Landscapes made to mislead a search that learns: it ends within its patience, and never worse than where it began."""

from __future__ import annotations

import pytest

from engine.prior import Surrogate
from engine.search import EnumeratedSpace, StopReason
from engine.tune.scoring import LearningSearch
from engine.vocabulary import KnobValue

POINTS: list[dict[str, KnobValue]] = [{"A": a, "B": b, "C": c} for a in range(8) for b in range(8) for c in range(4)]
NEEDLE = {"A": 7, "B": 0, "C": 3}


def basin(knobs: dict[str, KnobValue]) -> float | None:
    """A broad basin around (1, 6, 0) of 100 us, and a narrow one of 10 us in the far corner."""
    far = abs(int(knobs["A"]) - 7) + int(knobs["B"]) + abs(int(knobs["C"]) - 3)
    if far <= 2:
        return 10.0 + 5.0 * far
    return 100.0 + abs(int(knobs["A"]) - 1) + abs(int(knobs["B"]) - 6) + int(knobs["C"])


def needle(knobs: dict[str, KnobValue]) -> float | None:
    return 10.0 if knobs == NEEDLE else None


def plain(knobs: dict[str, KnobValue]) -> float | None:
    return 50.0


def walk(us, patience: int, predicted: list[float] | None = None, seed: int = 0) -> tuple[LearningSearch, list[float]]:  # type: ignore[no-untyped-def]
    search = LearningSearch(EnumeratedSpace(POINTS), Surrogate(POINTS, predicted, seed), patience=patience)
    times = []
    while (proposal := search.ask()) is not None:
        answer = us(proposal.knobs)
        search.tell(proposal, None if answer is None else 1.0 / answer)
        times.append(float("inf") if answer is None else answer)
    return search, times


@pytest.mark.parametrize("seed", range(3))
def test_a_narrow_basin_beside_a_broad_one_is_found(seed: int) -> None:
    search, times = walk(basin, patience=100, seed=seed)
    assert min(times) <= times[0]
    assert min(times) == 10.0
    assert search.stopped is not None


def test_a_prior_that_points_at_the_poor_basin_costs_time_and_not_the_answer() -> None:
    misled = [0.1 * (abs(int(p["A"]) - 1) + abs(int(p["B"]) - 6) + int(p["C"])) for p in POINTS]
    _, times = walk(basin, patience=len(POINTS), predicted=misled)
    assert times[0] >= 100.0
    assert min(times) == 10.0


def test_all_failing_but_one() -> None:
    search, times = walk(needle, patience=len(POINTS) + 1)
    assert min(times) == 10.0
    assert len(times) <= len(POINTS)
    assert search.stopped is StopReason.EXHAUSTED


def test_patience_ends_a_search_that_only_fails() -> None:
    search, times = walk(needle, patience=20)
    assert search.stopped is StopReason.PATIENCE
    assert len(times) <= 20 + 8
    assert search.best is None or search.best.reward == pytest.approx(0.1)


def test_all_equal() -> None:
    search, times = walk(plain, patience=50)
    assert search.stopped is StopReason.PATIENCE
    assert set(times) == {50.0}
    assert len(times) == 51
