"""Whole numbers beside 16-bit floats, as torch computes with them: it makes 16-bit floats of them first.

Kernels read a whole number as it is, and some of torch's decompositions widen it, so that the cast, which rounds and
overflows, is written into the graph. Of a tensor without axes it isn't: torch reads one that lies on the CPU exactly.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

_COARSE = (torch.float16, torch.bfloat16)
_WIDE = (torch.int16, torch.int32, torch.int64)
_LOSSES = frozenset({"aten::mse_loss", "aten::smooth_l1_loss", "aten::huber_loss", "aten::l1_loss"})
"""Pointwise ops, and a reduction of what they give."""
_REDUCTIONS = frozenset(
    {
        *("aten::sum", "aten::prod", "aten::cumsum", "aten::cumprod", "aten::nansum"),
        *("aten::softmax", "aten::log_softmax"),
    }
)
"""Ops that may be told in which dtype to compute. Not the mean: on the CPU torch adds up wider for it."""


def cast_whole_numbers(exported: ExportedProgram) -> None:
    """Write into the graph of a program the casts of whole numbers to 16-bit floats."""
    changed = False
    for node in list(exported.graph.nodes):
        dtype = _rounding(node)
        for operand in dict.fromkeys(node.all_input_nodes) if dtype is not None else ():
            value = operand.meta.get("val")
            if isinstance(value, torch.Tensor) and value.dtype in _WIDE and value.dim() > 0:
                with exported.graph.inserting_before(node):
                    cast = exported.graph.call_function(torch.ops.aten._to_copy.default, (operand,), {"dtype": dtype})
                cast.meta = {**operand.meta, "val": value.to(dtype)}
                node.replace_input_with(operand, cast)
                changed = True
    if changed:
        exported.graph_module.recompile()


def _rounding(node: Node) -> torch.dtype | None:
    """The 16-bit float in which an operation computes with whole numbers; None where it does no such thing."""
    target: Any = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return None
    name, result = target._schema.name, node.meta.get("val")
    casts = torch.Tag.pointwise in target.tags and name != "aten::_to_copy"
    if not casts and name not in _LOSSES and name not in _REDUCTIONS:
        return None
    return result.dtype if isinstance(result, torch.Tensor) and result.dtype in _COARSE else None
