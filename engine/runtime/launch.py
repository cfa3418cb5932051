"""A compiled source and torch tensors in, a launch without arguments out: nothing is left to do but to start it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from engine.codegen import Argument
from engine.runtime.compile import CompiledSource

Launch = Callable[[], None]


def bind_launch(compiled: CompiledSource, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> Launch:
    """Bind a kernel to its tensors; the returned call launches it on torch's current stream of their GPU.

    It may be captured in a CUDA graph. Nothing is checked but what a tensor descriptor demands (AssertionError or
    ValueError from Triton); Triton loads the binary at the first launch, and its errors come from there.
    """
    values = [_value(argument, inputs, outputs) for argument in compiled.source.arguments]
    run = compiled.kernel[compiled.source.grid]

    def launch() -> None:
        run(*values)

    return launch


def allow_scratch_memory(device: torch.device) -> None:
    """Let kernels that need scratch memory of their own (descriptors made on the GPU) get it from torch."""

    def allocate(size: int, alignment: int, stream: int | None) -> torch.Tensor:
        return torch.empty(size, dtype=torch.int8, device=device)

    triton.set_allocator(allocate)


def registers_and_spills(compiled: CompiledSource) -> tuple[int | None, int | None]:
    """Registers and bytes of local memory a thread, as the driver reports them; None before a first launch."""
    registers = getattr(compiled.kernel, "n_regs", None)
    words = getattr(compiled.kernel, "n_spills", None)
    return registers, None if words is None else 4 * words


def storage_start(tensor: torch.Tensor) -> torch.Tensor:
    """The first element of the storage that `tensor` views: generated code adds a tensor's offset itself."""
    return tensor.as_strided((1,), (1,), 0)


def _value(argument: Argument, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> Any:
    tensor = (inputs if argument.kind == "input" else outputs)[argument.index]
    if not argument.block:
        return storage_start(tensor)
    view = tensor.as_strided(argument.shape, argument.strides, argument.offset)
    return TensorDescriptor(view, list(argument.shape), list(argument.strides), list(argument.block))
