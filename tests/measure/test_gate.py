"""The gate lets through what eager's precision allows and the chip can do, and nothing else."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.measure.gate import (
    EXACT,
    FLOORS,
    Deviation,
    impossible_time,
    largest_norm,
    less_exact_than_eager,
    tolerance,
    wrong_result,
)
from engine.vocabulary import FailureKind, Target

FP32 = Deviation(2.1e-7, 1.2e-6)
"""What cuBLAS's IEEE fp32 product of 512^3 was measured at on an H200."""


def passes(found: Deviation, eager: Deviation, dtype: str) -> bool:
    return wrong_result([found], [tolerance(eager, dtype)]) is None


@pytest.mark.parametrize(
    ("norm", "worst", "passed"),
    [
        (2.1e-7, 1.2e-6, True),  # tf32x3 as measured
        (7.7e-4, 4e-3, False),  # tf32 as measured
        (3e-4, 1e-3, False),  # tf32 at its best
        (2.1e-7, 1e-2, False),  # one bad element
        (math.nan, math.nan, False),
        (math.inf, math.inf, False),
    ],
)
def test_fp32_matmul_keeps_ieee_error(norm: float, worst: float, passed: bool) -> None:
    assert passes(Deviation(norm, worst), FP32, "float32") is passed


def test_tf32_passes_where_eager_itself_was_allowed_tf32() -> None:
    assert passes(Deviation(7.7e-4, 4e-3), Deviation(6e-4, 3e-3), "float32")


def test_bf16_rounding_passes_and_a_race_does_not() -> None:
    assert passes(Deviation(2.4e-3, 4e-3), Deviation(1.7e-3, 3.9e-3), "bfloat16")
    assert not passes(Deviation(4.2e-1, 1.0), Deviation(1.7e-3, 3.9e-3), "bfloat16")
    assert not passes(Deviation(2.4e-3, 0.5), Deviation(1.7e-3, 3.9e-3), "bfloat16")


def test_integers_must_be_exact() -> None:
    assert tolerance(EXACT, "int64") == EXACT
    assert passes(EXACT, EXACT, "int64")
    assert not passes(Deviation(1e-9, 1e-9), EXACT, "bool")


@given(st.sampled_from(sorted(FLOORS)), st.floats(0, 1), st.floats(0, 1))
def test_what_eager_does_always_passes(dtype: str, norm: float, worst: float) -> None:
    assert passes(Deviation(norm, worst), Deviation(norm, worst), dtype)


@given(st.floats(allow_nan=True), st.floats(allow_nan=True))
def test_nan_never_passes(norm: float, worst: float) -> None:
    if math.isnan(norm) or math.isnan(worst):
        assert not passes(Deviation(norm, worst), Deviation(math.inf, math.inf), "bfloat16")


def test_a_wrong_result_says_how_wrong() -> None:
    failure = wrong_result([EXACT, Deviation(0.42, 1.0)], [EXACT, tolerance(FP32, "float32")])
    assert failure is not None
    assert failure.kind is FailureKind.WRONG_RESULT
    assert "4.2e-01" in failure.cause


def test_every_output_has_a_limit_of_its_own() -> None:
    limits = [tolerance(EXACT, "bfloat16"), tolerance(EXACT, "float32")]
    assert wrong_result([Deviation(1e-3, 1e-2), Deviation(1e-7, 1e-6)], limits) is None
    assert wrong_result([Deviation(1e-7, 1e-6), Deviation(1e-3, 1e-2)], limits) is not None


def test_the_largest_error_is_recorded() -> None:
    assert largest_norm([(1e-3, 0), (2e-3, 0)]) == 2e-3
    assert math.isnan(largest_norm([(1e-3, 0), (math.nan, 0)]))


def test_each_output_is_held_against_eagers_in_its_own_dtype() -> None:
    exact, coarse = (0.0, 0.0), (4e-3, 1e-2)
    assert less_exact_than_eager([exact, coarse], [exact, exact], ["torch.float32", "torch.bfloat16"]) is None
    assert less_exact_than_eager([coarse, exact], [exact, exact], ["torch.float32", "torch.bfloat16"]) is not None
    assert less_exact_than_eager([coarse, exact], [coarse, exact], ["float32", "bfloat16"]) is None


@pytest.mark.parametrize("us", [0.0, -1.0, math.nan, math.inf])
def test_a_time_that_is_none_is_impossible(us: float) -> None:
    failure = impossible_time(us, 0, 0, Target())
    assert failure is not None
    assert failure.kind is FailureKind.IMPOSSIBLE_TIME


def test_speeds_seen_on_the_chip_are_possible_and_ten_times_them_are_not() -> None:
    product = 2 * 4096**3
    assert impossible_time(173.5, product, 3 * 2 * 4096**2, Target()) is None
    assert impossible_time(17.35, product, 3 * 2 * 4096**2, Target()) is not None
    softmax = 2 * 2 * 16384 * 4096
    assert impossible_time(64.6, 0, softmax, Target()) is None
    assert impossible_time(6.46, 0, softmax, Target()) is not None


def test_data_that_stays_in_l2_may_move_faster_than_memory() -> None:
    assert impossible_time(2.0, 0, 16 << 20, Target()) is None, "8 TB/s out of L2"
