"""A compiled source and torch tensors in, a launch without arguments out: nothing is left to do but to start it.

A body without a source of its own, a library's call, becomes such a launch too: torch runs it, on the current stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
from triton.runtime import driver
from triton.tools.tensor_descriptor import TensorDescriptor

from engine.codegen import Argument
from engine.ir.graph import Graph
from engine.ir.placement import passed_offset
from engine.runtime.compile import CompiledSource
from engine.runtime.reference import evaluate

Launch = Callable[[], None]


def bind_launch(compiled: CompiledSource, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> Launch:
    """Bind a kernel to its tensors; the returned call launches it on torch's current stream of their GPU.

    It may be captured in a CUDA graph. Nothing is checked but what a tensor descriptor demands (AssertionError or
    ValueError from Triton); Triton loads the binary at the first launch, and its errors come from there.
    """
    values = [kernel_argument(argument, inputs, outputs) for argument in compiled.source.arguments]
    run = compiled.kernel[compiled.source.grid]

    def launch() -> None:
        run(*values)

    return launch


def bind_extern(body: Graph, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> Launch:
    """Bind a library's call to its tensors, as `bind_launch` does. Its results are copied to where the plan wants them.

    It may be captured if the call itself waits for nothing on the host. Raises GraphError, at the launch, for a call
    that can't be.
    """

    def launch() -> None:
        for output, value in zip(outputs, evaluate(body, inputs, dtype=None), strict=True):
            output.copy_(value)

    return launch


def allow_scratch_memory(device: torch.device) -> None:
    """Let kernels that need scratch memory of their own (descriptors made on the GPU) get it from torch."""

    def allocate(size: int, alignment: int, stream: int | None) -> torch.Tensor:
        return torch.empty(size, dtype=torch.int8, device=device)

    triton.set_allocator(allocate)


def load_launcher() -> None:
    """Build Triton's host side now, so that a missing C compiler shows at once and no candidate pays for it."""
    utilities: Any = driver.active.utils
    utilities.get_device_properties(torch.cuda.current_device())


def registers_and_spills(compiled: CompiledSource) -> tuple[int | None, int | None]:
    """Registers and bytes of local memory a thread, as the driver reports them; None before a first launch."""
    registers = getattr(compiled.kernel, "n_regs", None)
    words = getattr(compiled.kernel, "n_spills", None)
    return registers, None if words is None else 4 * words


def kernel_argument(argument: Argument, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> Any:
    """What a generated kernel takes for its tensor: the last 16-byte boundary of the storage before the tensor's first
    element, as `engine.ir.placement` has it, or a descriptor of the matrix that the argument describes from there.
    """
    tensor = (inputs if argument.kind == "input" else outputs)[argument.index]
    start = passed_offset(int(tensor.storage_offset()), tensor.element_size()) if tensor.numel() else 0
    if not argument.block:
        return tensor.as_strided((1,), (1,), start)
    view = tensor.as_strided(argument.shape, argument.strides, start + argument.offset)
    return TensorDescriptor(view, list(argument.shape), list(argument.strides), list(argument.block))
