"""Which computed value each output of a body stores: views only re-read it, so its own storage is written."""

from __future__ import annotations

from dataclasses import dataclass

from engine.codegen.family import Unsupported
from engine.ir.graph import Graph, TensorSpec


@dataclass(frozen=True, slots=True)
class Output:
    """Output number `position` stores op `index`, contiguous."""

    position: int
    index: int
    spec: TensorSpec


def stored_outputs(body: Graph) -> tuple[Output, ...]:
    """The outputs in order. Raises Unsupported for one that is an input, a number, or only a part of a value."""
    result = []
    for position, index in enumerate(body.outputs):
        seen = body.ops[index].out
        while body.ops[index].kind == "view":
            index = body.ops[index].inputs[0]
        op = body.ops[index]
        if op.kind in ("input", "constant"):
            raise Unsupported(f"Output {position} returns {'an input' if op.kind == 'input' else 'a number'} as it is.")
        if seen.storage_elements != op.out.numel:
            raise Unsupported(f"Output {position} is only a part of the value that is computed for it.")
        result.append(Output(position, index, op.out))
    return tuple(result)
