"""Can this process use the GPU: why not from the start, and whether it still can after a candidate went wrong."""

from __future__ import annotations

import torch

from engine.runtime.failures import one_line


def describe_unusable(error: Exception) -> str:
    """Why this process can't measure, in one sentence for a person."""
    if not torch.cuda.is_available():
        return "torch sees no CUDA GPU here (is the driver installed, and is torch a CUDA build?)"
    text = one_line(str(error)) or type(error).__name__
    if "C compiler" in text or "gcc" in text:
        return f"Triton needs a C compiler to launch kernels; install gcc or set CC ({text})"
    return f"the GPU can't be used: {text}"


def context_is_sound() -> bool:
    """False after an error that stays (illegal access and its kin): every later call in this process fails too."""
    try:
        torch.cuda.synchronize()
        torch.zeros(1, device="cuda").add_(1).item()
    except Exception:
        return False
    return True
