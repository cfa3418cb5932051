"""A kernel cut out of its grouping with stand-in inputs, so that it can be tuned alone."""

from __future__ import annotations

from dataclasses import dataclass

from engine.ir.graph import TensorSpec
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.ir.shapes import GraphError


@dataclass(frozen=True, slots=True)
class Slice:
    """A kernel and the spec of each stand-in input, in the order of the kernel's body inputs."""

    kernel: Kernel
    inputs: tuple[TensorSpec, ...]


def cut_slice(grouping: Grouping, kernel_key: str) -> Slice:
    """The slice of the kernel with this structural key. Raises GraphError when the grouping has no such kernel."""
    for call in grouping.calls:
        if call.kernel.key == kernel_key:
            return Slice(call.kernel, call.kernel.body.input_specs())
    raise GraphError(f"the grouping has no kernel {kernel_key}")
