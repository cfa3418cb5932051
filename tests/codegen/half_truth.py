"""Activations for results of 16 bits: what is right for every number of a dtype, and how far a result lies from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
import torch.nn.functional as F

from engine.ir import Graph, GraphBuilder
from engine.ir.graph import TensorSpec

NUMBERS = 65536
VANISHING = 3e-10
"""Below this size a gelu's tail lies beyond what the polynomial is fitted to; eager's has no digits there either."""
FLUSHED = 2e-36
TRUE: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = MappingProxyType(
    {
        "gelu": lambda x: x * 0.5 * torch.special.erfc(-x / math.sqrt(2)),
        "silu": F.silu,
        "sigmoid": torch.sigmoid,
        "gelu_tanh": lambda x: x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)),
    }
)
"""The functions in float64, with the digits that erf and tanh lose left of zero."""


def activation(kind: str, dtype: str) -> Graph:
    """A body that applies `kind` to each of NUMBERS numbers."""
    builder = GraphBuilder()
    return builder.build(builder.add(kind, builder.input(TensorSpec.contiguous((NUMBERS,), dtype))))


def every_number(dtype: str) -> torch.Tensor:
    """Each pattern of 16 bits once, as a number of `dtype`."""
    return torch.arange(NUMBERS, dtype=torch.int32).to(torch.int16).view(getattr(torch, dtype))


def least_clear(kind: str) -> float:
    """From this size on, a result is right to its last place."""
    return VANISHING if kind == "gelu" else FLUSHED


def places(values: torch.Tensor) -> torch.Tensor:
    """Each number's place in the order of its dtype's numbers; both zeros have one."""
    bits = values.view(torch.int16).int()
    return torch.where(bits < 0, -(bits & 0x7FFF), bits)
