"""torch.export as a capture uses it: which composite ops stay whole, and what its errors say."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import nn

from engine.capture.errors import CaptureError, DataDependentError, UnsupportedOpError
from engine.capture.meta import DATA_TEXT, is_data_dependent, one_line

_KEPT_WHOLE = ("silu", "rms_norm", "scaled_dot_product_attention", "roll")
"""Composite ops that have one name in our graphs, and lose it when torch decomposes them."""


def export(call: nn.Module, tensors: tuple[torch.Tensor, ...]) -> torch.export.ExportedProgram:
    """The call in core ATen, without running it. Raises DataDependentError or UnsupportedOpError."""
    table: Any = torch.export.default_decompositions()
    for name in _KEPT_WHOLE:
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads():
            table.pop(getattr(packet, overload), None)
    try:
        with torch.no_grad():
            exported = torch.export.export(call, tensors, strict=False)
            return cast(torch.export.ExportedProgram, exported.run_decompositions(table))
    except CaptureError:
        raise
    except Exception as error:
        if is_data_dependent(error):
            raise DataDependentError(DATA_TEXT) from None
        raise UnsupportedOpError(f"torch.export can't capture the call: {one_line(error)}.") from None


def allows_tf32() -> bool:
    """Whether the code allowed TF32 for fp32 matmuls; torch has two settings for it and refuses to mix them."""
    try:
        return bool(torch.backends.cuda.matmul.allow_tf32) or torch.get_float32_matmul_precision() != "highest"
    except RuntimeError:
        return str(torch.backends.cuda.matmul.fp32_precision) == "tf32"
