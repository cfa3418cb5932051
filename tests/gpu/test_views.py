"""Equal kernels that read one buffer at several places, built from constants and asked about random numbers; and the
sign of zero, which eager on the GPU says."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import engine

Tensors = tuple[torch.Tensor, ...]
HALVES = (torch.bfloat16, torch.float16)


def compared(function: Callable[..., Any], made: Callable[[], Tensors]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """What was built gives, and what eager gives; nothing may have been left to eager."""
    built = engine.compile(function)
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        built(*(tensor.clone().fill_(1) for tensor in made()))
        for _ in range(2):
            inputs = made()
            found, wanted = built(*inputs), function(*inputs)
    assert not [str(one.message) for one in caught if "in eager" in str(one.message)]
    several = isinstance(wanted, list | tuple)
    return list(zip(found, wanted, strict=True)) if several else [(found, wanted)]


def made(*shape: int, dtype: torch.dtype = torch.float32) -> Callable[[], Tensors]:
    return lambda: (torch.randn(*shape, device="cuda", dtype=dtype),)


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
@pytest.mark.parametrize("width", [512, 100, 37])
def test_each_part_is_read_where_it_is(dtype: torch.dtype, width: int) -> None:
    weight = torch.randn(width, 64, device="cuda", dtype=dtype)
    readers: list[Callable[[torch.Tensor], Any]] = [
        lambda x: [part * 2 for part in x.chunk(3, -1)],
        lambda x: [part.softmax(-1) for part in x.chunk(3, -1)],
        lambda x: [F.rms_norm(part, (width,)) for part in x.split(width, -1)],
        lambda x: [part @ weight for part in x.split(width, -1)],
        lambda x: [part.t().exp() for part in x.chunk(3, -1)],
        lambda x: [a - b * 2 for a, b in itertools.pairwise(x.chunk(3, -1))],
        lambda x: [row.tanh() for row in x[:4].unbind(0)],
    ]
    for number, reader in enumerate(readers):
        for found, wanted in compared(reader, made(128, 3 * width, dtype=dtype)):
            off = float((found.double() - wanted.double()).norm() / wanted.double().norm())
            assert off < (2e-2 if dtype in HALVES else 2e-3), (number, off)


def test_equal_kernels_whose_inputs_are_met_in_other_orders() -> None:
    def function(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> list[torch.Tensor]:
        first = a.exp() + b * 2
        twice = d * 2
        return [first, twice + c.exp()]

    for found, wanted in compared(function, lambda: tuple(torch.randn(64, 64, device="cuda") for _ in range(4))):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "MultiheadAttention"])
def test_modules_with_gates_and_heads(kind: str) -> None:
    torch.manual_seed(0)
    module: Any = getattr(nn, kind)(64, 4, batch_first=True) if "Attention" in kind else getattr(nn, kind)(64, 64)
    module = module.cuda().eval().requires_grad_(requires_grad=False)
    function = (lambda x: module(x, x, x, need_weights=False)[0]) if "Attention" in kind else (lambda x: module(x)[0])
    for found, wanted in compared(function, made(5, 8, 64)):
        assert float((found - wanted).norm() / wanted.norm()) < 2e-3


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES, torch.float64])
def test_zero_keeps_its_sign_as_in_eager(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        return [-x, 1 / -x, torch.reciprocal(-x), -x * y, -x + y, -x - y]

    zeros = torch.tensor([0.0, -0.0, 1.0, -2.0], device="cuda", dtype=dtype)
    pairs = (zeros.repeat(4).contiguous(), zeros.repeat_interleave(4))
    for number, (found, wanted) in enumerate(compared(function, lambda: pairs)):
        finite = ~(found.isnan() & wanted.isnan())
        same = (found == wanted) & (torch.signbit(found) == torch.signbit(wanted))
        assert bool(same[finite].all()), (number, found.tolist(), wanted.tolist())


@pytest.mark.parametrize("name", ["relu", "clamp", "relu6", "maximum", "minimum"])
def test_what_eager_does_with_zeros_at_a_bound_is_told(name: str) -> None:
    """torch up to 2.11 gives +0 for -0 at a bound of 0, later ones keep the sign: only the number is held to."""
    functions = {"relu": torch.relu, "clamp": lambda x: x.clamp(min=0), "relu6": F.relu6}
    functions |= {"maximum": lambda x: torch.maximum(x, x * 0), "minimum": lambda x: torch.minimum(x, -x * 0)}
    zeros = torch.tensor([0.0, -0.0] * 8, device="cuda")
    ((found, wanted),) = compared(functions[name], lambda: (zeros,))
    print(f"\n{name} of -0.0: ours {found[1].item()}, eager {wanted[1].item()}")
    assert torch.equal(found, wanted)
