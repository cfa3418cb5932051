"""The frame around a kernel function's lines: imports, helpers that the lines use, decorator, signature."""

from __future__ import annotations

from collections.abc import Sequence

from engine.codegen.expressions import POINTER_TYPE
from engine.codegen.source import Argument
from engine.ir.graph import Graph

_HELPERS = {
    "maximum_nan": "return tl.maximum(left, right, propagate_nan=tl.PropagateNan.ALL)",
    "minimum_nan": "return tl.minimum(left, right, propagate_nan=tl.PropagateNan.ALL)",
}


def module_text(entry: str, arguments: Sequence[Argument], lines: Sequence[str]) -> str:
    """A Python module that defines `entry`; the lines are indented already."""
    body = "\n".join(lines)
    head = ["import triton", "import triton.language as tl"]
    if "libdevice." in body:
        head.append("from triton.language.extra import libdevice")
    for name, statement in _HELPERS.items():
        if name in body:
            head += ["", "", "@triton.jit", f"def {name}(left, right):", f"    {statement}"]
    signature = f"def {entry}({', '.join(argument.name for argument in arguments)}):"
    return "\n".join([*head, "", "", "@triton.jit", signature, body, ""])


def pointer_arguments(body: Graph) -> tuple[Argument, ...]:
    """One pointer for every input and output of the body, in order."""
    inputs = [Argument(f"in{i}", "input", i, POINTER_TYPE[s.dtype]) for i, s in enumerate(body.input_specs())]
    outputs = [Argument(f"out{i}", "output", i, POINTER_TYPE[s.dtype]) for i, s in enumerate(body.output_specs())]
    return (*inputs, *outputs)
