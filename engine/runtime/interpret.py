"""Run a generated kernel without a GPU, in Triton's interpreter, on CPU tensors.

Triton decides at import whether it interprets, so a process that calls `interpret` starts with TRITON_INTERPRET=1 in
its environment, and can then compile nothing for a GPU.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from engine.codegen import Argument, KernelSource
from engine.ir.graph import TensorSpec
from engine.runtime._interpreter_compat import interpreter_repairs

_POISON_BYTE = 0xFF
"""Every float dtype reads this as NaN."""
_counter = itertools.count()


def interpret(
    source: KernelSource, inputs: Sequence[torch.Tensor], outputs: Sequence[TensorSpec]
) -> list[torch.Tensor]:
    """Run every program of the grid, and return the outputs, which are poisoned before.

    Raises RuntimeError when this process's Triton does not interpret, and Triton's InterpreterError for a bad kernel.
    """
    if not triton.knobs.runtime.interpret:
        raise RuntimeError("Triton interprets nothing in this process; start it with TRITON_INTERPRET=1.")
    results = [_poisoned(spec) for spec in outputs]
    arguments = [_argument(argument, inputs, results) for argument in source.arguments]
    function, name = _load(source)
    try:
        with interpreter_repairs():
            function[source.grid](*arguments)
    finally:
        linecache.cache.pop(name, None)
    return results


def _poisoned(spec: TensorSpec) -> torch.Tensor:
    storage = torch.empty(spec.storage_elements, dtype=getattr(torch, spec.dtype))
    storage.view(torch.uint8).fill_(_POISON_BYTE if spec.dtype != "bool" else 1)
    return storage.as_strided(spec.shape, spec.strides, spec.offset)


def _argument(argument: Argument, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> Any:
    tensor = (inputs if argument.kind == "input" else outputs)[argument.index]
    if not argument.block:
        return tensor.as_strided((1,), (1,), 0)
    view = tensor.as_strided(argument.shape, argument.strides, argument.offset)
    return TensorDescriptor(view, list(argument.shape), list(argument.strides), list(argument.block))


def _load(source: KernelSource) -> tuple[Any, str]:
    """The kernel function. The interpreter reads its source back, so the text is kept where `inspect` finds it."""
    name = f"<emmy kernel {next(_counter)}>"
    linecache.cache[name] = (len(source.text), None, source.text.splitlines(keepends=True), name)
    module = ModuleType("emmy_kernel")
    exec(compile(source.text, name, "exec"), module.__dict__)
    return getattr(module, source.entry), name
