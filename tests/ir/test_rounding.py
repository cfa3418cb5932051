from __future__ import annotations

import math
import struct

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.ir.rounding import rounded


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@given(number=st.floats(allow_nan=False, width=64) | st.floats(-70000, 70000, width=32))
def test_a_number_is_what_a_tensor_holds_of_it(dtype: str, number: float) -> None:
    held = float(torch.tensor(number, dtype=torch.float64).to(torch.float32).to(getattr(torch, dtype)))
    assert struct.pack("d", rounded(number, dtype)) == struct.pack("d", held)


@given(number=st.floats(allow_nan=False, width=64) | st.floats(-1e-37, 1e-37))
def test_a_number_in_float32_is_the_same_constant_there(number: float) -> None:
    held = float(torch.tensor(number, dtype=torch.float64).to(torch.float32))
    kept = rounded(number, "float32")
    assert float(torch.tensor(kept, dtype=torch.float32)) == held
    assert kept in (number, held)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@given(number=st.integers(-(2**63), 2**63 - 1))
def test_a_whole_number_wraps_as_in_a_tensor(dtype: str, number: int) -> None:
    assert rounded(number, dtype) == int(torch.tensor(number, dtype=torch.int64).to(getattr(torch, dtype)))


def test_what_is_wider_or_no_number_stays() -> None:
    assert rounded(0.1, "float32") == 0.1
    assert rounded(7, "int32") == 7
    assert rounded(1e300, "float64") == 1e300
    assert rounded(True, "bool") is True
    assert math.copysign(1, rounded(-0.0, "float32")) == -1
    assert math.isnan(rounded(math.nan, "bfloat16"))
