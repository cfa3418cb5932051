"""Numbers that a tensor's dtype can't hold: a captured graph compares with what torch compares with."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from engine.capture.lowering import Lowering, Value
from engine.ir.graph import TensorSpec
from engine.runtime.reference import evaluate

COMPARED: dict[str, Callable[..., torch.Tensor]] = {
    name: getattr(torch, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int32", "int64")
HELD = (0.1, 0.5, 0.0, 1.0, -1.0, math.inf, -math.inf, 44.0, 2048.0, 2049.0, 65504.0, 16777216.0, 2.0**-24)


def _tensor(dtype: str) -> torch.Tensor:
    values = torch.tensor(HELD, dtype=torch.float64)
    exact = values if dtype in FLOATS else values.clamp(-100, 2.0**25).to(torch.int64)
    return exact.to(getattr(torch, dtype))


def _graph_of(kind: str, *operands: torch.Tensor | float) -> torch.Tensor:
    """What the lowered graph gives, each op in its own dtype."""
    low = Lowering()
    lowered: list[Value | float] = []
    tensors = []
    for operand in operands:
        if isinstance(operand, torch.Tensor):
            dtype = str(operand.dtype).removeprefix("torch.")
            lowered.append(low.input(TensorSpec.contiguous(tuple(operand.shape), dtype), "x"))
            tensors.append(operand)
        else:
            lowered.append(operand)
    done = low.pointwise(kind, *lowered, dtype="bool")
    return evaluate(low.builder.build(low.stored(done)), tensors, None)[0]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@given(number=st.floats(allow_nan=True) | st.sampled_from(HELD) | st.integers(-(2**40), 2**40))
@example(0.1)
@example(1e300)
@example(1e-50)
@example(16777217)
@example(65519.999)
@example(2.0**-25)
@example(300)
def test_a_number_is_compared_as_the_dtype_holds_it(dtype: str, number: float) -> None:
    x = _tensor(dtype)
    for kind, eager in COMPARED.items():
        assert torch.equal(_graph_of(kind, x, number), eager(x, number)), kind


@pytest.mark.parametrize("other", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_a_tensor_without_axes_is_compared_in_the_dtype_of_the_others(dtype: str, other: str) -> None:
    x = _tensor(dtype)
    for single in _tensor(other):
        for kind, eager in COMPARED.items():
            assert torch.equal(_graph_of(kind, x, single), eager(x, single)), (kind, single)


def _constants(kind: str, number: float, dtype: str) -> list[object]:
    low = Lowering()
    x = low.input(TensorSpec.contiguous((4,), dtype), "x")
    graph = low.builder.build(low.pointwise(kind, x, number, dtype=dtype).index)
    return [op.attribute("value") for op in graph.ops if op.kind == "constant"]


@pytest.mark.parametrize("kind", ["maximum", "minimum", "pow"])
def test_a_bound_and_an_exponent_are_what_the_dtype_holds(kind: str) -> None:
    assert _constants(kind, 0.1, "float16") == [0.0999755859375]
    assert _constants(kind, 0.1, "float32") == [0.1]


@pytest.mark.parametrize("kind", ["add", "mul", "div"])
def test_arithmetic_takes_the_number_as_it_is(kind: str) -> None:
    assert _constants(kind, 0.1, "float16") == [0.1]


def test_a_comparison_that_loses_nothing_casts_nothing() -> None:
    low = Lowering()
    x = low.input(TensorSpec.contiguous((4,), "float32"), "x")
    y = low.input(TensorSpec.contiguous((4,), "int64"), "y")
    graph = low.builder.build(low.pointwise("lt", x, y, dtype="bool").index)
    assert [op.kind for op in graph.ops] == ["input", "input", "lt"]
