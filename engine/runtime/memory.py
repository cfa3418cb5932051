"""Memory as a whole: what lies behind a tensor, and what of the GPU's nothing holds any more."""

from __future__ import annotations

import gc

import torch


def whole_storage(tensor: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """All that the tensor's storage holds, in place: one axis, from its first byte on, read as `dtype` (None: its own).

    `as_strided` with the tensor's shape, strides and storage offset gives the tensor again, of a copy too.
    """
    return torch.empty(0, dtype=dtype or tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())


def packed(tensor: torch.Tensor) -> torch.Tensor:
    """The elements in order, from the first of a storage on: the tensor itself where they lie so, else a copy.

    `contiguous` alone gives a part of another tensor's storage back as it is.
    """
    found = tensor.contiguous()
    return found.clone() if found.storage_offset() else found


def free_memory() -> None:
    """Collect what Python holds in cycles and give back what torch keeps; a broken context is left as it is."""
    gc.collect()
    try:
        torch.cuda.empty_cache()
    except RuntimeError:
        return
