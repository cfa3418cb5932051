"""A whole plan on the GPU: its buffers, one compiled kernel per structural key, and all launches in order as one graph.

Intermediates get a buffer each and are never shared, so that a replay always finds what the launch before it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from engine.codegen import is_generated
from engine.ir.graph import Graph, TensorSpec
from engine.ir.kernel import Kernel
from engine.ir.plan import BufferView, Grouping
from engine.runtime.compile import CompiledSource
from engine.runtime.launch import Launch, bind_extern, bind_launch
from engine.runtime.memory import packed
from engine.runtime.reference import evaluate

Evaluate = Callable[[Graph, Sequence[torch.Tensor]], Sequence[torch.Tensor]]


@dataclass(frozen=True, slots=True)
class AssembledPlan:
    """A plan that is ready to run: `launch` starts all kernels in order, then `outputs` hold the result.

    `written` are the buffers that kernels write, outputs among them: what a check poisons before it runs.
    `prepare` computes the values of weights alone again, for when the inputs have been written over.
    """

    launch: Launch
    outputs: tuple[torch.Tensor, ...]
    written: tuple[torch.Tensor, ...]
    prepare: Callable[[], None]


def assemble_plan(
    grouping: Grouping, compiled: Mapping[str, CompiledSource], inputs: Sequence[torch.Tensor]
) -> AssembledPlan:
    """Allocate the buffers, compute what depends on weights alone, and bind every call. `inputs` are the program's,
    in order; keys are structural keys.

    Raises KeyError for a kernel that `compiled` lacks, torch's OutOfMemoryError when the buffers don't fit.
    """
    device = inputs[0].device if inputs else torch.device("cuda")
    written = {index: empty_buffer(grouping.buffers[index], device) for c in grouping.calls for index in c.results}
    held = {index: empty_buffer(grouping.buffers[index], device) for p in grouping.prepared for index in p.results}
    buffers: dict[int, torch.Tensor] = {**dict(enumerate(inputs)), **held, **written}

    def prepare() -> None:
        for step in grouping.prepared:
            values = evaluate(step.body, [view_buffer(buffers, view) for view in step.arguments], None)
            for index, value in zip(step.results, values, strict=True):
                buffers[index].copy_(value)

    prepare()
    launches = tuple(
        _bind(
            call.kernel,
            compiled,
            [view_buffer(buffers, view) for view in call.arguments],
            [buffers[index] for index in call.results],
        )
        for call in grouping.launches()
    )

    def launch() -> None:
        for one in launches:
            one()

    outputs = tuple(view_buffer(buffers, view) for view in grouping.outputs)
    return AssembledPlan(launch, outputs, tuple(written.values()), prepare)


def _bind(
    kernel: Kernel,
    compiled: Mapping[str, CompiledSource],
    inputs: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
) -> Launch:
    if is_generated(kernel):
        return bind_launch(compiled[kernel.key], inputs, outputs)
    return bind_extern(kernel.body, inputs, outputs)


def evaluate_plan(grouping: Grouping, inputs: Sequence[torch.Tensor], run: Evaluate) -> list[torch.Tensor]:
    """The plan's outputs by `run` (graph, tensors) of what it prepares and of each kernel's body in turn: a whole
    plan's reference."""
    buffers: dict[int, torch.Tensor] = dict(enumerate(inputs))
    prepared = [(step.body, step.arguments, step.results) for step in grouping.prepared]
    for body, arguments, results in (*prepared, *((c.kernel.body, c.arguments, c.results) for c in grouping.calls)):
        values = run(body, [view_buffer(buffers, view) for view in arguments])
        for index, value in zip(results, values, strict=True):
            buffers[index] = packed(value)
    return [view_buffer(buffers, view) for view in grouping.outputs]


def empty_buffer(spec: TensorSpec, device: torch.device | str) -> torch.Tensor:
    """An uninitialized tensor of this shape and these strides; its storage is aligned as the allocator aligns."""
    dtype: torch.dtype = getattr(torch, spec.dtype)
    storage = torch.empty(max(spec.storage_elements, 1), dtype=dtype, device=device)
    return storage.as_strided(spec.shape, spec.strides, spec.offset)


def view_buffer(buffers: Mapping[int, torch.Tensor], view: BufferView) -> torch.Tensor:
    return buffers[view.buffer].as_strided(view.spec.shape, view.spec.strides, view.spec.offset)
