"""Inputs that show mistakes: every element differs from its neighbours, none is a constant that could fold away."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import torch

from engine.ir.graph import TensorSpec


class Draw(StrEnum):
    """What kind of numbers are drawn. MODEST is what a trained network holds; the others look for lost edge cases."""

    MODEST = "modest"
    LARGE = "large magnitude"
    SIGNED_ZEROS = "signed zeros"


_LARGE_SCALE = 64.0
"""Large enough that exp overflows float32, small enough that a float16 product stays finite."""
_INTEGER_REACH = 16


def make_inputs(
    specs: Sequence[TensorSpec], seed: int, device: torch.device | str, draw: Draw = Draw.MODEST
) -> list[torch.Tensor]:
    """One tensor a spec, viewing a storage of exactly `spec.storage_elements` elements that is filled at random.

    Floats are normal with deviation 1, integers lie within 16 of zero, truth values are mixed, and those of the last
    row are all false: as a mask it hides every key of a query. torch aligns every storage to at least 64 bytes. Equal
    seeds give equal tensors on devices of one kind.
    """
    device = torch.device(device)
    generator = torch.Generator(device=device).manual_seed(seed)
    drawn = [
        _storage(spec, generator, device, draw).as_strided(spec.shape, spec.strides, spec.offset) for spec in specs
    ]
    for tensor in drawn:
        if tensor.dtype == torch.bool:
            _hide_last_row(tensor)
    return drawn


def _hide_last_row(mask: torch.Tensor) -> None:
    """Make the last row false where there are others: by chance a row of many truth values never is."""
    rows = any(extent > 1 and step for extent, step in zip(mask.shape[:-1], mask.stride()[:-1], strict=True))
    if rows and mask.numel():
        mask[(-1,) * (mask.dim() - 1)] = False


def _storage(spec: TensorSpec, generator: torch.Generator, device: torch.device, draw: Draw) -> torch.Tensor:
    dtype = getattr(torch, spec.dtype)
    # An empty tensor may still sit at an offset of its storage.
    size = max(spec.storage_elements, spec.offset)
    if dtype == torch.bool:
        values = torch.rand(size, generator=generator, device=device) < 0.5
        values[:1] = True
        values[1:2] = False
        return values
    if not dtype.is_floating_point:
        low = 0 if dtype == torch.uint8 else -_INTEGER_REACH
        return torch.randint(low, _INTEGER_REACH + 1, (size,), generator=generator, device=device, dtype=dtype)
    values = torch.randn(size, generator=generator, device=device, dtype=_drawn_dtype(dtype))
    if draw is Draw.LARGE:
        values *= _LARGE_SCALE
    elif draw is Draw.SIGNED_ZEROS:
        zero = torch.rand(size, generator=generator, device=device) < 0.5
        values = torch.where(zero, values * 0.0, values)
    return values.to(dtype)


def _drawn_dtype(dtype: torch.dtype) -> torch.dtype:
    """16-bit floats are drawn in float32 and rounded: random bits differ between dtypes, and rounding is the same."""
    return dtype if dtype == torch.float64 else torch.float32
