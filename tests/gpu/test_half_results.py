"""Activations for results of 16 bits on the GPU, over every number of both dtypes, beside torch's own kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from engine.codegen import render
from engine.ir import Kernel
from engine.runtime import compile_source
from engine.runtime.launch import bind_launch
from engine.runtime.toolchain import read_target
from engine.vocabulary import Schedule
from tests.codegen.half_truth import NUMBERS, TRUE, activation, every_number, least_clear, places

EAGER: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kind", sorted(EAGER))
def test_every_number_is_as_right_as_in_torch(kind: str, dtype: str, tmp_path: Path) -> None:
    schedule = Schedule.of({"BLOCK": 1024, "EVICTION": "", "NUM_WARPS": 4})
    target = read_target(0)
    compiled = compile_source(render(Kernel("pointwise", activation(kind, dtype)), schedule, target), target, tmp_path)
    numbers = every_number(dtype).cuda()
    found = torch.full_like(numbers, math.nan)
    bind_launch(compiled, [numbers], [found])()
    torch.cuda.synchronize()
    eager, true = EAGER[kind](numbers), TRUE[kind](numbers.double())
    wanted = true.to(found.dtype)
    held = wanted.isfinite() & numbers.isfinite()
    clear = held & (true.abs() >= least_clear(kind))
    off, eager_off = (places(found) - places(wanted)).abs(), (places(eager) - places(wanted)).abs()
    wrong, eager_wrong = int((off[clear] > 0).sum()), int((eager_off[clear] > 0).sum())
    print(f"\n{kind} {dtype}: {wrong} of {int(clear.sum())} off by one place, of eager's {eager_wrong}")
    special = ~numbers.isfinite() | (numbers == 0)
    assert torch.equal(found.isnan(), eager.isnan())
    assert torch.equal(found[special & ~eager.isnan()], eager[special & ~eager.isnan()])
    assert torch.equal(found.signbit()[special & ~eager.isnan()], eager.signbit()[special & ~eager.isnan()])
    assert int(off[clear].max()) <= 1
    assert float((found.double() - true)[held & ~clear].abs().max()) < least_clear(kind)
    # The hardware's exponential and reciprocal are off by 2 units of float32, which few roundings notice.
    assert wrong <= eager_wrong + NUMBERS // 500
