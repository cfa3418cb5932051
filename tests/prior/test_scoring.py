from __future__ import annotations

import math

import pytest

from engine.codegen import offered_schedules, schedule_space
from engine.knobs import KNOBS
from engine.prior import ColdModel, OptionScorer, features, score_options
from engine.vocabulary import KnobValue, Option, Target
from tests.prior.kernels import matmul, softmax

KERNEL = matmul(512, 4096, 1024)
SPACE = [s.as_dict() for s in offered_schedules(KERNEL, Target())]


def options(name: str) -> list[Option]:
    return [Option(((name, value),)) for value in KNOBS[name].values]


def best_speed(knobs: dict[str, KnobValue]) -> float:
    rows = [s for s in SPACE if all(s[n] == v for n, v in knobs.items())]
    return math.exp(-min(ColdModel().predict(features(KERNEL, rows, Target()))))


@pytest.mark.parametrize("fixed", [{}, {"BLOCK_M": 128}, {"BLOCK_M": 64, "BLOCK_N": 128, "LOADS": "pointer"}])
def test_an_option_is_as_fast_as_its_best_completion(fixed: dict[str, KnobValue]) -> None:
    scorer = OptionScorer(ColdModel(), KERNEL, Target(), SPACE)
    asked = [o for o in options("BLOCK_K") if any(s.items() >= {**fixed, **dict(o.knobs)}.items() for s in SPACE)]
    speeds = scorer.speeds(fixed, asked)
    assert speeds == pytest.approx([best_speed({**fixed, **dict(o.knobs)}) for o in asked])


def test_following_the_fastest_option_ends_at_the_best_candidate() -> None:
    scorer = OptionScorer(ColdModel(), KERNEL, Target(), SPACE)
    space, path = schedule_space(KERNEL, Target()), ()
    while (fork := space.fork(path)) is not None:
        speeds = scorer.speeds({n: v for o in path for n, v in o.knobs}, fork.options)
        path = (*path, fork.options[speeds.index(max(speeds))])  # type: ignore[assignment]
    assert best_speed({n: v for o in path for n, v in o.knobs}) == pytest.approx(best_speed({}))


def test_an_option_outside_the_candidates_still_has_a_speed() -> None:
    scorer = OptionScorer(ColdModel(), KERNEL, Target(), SPACE)
    speeds = scorer.speeds({"BLOCK_M": 128}, [Option((("BLOCK_N", 512),)), Option((("BLOCK_N", 128),))])
    assert 0 < speeds[0] < speeds[1]


@pytest.mark.parametrize(
    ("kernel", "name"), [(KERNEL, "BLOCK_M"), (softmax(16384, 4096), "COLUMNS"), (softmax(16384, 4096), "ROWS")]
)
def test_a_single_question_needs_no_candidates(kernel: object, name: str) -> None:
    speeds = score_options(ColdModel(), kernel, Target(), {"NUM_WARPS": 4}, options(name))  # type: ignore[arg-type]
    assert all(speed > 0 and math.isfinite(speed) for speed in speeds)
    assert len(set(speeds)) == len(speeds)


def test_given_completions_are_the_only_ones_that_count() -> None:
    asked: list[object] = []

    def completions(fixed: object) -> list[dict[str, KnobValue]]:
        asked.append(fixed)
        return SPACE[:50]

    first = Option((("BLOCK_K", SPACE[0]["BLOCK_K"]),))
    (speed,) = score_options(ColdModel(), KERNEL, Target(), {}, [first], completions)
    rows = [s for s in SPACE[:50] if s["BLOCK_K"] == SPACE[0]["BLOCK_K"]]
    assert asked == [{}]
    assert speed == pytest.approx(math.exp(-min(ColdModel().predict(features(KERNEL, rows, Target())))))


def test_knobs_that_the_kernel_does_not_have_are_ignored() -> None:
    scorer = OptionScorer(ColdModel(), KERNEL, Target(), SPACE)
    plain = scorer.speeds({}, options("NUM_WARPS"))
    assert scorer.speeds({"ROWS": 4, "unknown": 1}, options("NUM_WARPS")) == plain
