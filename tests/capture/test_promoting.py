"""Whole numbers beside 16-bit floats: what a captured graph computes with is what torch computes with."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from engine.capture.live import capture_call
from engine.runtime.reference import evaluate

WHOLE = torch.tensor([[100000, 70000, -70000, 5, 2049, -2051, 257, 3]])
NUMBERS = [[-60000.0, 1.0, 60000.0, 2.0, 0.5, -3.25, 1.0, 1e-3]]
Two = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

ROUNDED: dict[str, Two] = {
    "add": lambda i, h: i + h,
    "add, scaled": lambda i, h: torch.add(h, i, alpha=2),
    "sub": lambda i, h: h - i,
    "rsub": lambda i, h: torch.rsub(h, i),
    "in place": lambda i, h: h.clone().add_(i),
    "multiply": lambda i, h: torch.multiply(h, i),
    "mul": lambda i, h: i * h,
    "div": lambda i, h: i / h,
    "pow": lambda i, h: torch.pow(i, h),
    "maximum": lambda i, h: torch.maximum(i, h),
    "where": lambda i, h: torch.where(h > 0, i, h),
    "addcmul": lambda i, h: torch.addcmul(h, i, h, value=0.5),
    "addcdiv": lambda i, h: torch.addcdiv(i, h, h),
    "sum": lambda i, h: i.sum(1, dtype=h.dtype) + h,
    "fmod": lambda i, h: torch.fmod(i, h),
}
WITH_LOGARITHM: dict[str, Two] = {
    "xlogy": lambda i, h: torch.xlogy(i, h.abs()),
    "of whole numbers": lambda i, h: torch.xlogy(h, i.abs()),
}


def _graph_and_eager(function: Two, whole: torch.Tensor, half: torch.Tensor) -> tuple[list[str], torch.Tensor]:
    live = capture_call(function, (whole, half), {})
    inputs = [source if isinstance(source, torch.Tensor) else (whole, half)[source] for source in live.sources]
    graph = live.program.graph
    casts = [graph.ops[op.inputs[0]].out.dtype for op in graph.ops if op.kind == "cast" and "float" in op.out.dtype]
    (found,) = evaluate(graph, inputs, None)
    return casts, found


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("whole", [torch.int64, torch.int32, torch.int16])
@pytest.mark.parametrize("what", ROUNDED)
def test_a_whole_number_is_rounded_before_it_is_used(what: str, whole: torch.dtype, dtype: torch.dtype) -> None:
    numbers = WHOLE.clamp(-30000, 30000) if whole is torch.int16 else WHOLE
    i, h = numbers.to(whole), torch.tensor(NUMBERS, dtype=dtype)
    casts, found = _graph_and_eager(ROUNDED[what], i, h)
    assert str(whole).removeprefix("torch.") in casts
    torch.testing.assert_close(found, ROUNDED[what](i, h), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("what", WITH_LOGARITHM)
def test_it_is_so_where_torch_takes_an_op_apart(what: str, dtype: torch.dtype) -> None:
    h = torch.tensor(NUMBERS, dtype=dtype)
    _, found = _graph_and_eager(WITH_LOGARITHM[what], WHOLE, h)
    torch.testing.assert_close(found, WITH_LOGARITHM[what](WHOLE, h), rtol=1e-2, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    ("whole", "dtype"),
    [
        (torch.int8, torch.float16),
        (torch.uint8, torch.bfloat16),
        (torch.bool, torch.float16),
        (torch.int64, torch.float32),
        (torch.int32, torch.float64),
    ],
)
def test_what_loses_nothing_or_is_converted_by_kernels_is_left_alone(whole: torch.dtype, dtype: torch.dtype) -> None:
    i, h = WHOLE.to(whole), torch.tensor(NUMBERS, dtype=dtype)
    casts, _ = _graph_and_eager(lambda a, b: a + b, i, h)
    assert casts == []


def test_one_without_axes_and_an_index_are_left_alone() -> None:
    h = torch.tensor(NUMBERS, dtype=torch.float16)
    casts, _ = _graph_and_eager(lambda i, b: b * i[0, 0], WHOLE, h)
    assert casts == []
    table = torch.randn(8, 4, dtype=torch.float16)
    rows = torch.tensor([[0, 3, 7]])
    casts, found = _graph_and_eager(lambda i, b: torch.nn.functional.embedding(i, b) * 2.0, rows, table)
    assert casts == []
    assert torch.equal(found, table[rows] * 2.0)
