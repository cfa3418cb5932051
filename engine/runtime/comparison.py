"""How far an output is from a reference in higher precision: one number for all of it, one for its worst element."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

CHUNK = 1 << 25
"""Elements compared at once: 32 Mi float64 temporaries of 256 MiB."""
EDGE = 2.0**-7
"""Relative distance from a dtype's largest number within which a rounding decides between it and infinity."""

NAN_BYTE, GARBAGE_BYTE = 0xFF, 0x7F
"""Byte patterns that poison an output: 0xff makes every float a NaN, 0x7f a huge number (a NaN in fp16)."""


def compare(outputs: Sequence[torch.Tensor], references: Sequence[torch.Tensor]) -> tuple[tuple[float, float], ...]:
    """Relative norm and worst element of each output.

    The norm is |out - ref| / |ref|. The worst element is max |out - ref| / (|ref| + rms(ref)), so that neither a tiny
    nor a huge element hides. A reference beyond the range of the output's dtype is the infinity that it rounds to.
    Where the reference is NaN or infinite the output must be the same; anything else, and any other NaN, gives NaN.
    For bool and integer outputs both numbers are the share of wrong elements.
    """
    return tuple(_compare_one(o, r) for o, r in zip(outputs, references, strict=True))


def poison(outputs: Sequence[torch.Tensor], byte: int = NAN_BYTE) -> None:
    """Overwrite contiguous outputs, so that an element that a kernel doesn't write is seen."""
    for output in outputs:
        output.view(-1).view(torch.uint8).fill_(byte)


def holds_nan(tensors: Sequence[torch.Tensor]) -> bool:
    return any(t.is_floating_point() and bool(t.isnan().any()) for t in tensors)


def same_bits(left: Sequence[torch.Tensor], right: Sequence[torch.Tensor]) -> bool:
    """Equal elements bit for bit, NaN included."""
    return all(torch.equal(_bytes(a), _bytes(b)) for a, b in zip(left, right, strict=True))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)


def _in_range(reference: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The reference in float64, with the infinities that `dtype` has for what it can't hold."""
    return torch.where(reference.abs() > torch.finfo(dtype).max, reference * math.inf, reference)


def _at_the_edge(output: torch.Tensor, reference: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Where one of both is infinite only because the other was rounded to the other side of the largest number."""
    largest = torch.finfo(dtype).max
    near = ((reference.abs() / largest) - 1.0).abs() <= EDGE
    far = output.isinf() | (output.abs() >= largest * (1.0 - EDGE))
    return near & far & (output.sign() == reference.sign()) & (output.isinf() | (reference.abs() > largest))


def _compare_one(output: torch.Tensor, reference: torch.Tensor) -> tuple[float, float]:
    out, ref = output.reshape(-1), reference.reshape(-1)
    if ref.numel() == 0:
        return 0.0, 0.0
    if not output.is_floating_point():
        wrong = float((out != ref.to(out.dtype)).double().mean())
        return wrong, wrong
    finite_sum, count = 0.0, 0
    for part in torch.split(ref, CHUNK):
        part = _in_range(part.double(), output.dtype)
        finite = part.isfinite()
        finite_sum += float(part.square().masked_fill(~finite, 0.0).sum())
        count += int(finite.sum())
    rms = math.sqrt(finite_sum / count) if count else 0.0
    square, worst = 0.0, 0.0
    for got, want in zip(torch.split(out, CHUNK), torch.split(ref, CHUNK), strict=True):
        got64, want64 = got.double(), want.double()
        want64 = torch.where(_at_the_edge(got64, want64, output.dtype), got64, _in_range(want64, output.dtype))
        exact = want64.isfinite().logical_not()
        same = (got64 == want64) | (got64.isnan() & want64.isnan())
        if bool((exact & ~same).any()) or bool((~exact & ~got64.isfinite()).any()):
            return math.nan, math.nan
        difference = (got64 - want64).abs().masked_fill(exact, 0.0)
        square += float(difference.square().sum())
        scale = (want64.abs() + rms).masked_fill(exact, 1.0)
        worst = max(worst, float((difference / scale.clamp_min(torch.finfo(torch.float64).tiny)).max()))
    if finite_sum == 0.0:
        return (0.0, 0.0) if square == 0.0 else (math.inf, math.inf)
    return math.sqrt(square / finite_sum), worst
