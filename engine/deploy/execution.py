"""A deployment that runs: kernels built, buffers bound, and the whole a CUDA graph; without a GPU, interpreted.

Inputs are copied into buffers of the plan's own, because a CUDA graph reads the addresses that it was captured with;
weights are read where they lie. Results are copied out, so that the next call doesn't write over them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import platformdirs
import torch

from engine.codegen import KernelSource, is_generated, render
from engine.deploy.deployment import Deployment
from engine.deploy.evidence import Source
from engine.deploy.likeness import OTHER_BRANCH, is_the_call
from engine.deploy.pinning import check_source_built
from engine.ir.graph import Graph
from engine.ir.plan import BufferView
from engine.measure import less_exact_than_eager
from engine.runtime import (
    AssembledPlan,
    allow_scratch_memory,
    assemble_plan,
    assembling_with,
    compare,
    compile_source,
    empty_buffer,
    evaluate,
    interpret_plan,
    replayed,
    whole_storage,
)

ALIGNMENT = 16
"""Bytes: what generated code takes for granted of where a storage starts."""


class WeightsMoved(Exception):
    """A weight lies elsewhere than when the program was bound: it has to be bound anew."""


class Runner(Protocol):
    """The program's inputs in order to its outputs in order; what it returns belongs to the caller."""

    def __call__(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]: ...


def kernel_sources(deployment: Deployment) -> dict[str, KernelSource]:
    """The text of each kernel that has one, by structural key."""
    schedules = deployment.schedules
    return {
        key: render(kernel, schedules[key], deployment.target, pdl=deployment.pdl)
        for key, (kernel, _) in deployment.grouping.kernel_counts().items()
        if is_generated(kernel)
    }


def make_runner(deployment: Deployment, graph: Graph, tensors: Sequence[torch.Tensor]) -> Runner:
    """Build, bind and capture for inputs like `tensors`, where they are. `graph.weights` are bound in place.

    Raises BuildError for a kernel that doesn't compile, torch's OutOfMemoryError where the buffers don't fit.
    """
    if all(tensor.device.type == "cpu" for tensor in tensors):
        # the interpreter runs one kernel after the other, and knows nothing of kernels that wait for each other
        return _Interpreted(deployment, kernel_sources(replace(deployment, pdl=False)))
    return CapturedRunner(deployment, graph, kernel_sources(deployment), tensors)


def check_against(
    graph: Graph, tensors: Sequence[torch.Tensor], ours: Sequence[torch.Tensor], eager: Sequence[torch.Tensor]
) -> str:
    """What is wrong with `ours`, or with the graph that it was made of, in words; "" if it gives what eager gives.

    Both are compared with the graph in a wider dtype, and eager with the graph as its ops round, for the graph may not
    be the call. Tensors that eager returns with other shapes are wrong.
    """
    wide = (
        torch.float64 if any(spec.dtype in ("float32", "float64") for spec in graph.output_specs()) else torch.float32
    )
    if [tuple(value.shape) for value in ours] != [tuple(value.shape) for value in eager]:
        return _not_eagers("its outputs have other shapes than eager's")
    # the graph has the casts of autocast already
    with torch.autocast(ours[0].device.type if ours else "cpu", enabled=False):
        references = [value.clone() for value in evaluate(graph, tensors, wide)]
        if not is_the_call(graph, tensors, eager, references):
            return OTHER_BRANCH
    dtypes = [str(value.dtype) for value in eager]
    failure = less_exact_than_eager(compare(ours, references), compare(eager, references), dtypes)
    return _not_eagers(failure.cause) if failure else ""


def _not_eagers(cause: str) -> str:
    return f"the kernels chosen for it don't give what eager gives ({cause})"


