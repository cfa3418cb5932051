from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from engine.codegen import offered_schedules
from engine.ir import Kernel
from engine.knobs import KNOBS
from engine.prior import ColdModel, Prior, features
from engine.prior.geometry import knobs_read
from engine.prior.structure import kernel_facts
from engine.vocabulary import KnobValue, Target
from tests.prior.kernels import Problem, matmul, measured_problems, silu_mul, softmax

extent = st.integers(1, 9000)
kernels = st.one_of(
    st.builds(matmul, extent, extent, extent, st.sampled_from(["bfloat16", "float32", "float64"])),
    st.builds(matmul, extent, extent, extent, batch=st.integers(1, 64), bias=st.booleans()),
    st.builds(softmax, extent, st.integers(2, 100_000), st.sampled_from(["bfloat16", "float32"])),
    st.builds(silu_mul, extent, extent),
)
PROBLEMS = measured_problems()


def us(kernel: Kernel, *schedules: dict[str, KnobValue], target: Target | None = None) -> list[float]:
    return [math.exp(v) for v in ColdModel().predict(features(kernel, schedules, target or Target()))]


@st.composite
def candidates(draw: st.DrawFn) -> tuple[Kernel, dict[str, KnobValue]]:
    kernel = draw(kernels)
    return kernel, {n: draw(st.sampled_from(KNOBS[n].values)) for n in knobs_read(kernel_facts(kernel))}


@given(candidates(), st.data())
def test_every_candidate_has_a_time_and_a_partial_one_is_a_lower_bound(
    candidate: tuple[Kernel, dict[str, KnobValue]], data: st.DataObject
) -> None:
    kernel, schedule = candidate
    left_out = data.draw(st.sets(st.sampled_from(sorted(name for name in schedule if not KNOBS[name].optional))))
    partial = {name: value for name, value in schedule.items() if name not in left_out}
    full, open_, nothing = us(kernel, schedule, partial, {})
    assert math.isfinite(full)
    assert 0 < nothing <= open_ * (1 + 1e-9)
    assert open_ <= full * (1 + 1e-9)
    assert us(kernel, schedule, partial, {}) == [full, open_, nothing]


