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


def test_what_is_wider_or_no_number_stays() -> None:
    assert rounded(0.1, "float32") == 0.1
    assert rounded(7, "int32") == 7
    assert math.isnan(rounded(math.nan, "bfloat16"))
