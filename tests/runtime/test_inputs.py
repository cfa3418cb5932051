from __future__ import annotations

import pytest
import torch

from engine.ir import TensorSpec
from engine.ir.graph import DTYPE_BYTES
from engine.runtime.inputs import Draw, make_inputs


@pytest.mark.parametrize("dtype", sorted(DTYPE_BYTES))
@pytest.mark.parametrize("draw", list(Draw))
def test_every_dtype_varies(dtype: str, draw: Draw) -> None:
    (drawn,) = make_inputs([TensorSpec.contiguous((8, 32), dtype)], 3, "cpu", draw)
    assert drawn.dtype == getattr(torch, dtype)
    assert len(drawn.unique()) > 1
    assert drawn.double().isfinite().all()
    assert (drawn != 0).any()


def test_layout_is_the_spec_and_the_storage_no_larger() -> None:
    spec = TensorSpec((4, 5, 6), "bfloat16", (40, 0, 1), 3)
    (drawn,) = make_inputs([spec], 0, "cpu")
    assert (tuple(drawn.shape), drawn.stride(), drawn.storage_offset()) == (spec.shape, spec.strides, spec.offset)
    assert drawn.untyped_storage().nbytes() == spec.storage_elements * 2
    assert drawn.untyped_storage().data_ptr() % 16 == 0


def test_seed_decides_and_inputs_of_one_spec_differ() -> None:
    specs = [TensorSpec.contiguous((64,), "float32")] * 2
    first, second = make_inputs(specs, 1, "cpu")
    again, _ = make_inputs(specs, 1, "cpu")
    other, _ = make_inputs(specs, 2, "cpu")
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert not torch.equal(first, other)


def test_signed_zeros_come_with_both_signs() -> None:
    (drawn,) = make_inputs([TensorSpec.contiguous((256,), "float32")], 1, "cpu", Draw.SIGNED_ZEROS)
    zeros = drawn[drawn == 0]
    assert 0 < len(zeros) < 256
    assert 0 < int(torch.signbit(zeros).sum()) < len(zeros)


def test_large_draw_overflows_exp() -> None:
    (drawn,) = make_inputs([TensorSpec.contiguous((256,), "float32")], 1, "cpu", Draw.LARGE)
    assert drawn.exp().isinf().any()


@pytest.mark.parametrize("shape", [(), (0,), (1,)])
def test_small_shapes(shape: tuple[int, ...]) -> None:
    for dtype in ("float32", "bool", "int64"):
        (drawn,) = make_inputs([TensorSpec.contiguous(shape, dtype)], 1, "cpu")
        assert tuple(drawn.shape) == shape


@pytest.mark.parametrize("shape", [(24, 40), (2, 1, 1, 40), (2, 3, 24, 40)])
def test_truth_values_hide_all_of_one_row_and_not_all_rows(shape: tuple[int, ...]) -> None:
    (mask,) = make_inputs([TensorSpec.contiguous(shape, "bool")], 2, "cpu")
    rows = mask.reshape(-1, shape[-1]).any(-1)
    assert int((~rows).sum()) == 1
    (whole,) = make_inputs([TensorSpec(shape, "bool", (*(0 for _ in shape[:-1]), 1))], 2, "cpu")
    assert bool(whole.any())