@given(candidates(), st.integers(2, 5))
def test_more_of_the_same_work_is_never_faster(candidate: tuple[Kernel, dict[str, KnobValue]], times: int) -> None:
    kernel, schedule = candidate
    facts = kernel_facts(kernel)
    rows, columns, depth = (int(facts[name]) for name in ("rows", "columns", "depth"))
    if facts["contractions"]:
        small, large = (matmul(r, columns, depth) for r in (rows, rows * times))
    elif facts["reductions"]:
        small, large = (softmax(r, columns) for r in (rows, rows * times))
    else:
        small, large = (silu_mul(r, 1000) for r in (columns // 1000 + 1, (columns // 1000 + 1) * times))
    assert us(large, schedule)[0] >= us(small, schedule)[0] * (1 - 1e-9)


@given(candidates())
def test_a_faster_memory_is_never_slower(candidate: tuple[Kernel, dict[str, KnobValue]]) -> None:
    kernel, schedule = candidate
    fast = dataclasses.replace(Target(), memory_bandwidth=2 * Target().memory_bandwidth)
    assert us(kernel, schedule, target=fast)[0] <= us(kernel, schedule)[0] * (1 + 1e-9)


def test_one_tile_more_than_a_wave_holds_costs_a_wave() -> None:
    tile = tile_of(128, 256, 64, 8, 3)
    one, two = (us(matmul(128 * tiles, 256, 4096), tile)[0] for tiles in (132, 133))
    assert two > 1.6 * one


def test_spilled_accumulators_cost_more_than_they_save() -> None:
    fits, spills = us(matmul(4096, 4096, 4096), tile_of(128, 256, 64, 8, 3), tile_of(256, 256, 64, 8, 3))
    assert spills > 2 * fits


def test_no_prediction_beats_the_roofline() -> None:
    kernel = matmul(4096, 4096, 4096)
    floor = 1e6 * kernel.flops / Target().peak_bf16
    schedules = [s.as_dict() for s in itertools.islice(offered_schedules(kernel, Target()), 0, None, 7)]
    assert min(us(kernel, *schedules)) > floor


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_measured_times_are_ranked_and_a_near_best_is_named_early(problem: Problem) -> None:
    predicted = ColdModel().predict(features(problem.kernel, problem.schedules, Target()))
    times = np.array(problem.times_us)
    assert spearmanr(predicted, times).statistic > 0.5
    first_ten = np.argsort(predicted, kind="stable")[:10]
    assert times[first_ten].min() <= 1.12 * times.min()
    assert 0.5 < math.exp(predicted[times.argmin()]) / times.min() < 1.6


def tile_of(m: int, n: int, k: int, warps: int, stages: int, **more: KnobValue) -> dict[str, KnobValue]:
    return {
        **{"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "NUM_WARPS": warps, "NUM_STAGES": stages},
        **{"PRECISION": "ieee", "LOADS": "descriptor", "GROUP_M": 8, "PERSISTENT": False, **more},
    }


def choice(**knobs: KnobValue) -> dict[str, KnobValue]:
    return knobs


EXPERTS = [
    (matmul(4096, 4096, 4096), choice(BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, NUM_WARPS=8), 5),
    (
        matmul(4096, 4096, 4096),
        choice(BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, NUM_WARPS=8, PERSISTENT=True, STORES="halves"),
        3,
    ),
    (matmul(2048, 2048, 2048), choice(BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, NUM_WARPS=8), 5),
    (matmul(512, 4096, 1024), choice(BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, NUM_WARPS=8, NUM_STAGES=4), 20),
    (matmul(512, 1024, 2048), choice(BLOCK_M=64, BLOCK_N=64, BLOCK_K=128, NUM_WARPS=4, NUM_STAGES=5), 5),
    (matmul(32, 4096, 1024), choice(BLOCK_M=32, BLOCK_N=32, BLOCK_K=256, NUM_WARPS=4, NUM_STAGES=3), 20),
    (matmul(32, 1024, 3072), choice(BLOCK_M=16, BLOCK_N=16, BLOCK_K=256, NUM_WARPS=1), 30),
    (
        matmul(512, 512, 512, "float32"),
        choice(BLOCK_M=32, BLOCK_N=64, BLOCK_K=64, NUM_WARPS=4, NUM_STAGES=4, PRECISION="tf32x3"),
        20,
    ),
    (matmul(1, 4096, 1024), choice(BLOCK_M=1, BLOCK_N=32, BLOCK_K=256, NUM_WARPS=4, NUM_STAGES=4), 5),
    (matmul(4, 4096, 1024), choice(BLOCK_M=4, BLOCK_N=32, BLOCK_K=256, NUM_WARPS=8), 10),
    (softmax(16384, 4096), choice(ROWS=1, COLUMNS=4096, NUM_WARPS=4), 5),
    (softmax(16384, 4096), choice(ROWS=2, COLUMNS=4096, NUM_WARPS=8), 20),
    (silu_mul(4096, 11008), choice(BLOCK=1024, NUM_WARPS=4), 15),
]


@pytest.mark.parametrize(("kernel", "expert", "rank"), EXPERTS, ids=lambda value: str(value)[:40])
def test_what_experts_choose_is_among_the_first_of_the_whole_space(
    kernel: Kernel, expert: dict[str, KnobValue], rank: int
) -> None:
    space = [s.as_dict() for s in offered_schedules(kernel, Target())]
    order = np.argsort(ColdModel().predict(features(kernel, space, Target())), kind="stable")
    places = [i for i, at in enumerate(order, start=1) if all(space[at][n] == v for n, v in expert.items())]
    assert places, "the space lacks the choice"
    assert min(places) <= rank


@pytest.mark.parametrize("kernel", [matmul(4096, 4096, 1024), softmax(16384, 4096)])
def test_most_schedules_differ_and_none_of_the_first_hundred_is_a_plateau(kernel: Kernel) -> None:
    space = [s.as_dict() for s in offered_schedules(kernel, Target())]
    times = np.sort(ColdModel().predict(features(kernel, space, Target())))
    assert len(np.unique(times)) > 0.7 * len(times)
    assert max(len(list(group)) for _, group in itertools.groupby(times[:100])) <= 8


def test_the_cold_model_is_a_prior_that_learns_nothing() -> None:
    model: Prior = ColdModel()
    matrix = features(softmax(64, 64), [{}], Target())
    assert model.version == "cold-1"
    assert model.refit(matrix, np.zeros(1)) is model
    assert len(model.predict(features(softmax(64, 64), [], Target()))) == 0
