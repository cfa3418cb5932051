"""What the prior says of attention kernels, and that it says of the others what it always did."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.codegen import offered_schedules, schedule_space
from engine.ir import Kernel
from engine.knobs import KNOBS
from engine.prior import ColdModel, OptionScorer, features
from engine.prior.geometry import GEOMETRY, knobs_read
from engine.prior.structure import kernel_facts
from engine.vocabulary import KnobValue, Target
from tests.codegen.attention_bodies import attention
from tests.prior.kernels import matmul, silu_mul, softmax

H200 = Target()
LAYER = Kernel("attention", attention(16, 512, 512, 128, "bfloat16", group=2, causal=True))
LONG = Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16", batch=4, causal=True))
DECODE = Kernel("attention", attention(16, 1, 4096, 128, "bfloat16", group=2))
FLOAT32 = Kernel("attention", attention(2, 100, 70, 80, "float32", joined=False))


def us(kernel: Kernel, schedules: list[dict[str, KnobValue]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.exp(ColdModel().predict(features(kernel, schedules, H200)))


@pytest.mark.parametrize(
    ("kernel", "logs"),
    [
        (matmul(4096, 4096, 4096), (6.945987, 6.282557, 5.454736)),
        (matmul(512, 512, 512, "float32"), (2.982738, 2.544739, 3.946999)),
        (softmax(16384, 4096), (4.733280, 4.820324, 4.366759)),
        (silu_mul(512, 3072), (2.149826, 1.402805, 1.332363)),
    ],
    ids=["matmul", "fp32", "softmax", "pointwise"],
)
def test_predictions_of_other_kernels_stand(kernel: Kernel, logs: tuple[float, ...]) -> None:
    offered = [s.as_dict() for s in offered_schedules(kernel, H200)]
    offered = [knobs for knobs in offered if knobs.get("STORES", "pointer") == "pointer"]
    chosen = [offered[i] for i in (0, len(offered) // 3, -1)]
    assert ColdModel().predict(features(kernel, chosen, H200)) == pytest.approx(logs, abs=1e-5)


@pytest.mark.parametrize("kernel", [LAYER, LONG, DECODE, FLOAT32], ids=["layer", "long", "decode", "fp32"])
def test_every_schedule_has_a_time_above_the_roofline_and_its_own_knobs_only(kernel: Kernel) -> None:
    schedules = [s.as_dict() for s in offered_schedules(kernel, H200)]
    asked = {name for name in knobs_read(kernel_facts(kernel)) if not KNOBS[name].optional}
    assert asked <= set(schedules[0]) <= set(knobs_read(kernel_facts(kernel)))
    times = us(kernel, schedules)
    floor = 1e6 * kernel.flops / (H200.peak_bf16 if kernel is not FLOAT32 else H200.peak_tf32)
    assert np.isfinite(times).all()
    assert times.min() > floor
    assert len(set(times.round(9))) > len(schedules) // 2
    matrix = features(kernel, schedules, H200)
    assert all(np.isfinite(matrix.column(name)).all() for name in GEOMETRY)
    assert (matrix.column("BLOCK_K") == KNOBS["BLOCK_K"].off).all()


@pytest.mark.parametrize("kernel", [LAYER, FLOAT32], ids=["layer", "fp32"])
def test_an_undecided_schedule_is_a_lower_bound(kernel: Kernel) -> None:
    schedule = list(offered_schedules(kernel, H200))[7].as_dict()
    for name in schedule:
        partial = {k: v for k, v in schedule.items() if k != name}
        nothing, open_, full = us(kernel, [{}, partial, schedule])
        assert 0 < nothing <= open_ * (1 + 1e-9)
        assert open_ <= full * (1 + 1e-9)


def test_the_best_hand_made_schedule_is_predicted_near_the_best() -> None:
    """Queries by 64 and keys by 128 through descriptors won at 512 tokens, and 64 by 64 at 2048, of what has one tile
    of queries a program and masks every block."""
    for kernel, keys, stages in ((LAYER, 128, 3), (LONG, 64, 3)):
        expert: dict[str, KnobValue] = {"BLOCK_M": 64, "BLOCK_N": keys, "PRECISION": "ieee", "LOADS": "descriptor"}
        expert |= {"NUM_WARPS": 4, "NUM_STAGES": stages}
        offered = [s.as_dict() for s in offered_schedules(kernel, H200)]
        off = {name: KNOBS[name].off for name in offered[0] if KNOBS[name].optional}
        offered = [s for s in offered if s | off == s]
        expert |= off
        assert expert in offered
        times = us(kernel, offered)
        assert times[offered.index(expert)] < 1.3 * times.min()


FULL = Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16", batch=4))
CORNER = ("BLOCK_M", "BLOCK_N", "LOADS", "NUM_WARPS", "NUM_STAGES")


def first_predicted(kernel: Kernel, count: int, *overlaps: str) -> list[dict[str, KnobValue]]:
    """The first of those whose OVERLAP is one of these, or of all."""
    offered = [s.as_dict() for s in offered_schedules(kernel, H200)]
    offered = [values for values in offered if not overlaps or values["OVERLAP"] in overlaps]
    return [offered[i] for i in us(kernel, offered).argsort(kind="stable")[:count]]


def test_a_mask_that_cuts_is_predicted_first_where_the_mask_is_causal() -> None:
    """As measured: 162.2 us, and 165.3 with the mask in every block."""
    first = first_predicted(LONG, 10, "none")
    assert [first[0][name] for name in CORNER] == [64, 64, "descriptor", 4, 3]
    assert first[0]["MASK"] == "cut"
    assert first[1] == first[0] | {"MASK": "every"}
    assert sum(values["MASK"] == "cut" for values in first) > 5


def test_two_tiles_are_predicted_first_where_nothing_is_masked() -> None:
    """As measured: 273.3 us with 256 queries, 277.7 with 128, 283.3 with one tile of 64; 318 with 32 keys a step."""
    first = first_predicted(FULL, 8, "none")
    assert [values["QUERY_TILES"] for values in first[:4]] == [2, 2, 2, 1]
    assert [128, 64, "descriptor", 4, 2] in [[values[name] for name in CORNER] for values in first[:3]]
    assert [256, 64, "descriptor", 8, 3] in [[values[name] for name in CORNER] for values in first[:3]]
    assert all(values["BLOCK_N"] != 32 for values in first)


def test_roles_for_warps_are_predicted_first_where_loops_are_long_and_tiles_many() -> None:
    """As measured: 125 us where programs walk the tiles, 141 where each has one, 162 without; 220, 242 and 273."""
    for kernel in (LONG, FULL):
        assert [values["OVERLAP"] for values in first_predicted(kernel, 3)] == ["persistent", "specialized", "none"]
    few = Kernel("attention", attention(4, 1024, 1024, 128, "bfloat16", causal=True))
    assert all(values["OVERLAP"] == "none" for values in first_predicted(few, 8))


def test_scores_of_options_are_usable() -> None:
    space = schedule_space(LAYER, H200)
    fork = space.fork(())
    assert fork is not None
    scores = OptionScorer(ColdModel(), LAYER, H200).speeds({}, fork.options)
    assert all(math.isfinite(score) and score > 0 for score in scores)
