"""torch.export as a capture uses it: which composite ops stay whole, and what its errors say."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from engine.capture.errors import CaptureError, DataDependentError, UnsupportedOpError
from engine.capture.folders import OURS, STANDARD, TORCH
from engine.capture.meta import DATA_TEXT, is_data_dependent, one_line
from engine.capture.promoting import cast_whole_numbers

_KEPT_WHOLE = ("silu", "rms_norm", "scaled_dot_product_attention", "roll")
"""Composite ops that have one name in our graphs, and lose it when torch decomposes them."""

_OF_TORCHS_OWN = ("FakeTensor", "FunctionalTensor", "tensor subclass", "data pointer", "HigherOrderOperator", "Proxy")


def export(
    call: nn.Module, tensors: tuple[torch.Tensor, ...], literals: list[torch.Tensor] | None = None
) -> torch.export.ExportedProgram:
    """The call in core ATen, without running it. `literals` gets the tensors that the code makes of numbers in it.

    Raises DataDependentError or UnsupportedOpError.
    """
    table: Any = torch.export.default_decompositions()
    for name in _KEPT_WHOLE:
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads():
            table.pop(getattr(packet, overload), None)
    try:
        with torch.no_grad():
            exported = torch.export.export(call, tensors, strict=False)
            if literals is not None:
                literals.extend(_literals(exported))
            cast_whole_numbers(exported)
            # before, as a decomposition may widen what it is given; after, for ops that are made of pointwise ones
            decomposed = cast(torch.export.ExportedProgram, exported.run_decompositions(table))
            cast_whole_numbers(decomposed)
            return decomposed
    except CaptureError:
        raise
    except Exception as error:
        if is_data_dependent(error):
            raise DataDependentError(DATA_TEXT) from None
        raise UnsupportedOpError(f"torch.export can't capture the call{_cause(error)}.") from None


def _cause(error: Exception) -> str:
    """What it failed at: its words, or, where these are about torch's own parts, the line of code that led there."""
    if not isinstance(error, AssertionError) and not any(word in str(error) for word in _OF_TORCHS_OWN):
        return f": {one_line(error)}"
    lines = [
        step
        for step in traceback.extract_tb(error.__traceback__)
        if step.line and not step.filename.startswith((TORCH, STANDARD, OURS, "<"))
    ]
    return f" at `{lines[-1].line}` ({Path(lines[-1].filename).name}, line {lines[-1].lineno})" if lines else ""


def _literals(exported: torch.export.ExportedProgram) -> list[torch.Tensor]:
    """Tensors that `torch.tensor` and its like make: torch.export keeps one for all calls, and copies it in each."""
    targets = {str(getattr(spec.arg, "name", "")): spec.target for spec in exported.graph_signature.input_specs}
    copied = [
        targets.get(node.args[0].name)
        for node in exported.graph.nodes
        if node.target is torch.ops.aten.lift_fresh_copy.default and isinstance(node.args[0], torch.fx.Node)
    ]
    found = [exported.constants.get(target) for target in copied if target is not None]
    # memory of NumPy's can't be resized: that is an array of the user's, and no literal
    return [one for one in found if isinstance(one, torch.Tensor) and one.untyped_storage().resizable()]


def allows_tf32() -> bool:
    """Whether the code allowed TF32 for fp32 matmuls; torch has two settings for it and refuses to mix them."""
    try:
        return bool(torch.backends.cuda.matmul.allow_tf32) or torch.get_float32_matmul_precision() != "highest"
    except RuntimeError:
        return str(torch.backends.cuda.matmul.fp32_precision) == "tf32"
