"""A whole plan on the GPU: its buffers, one compiled kernel per structural key, and all launches in order as one graph.

Intermediates get a buffer each and are never shared, so that a replay always finds what the launch before it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from engine.ir.graph import Graph, TensorSpec
from engine.ir.plan import BufferView, Grouping
from engine.runtime.compile import CompiledSource
from engine.runtime.launch import Launch, bind_launch

Evaluate = Callable[[Graph, Sequence[torch.Tensor]], Sequence[torch.Tensor]]


@dataclass(frozen=True, slots=True)
class AssembledPlan:
    """A plan that is ready to run: `launch` starts all kernels in order, then `outputs` hold the result.

    `written` are the buffers that kernels write, outputs among them: what a check poisons before it runs.
    """

    launch: Launch
    outputs: tuple[torch.Tensor, ...]
    written: tuple[torch.Tensor, ...]


def assemble_plan(
    grouping: Grouping, compiled: Mapping[str, CompiledSource], inputs: Sequence[torch.Tensor]
) -> AssembledPlan:
    """Allocate the buffers and bind every call. `inputs` are the program's, in order; keys are structural keys.

    Raises KeyError for a kernel that `compiled` lacks, torch's OutOfMemoryError when the buffers don't fit.
    """
    device = inputs[0].device if inputs else torch.device("cuda")
    written = {index: empty_buffer(grouping.buffers[index], device) for c in grouping.calls for index in c.results}
    buffers: dict[int, torch.Tensor] = {**dict(enumerate(inputs)), **written}
    launches = tuple(
        bind_launch(
            compiled[call.kernel.key],
            [view_buffer(buffers, view) for view in call.arguments],
            [buffers[index] for index in call.results],
        )
        for call in grouping.calls
    )

    def launch() -> None:
        for one in launches:
            one()

    outputs = tuple(view_buffer(buffers, view) for view in grouping.outputs)
    return AssembledPlan(launch, outputs, tuple(written.values()))


def evaluate_plan(grouping: Grouping, inputs: Sequence[torch.Tensor], evaluate: Evaluate) -> list[torch.Tensor]:
    """The plan's outputs by `evaluate` (graph, tensors) of each kernel's body in turn: a whole plan's reference."""
    buffers: dict[int, torch.Tensor] = dict(enumerate(inputs))
    for call in grouping.calls:
        results = evaluate(call.kernel.body, [view_buffer(buffers, view) for view in call.arguments])
        for index, result in zip(call.results, results, strict=True):
            buffers[index] = result.contiguous()
    return [view_buffer(buffers, view) for view in grouping.outputs]


def empty_buffer(spec: TensorSpec, device: torch.device | str) -> torch.Tensor:
    """An uninitialized tensor of this shape and these strides; its storage is aligned as the allocator aligns."""
    dtype: torch.dtype = getattr(torch, spec.dtype)
    storage = torch.empty(max(spec.storage_elements, 1), dtype=dtype, device=device)
    return storage.as_strided(spec.shape, spec.strides, spec.offset)


def view_buffer(buffers: Mapping[int, torch.Tensor], view: BufferView) -> torch.Tensor:
    return buffers[view.buffer].as_strided(view.spec.shape, view.spec.strides, view.spec.offset)
