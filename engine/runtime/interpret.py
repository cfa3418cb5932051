"""Run a generated kernel without a GPU, in Triton's interpreter, on CPU tensors.

Triton decides at import whether it interprets, so a process that calls `interpret` starts with TRITON_INTERPRET=1 in
its environment, and can then compile nothing for a GPU.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction

from engine.codegen import GLUON, KernelSource, is_generated
from engine.ir.graph import TensorSpec
from engine.ir.plan import Grouping
from engine.runtime._interpreter_compat import interpreter_repairs
from engine.runtime.assemble import view_buffer
from engine.runtime.interpret_gluon import run_gluon
from engine.runtime.launch import kernel_argument
from engine.runtime.memory import packed
from engine.runtime.reference import evaluate

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
    arguments = [kernel_argument(argument, inputs, results) for argument in source.arguments]
    # A kernel divides by zero and overflows as on a GPU, without a word; numpy would warn on the user's stderr.
    with np.errstate(all="ignore"):
        if source.dialect == GLUON:
            run_gluon(source, arguments)
            return results
        function, name = _load(source)
        try:
            with interpreter_repairs():
                function[source.grid](*arguments)
        finally:
            linecache.cache.pop(name, None)
    return results


def interprets() -> bool:
    """Whether this process's Triton interprets: it was told to before it was imported."""
    return bool(triton.knobs.runtime.interpret) and isinstance(tl.sigmoid, InterpretedFunction)


def interpret_plan(
    grouping: Grouping, sources: Mapping[str, KernelSource], inputs: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """The plan's outputs, kernel after kernel; library calls and what is prepared run as torch runs them.

    `sources` are by structural key. Raises what `interpret` raises.
    """
    buffers: dict[int, torch.Tensor] = dict(enumerate(inputs))
    for step in grouping.prepared:
        values = evaluate(step.body, [view_buffer(buffers, view) for view in step.arguments], None)
        buffers.update(zip(step.results, map(packed, values), strict=True))
    for call in grouping.launches():
        arguments = [view_buffer(buffers, view) for view in call.arguments]
        if is_generated(call.kernel):
            specs = [grouping.buffers[index] for index in call.results]
            values = interpret(sources[call.kernel.key], arguments, specs)
        else:
            values = [packed(value) for value in evaluate(call.kernel.body, arguments, None)]
        buffers.update(zip(call.results, values, strict=True))
    return [view_buffer(buffers, view) for view in grouping.outputs]


def _poisoned(spec: TensorSpec) -> torch.Tensor:
    storage = torch.empty(spec.storage_elements, dtype=getattr(torch, spec.dtype))
    storage.view(torch.uint8).fill_(_POISON_BYTE if spec.dtype != "bool" else 1)
    return storage.as_strided(spec.shape, spec.strides, spec.offset)


def _load(source: KernelSource) -> tuple[Any, str]:
    """The kernel function. The interpreter reads its source back, so the text is kept where `inspect` finds it."""
    name = f"<emmy kernel {next(_counter)}>"
    linecache.cache[name] = (len(source.text), None, source.text.splitlines(keepends=True), name)
    module = ModuleType("emmy_kernel")
    exec(compile(source.text, name, "exec"), module.__dict__)
    return getattr(module, source.entry), name
