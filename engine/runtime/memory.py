"""Memory of the GPU that nothing holds any more goes back to whoever asks for some next."""

from __future__ import annotations

import gc

import torch


def free_memory() -> None:
    """Collect what Python holds in cycles and give back what torch keeps; a broken context is left as it is."""
    gc.collect()
    try:
        torch.cuda.empty_cache()
    except RuntimeError:
        return
