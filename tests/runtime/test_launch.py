from __future__ import annotations

import pytest
import torch

from engine.codegen import Argument
from engine.runtime.launch import kernel_argument


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.int8, torch.bool])
@pytest.mark.parametrize("offset", [0, 1, 3, 8, 16, 29])
def test_a_pointer_is_the_last_boundary_before_the_tensor(dtype: torch.dtype, offset: int) -> None:
    storage = torch.zeros(64, dtype=dtype)
    given = kernel_argument(Argument("in0", "input", 0, "*"), [storage[offset : offset + 8]], [])
    behind = (storage.data_ptr() + offset * dtype.itemsize) - given.data_ptr()
    assert 0 <= behind < 16
    assert (given.data_ptr() - storage.data_ptr()) % 16 == 0


def test_an_empty_tensor_at_the_end_of_its_storage_has_a_pointer_too() -> None:
    storage = torch.zeros(16)
    given = kernel_argument(Argument("in0", "input", 0, "*"), [storage[16:]], [])
    assert given.data_ptr() == storage.data_ptr()


def test_a_descriptor_describes_what_lies_behind_the_same_boundary() -> None:
    storage = torch.arange(64.0, dtype=torch.float32)
    argument = Argument("d", "input", 0, "tensordesc<fp32[4,4]>", (4, 4), (4, 4), (8, 1), 4)
    described = kernel_argument(argument, [storage.as_strided((4, 2), (8, 1), 17)], [])
    assert torch.equal(described.base, storage[20:52].view(4, 8)[:, :4])
    assert (described.shape, described.strides, described.block_shape) == ([4, 4], [8, 1], [4, 4])
