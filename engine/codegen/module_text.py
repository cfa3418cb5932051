"""The frame around a kernel function's lines: imports, helpers that the lines use, decorator, signature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.codegen.expressions import POINTER_TYPE
from engine.codegen.half_results import HALF_HELPERS
from engine.codegen.source import Argument
from engine.codegen.tile_groups import HALF_ROLL
from engine.ir.graph import Graph

_HELPERS: dict[str, tuple[str, ...]] = {
    "maximum_nan": ("left, right", "return tl.maximum(left, right, propagate_nan=tl.PropagateNan.ALL)"),
    "minimum_nan": ("left, right", "return tl.minimum(left, right, propagate_nan=tl.PropagateNan.ALL)"),
    HALF_ROLL: (
        "tile, rows: tl.constexpr, groups: tl.constexpr, half: tl.constexpr",
        "halves = tl.permute(tl.reshape(tile, (rows, groups, 2, half)), (0, 1, 3, 2))",
        "low, high = tl.split(halves)",
        "return tl.reshape(tl.permute(tl.join(high, low), (0, 1, 3, 2)), tile.shape)",
    ),
    **HALF_HELPERS,
}


@dataclass(frozen=True, slots=True)
class Function:
    """A part of a kernel that its entry calls: it returns nothing, and its lines are indented already."""

    name: str
    parameters: tuple[str, ...]
    lines: tuple[str, ...]


def module_text(
    entry: str, arguments: Sequence[Argument], lines: Sequence[str], functions: Sequence[Function] = ()
) -> str:
    """A Python module that defines `entry` and the `functions` that it calls; the lines are indented already."""
    body = "\n".join(lines)
    called = "\n".join("\n".join(function.lines) for function in functions)
    head = ["import triton", "import triton.language as tl"]
    helpers: list[str] = []
    for name, (parameters, *statements) in _HELPERS.items():
        if name in body + called:
            helpers += ["", "", "@triton.jit", f"def {name}({parameters}):", *(f"    {text}" for text in statements)]
    if "libdevice." in "\n".join([body, called, *helpers]):
        head.append("from triton.language.extra import libdevice")
    head += helpers
    for function in functions:
        head += ["", "", "@triton.jit", f"def {function.name}({', '.join(function.parameters)}):", *function.lines]
    signature = f"def {entry}({', '.join(argument.name for argument in arguments)}):"
    return "\n".join([*head, "", "", "@triton.jit", signature, body, ""])


def descriptor_type(dtype: str, block: tuple[int, int]) -> str:
    """Triton's signature text of a descriptor that moves such blocks."""
    return f"tensordesc<{POINTER_TYPE[dtype][1:]}[{block[0]},{block[1]}]>"


def pointer_arguments(body: Graph) -> tuple[Argument, ...]:
    """One pointer for every input and output of the body, in order."""
    inputs = [Argument(f"in{i}", "input", i, POINTER_TYPE[s.dtype]) for i, s in enumerate(body.input_specs())]
    outputs = [Argument(f"out{i}", "output", i, POINTER_TYPE[s.dtype]) for i, s in enumerate(body.output_specs())]
    return (*inputs, *outputs)
