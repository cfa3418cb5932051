"""What counts as a deviation: by norm, by worst element, and never hidden by NaN, infinity or zeros."""

from __future__ import annotations

import math

import pytest
import torch

from engine.runtime import compare, poison
from engine.runtime.comparison import GARBAGE_BYTE, NAN_BYTE, holds_nan, same_bits

REFERENCE = torch.randn(1000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def one(output: torch.Tensor, reference: torch.Tensor) -> tuple[float, float]:
    return compare([output], [reference])[0]


def test_equal_is_zero_and_rounding_is_small() -> None:
    assert one(REFERENCE, REFERENCE) == (0.0, 0.0)
    norm, worst = one(REFERENCE.to(torch.bfloat16), REFERENCE)
    assert 1e-3 < norm < 3e-3
    assert norm < worst < 4e-3


def test_one_wrong_element_shows_in_the_worst() -> None:
    wrong = REFERENCE.clone()
    wrong[17] += 1.0
    norm, worst = one(wrong, REFERENCE)
    assert norm < 0.05
    assert worst > 0.2


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_single_nan_or_infinity_is_nan(value: float) -> None:
    wrong = REFERENCE.clone()
    wrong[5] = value
    assert all(math.isnan(number) for number in one(wrong, REFERENCE))
    assert one(wrong, wrong) == (0.0, 0.0), "where the reference has it too, it is right"
    assert all(math.isnan(number) for number in one(REFERENCE, wrong))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_reference_beyond_the_range_is_an_infinity_of_its_sign(dtype: torch.dtype) -> None:
    largest = torch.finfo(dtype).max
    beyond = torch.cat([REFERENCE, torch.tensor([3.0, -3.0], dtype=torch.float64) * largest])
    rounded = beyond.to(dtype)
    assert rounded.isinf().sum() == 2
    norm, worst = one(rounded, beyond)
    assert norm <= worst < 4e-3
    assert math.isnan(one(-rounded, beyond)[0])
    for at, wrong in ((-1, largest), (-1, math.nan), (0, math.inf)):
        changed = rounded.clone()
        changed[at] = wrong
        assert math.isnan(one(changed, beyond)[0])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_at_the_edge_of_the_range_both_roundings_are_right(sign: float) -> None:
    largest = torch.finfo(torch.float16).max
    for reference in (largest - 10.0, largest + 30.0):
        wanted = sign * torch.tensor([1.0, reference], dtype=torch.float64)
        for rounded in (largest, math.inf):
            assert one(sign * torch.tensor([1.0, rounded], dtype=torch.float16), wanted)[1] < 1e-3
    hidden = torch.tensor([1.0, math.inf], dtype=torch.float16)
    assert math.isnan(one(hidden, torch.tensor([1.0, largest / 2], dtype=torch.float64))[0])


def test_a_reference_of_zeros_accepts_zeros_only() -> None:
    zeros = torch.zeros(10, dtype=torch.float64)
    assert one(zeros.float(), zeros) == (0.0, 0.0)
    assert one(zeros + 1e-20, zeros)[0] == math.inf


def test_booleans_and_integers_count_wrong_elements() -> None:
    reference = torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    assert one(torch.tensor([True, False, True, False]), reference) == (0.25, 0.25)
    assert one(torch.tensor([7, -2]), torch.tensor([7.0, -2.0], dtype=torch.float64)) == (0.0, 0.0)


def test_chunks_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    output = REFERENCE.to(torch.float16)
    whole = one(output, REFERENCE)
    monkeypatch.setattr("engine.runtime.comparison.CHUNK", 64)
    assert one(output, REFERENCE) == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.bool])
def test_poison_is_seen_in_every_dtype(dtype: torch.dtype) -> None:
    output = torch.zeros((3, 5), dtype=dtype)
    poison([output], NAN_BYTE)
    assert holds_nan([output]) == dtype.is_floating_point
    assert bool((output != 0).all())
    poison([output], GARBAGE_BYTE)
    assert not holds_nan([output]) or dtype is torch.float16


def test_same_bits_sees_through_nan() -> None:
    odd = torch.tensor([math.nan, -0.0, 1.0])
    assert same_bits([odd], [odd.clone()])
    assert not same_bits([odd], [torch.tensor([math.nan, 0.0, 1.0])])
    assert same_bits([odd.expand(2, 3)], [odd.expand(2, 3).clone()])