class _Interpreted:
    """Every kernel in Triton's interpreter, on the CPU: right, and slow."""

    def __init__(self, deployment: Deployment, sources: dict[str, KernelSource]) -> None:
        self._grouping = deployment.grouping
        self._sources = sources

    def __call__(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        outputs = interpret_plan(self._grouping, self._sources, tensors)
        return _own(self._grouping.outputs, tensors, outputs)


@dataclass(slots=True)
class _Weight:
    """A weight as it was bound: where it lies, and how often it had been written to."""

    position: int
    address: int
    version: int
    copied: bool


class CapturedRunner:
    """The plan as one CUDA graph."""

    def __init__(
        self, deployment: Deployment, graph: Graph, sources: dict[str, KernelSource], tensors: Sequence[torch.Tensor]
    ) -> None:
        self._lock = threading.Lock()
        device = tensors[0].device
        self._grouping = deployment.grouping
        self._weights = [_weight(position, tensors[position]) for position in graph.weights]
        in_place = {weight.position for weight in self._weights if not weight.copied}
        specs = graph.input_specs()
        self._copied = [i for i in range(len(specs)) if i not in set(graph.weights)]
        self._bound = [
            tensor if i in in_place else empty_buffer(spec, device)
            for i, (tensor, spec) in enumerate(zip(tensors, specs, strict=True))
        ]
        self._specs = specs
        for position in range(len(specs)):
            if position not in in_place:
                self._fill(position, tensors[position])
        with torch.cuda.device(device):
            allow_scratch_memory(device)
            with assembling(deployment) as folder:
                compiled = {key: compile_source(source, deployment.target, folder) for key, source in sources.items()}
            _check_pins(deployment, {key: one.source for key, one in compiled.items()})
            self.plan: AssembledPlan = assemble_plan(deployment.grouping, compiled, self._bound)
            self.plan.launch()
            torch.cuda.synchronize()
            self._replay = replayed(self.plan.launch)

    def __call__(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        with self._lock:
            self._follow_weights(tensors)
            for position in self._copied:
                self._fill(position, tensors[position])
            self._replay()
            return _own(self._grouping.outputs, tensors, self.plan.outputs)

    def _follow_weights(self, tensors: Sequence[torch.Tensor]) -> None:
        """Compute what is prepared anew where a weight was written to, and of inference tensors at every call, as torch
        doesn't count their writes. Raises WeightsMoved where one lies elsewhere."""
        changed = False
        for weight in self._weights:
            tensor = tensors[weight.position]
            if tensor.data_ptr() != weight.address:
                raise WeightsMoved
            version = version_of(tensor)
            uncounted = tensor.is_inference() and (weight.copied or self._grouping.prepared)
            if uncounted or version != weight.version:
                weight.version, changed = version, True
                if weight.copied:
                    self._fill(weight.position, tensor)
        if changed:
            self.plan.prepare()

    def _fill(self, position: int, tensor: torch.Tensor) -> None:
        """Copy an input to where the plan reads it; one whose elements overlap, storage to storage."""
        spec, own = self._specs[position], self._bound[position]
        reach = spec.storage_elements - spec.offset
        if reach <= spec.numel:
            tensor, own = (each.as_strided((reach,), (1,), spec.offset) for each in (tensor, own))
        own.copy_(tensor)


def _check_pins(deployment: Deployment, built: Mapping[str, KernelSource]) -> None:
    """Compare what was built with the pins that decided. Raises SilentFallbackError."""
    for item in deployment.kernels:
        if item.chosen is not None and item.chosen.source is Source.PIN:
            check_source_built(item.kernel, item.chosen.schedule, built[item.kernel.key], deployment.target)


def _weight(position: int, tensor: torch.Tensor) -> _Weight:
    aligned = (tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()) % ALIGNMENT == 0
    return _Weight(position, tensor.data_ptr(), version_of(tensor), copied=not aligned)


def version_of(tensor: torch.Tensor) -> int:
    """How often the tensor was written to; inference tensors don't count."""
    return 0 if tensor.is_inference() else int(tensor._version)


def _own(
    views: Sequence[BufferView], tensors: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Outputs in memory of the caller's own: a buffer that several of them view is copied once. What is an input, or a
    view of one, stays that."""
    copies: dict[int, torch.Tensor] = {}
    owned = []
    for view, output in zip(views, outputs, strict=True):
        if view.buffer < len(tensors):
            owned.append(_of_input(tensors[view.buffer], view))
            continue
        if view.buffer not in copies:
            copies[view.buffer] = whole_storage(output).clone()
        owned.append(copies[view.buffer].as_strided(output.shape, output.stride(), output.storage_offset()))
    return owned


def _of_input(tensor: torch.Tensor, view: BufferView) -> torch.Tensor:
    seen = tensor.as_strided(view.spec.shape, view.spec.strides, view.spec.offset)
    same = (seen.shape, seen.stride(), seen.storage_offset())
    return tensor if same == (tensor.shape, tensor.stride(), tensor.storage_offset()) else seen


@contextmanager
def assembling(deployment: Deployment) -> Iterator[Path]:
    """Compile in the block with the deployment's ptxas, and into the folder that this gives: it holds its controls.

    A folder belongs to a context, so that a binary of one GPU or ptxas never stands for another's. Raises BuildError.
    """
    if deployment.controls is None:
        yield kernel_folder()
        return
    folder = kernel_folder() / f"controls-{deployment.context_key}"
    deployment.controls.lay_out(folder)
    environment = deployment.controls.assembler.environment
    with assembling_with(environment, folder / "cache", deployment.target.capability):
        yield folder


def kernel_folder() -> Path:
    """Where the texts of deployed kernels are kept; a file is named by its content."""
    return platformdirs.user_cache_path("emmy", appauthor=False) / "kernels"
