"""A grouping as a plan that can run: kernels in order, the buffers they read and write, and the program itself."""

from __future__ import annotations

from dataclasses import dataclass

from engine.ir.graph import Graph, TensorSpec
from engine.ir.kernel import Kernel
from engine.vocabulary import Option


@dataclass(frozen=True, slots=True)
class Program:
    """What the user asked to tune. `target` is the text they typed; `device` the device the text asked for.

    `notes` are sentences for people on what was captured, e.g. that the weights are random.
    """

    graph: Graph
    target: str
    device: str = "cuda"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BufferView:
    """A buffer of the plan read with the shape, strides and offset of `spec`."""

    buffer: int
    spec: TensorSpec


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One launch: the kernel's body inputs in order, and the contiguous buffers its outputs go to."""

    kernel: Kernel
    arguments: tuple[BufferView, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Preparation:
    """Values of weights alone, computed once before the first launch and by no kernel: a scaled or turned weight.

    `arguments` are the body's inputs in order, `results` the contiguous buffers its outputs go to. Each op runs and
    rounds in its own dtype.
    """

    body: Graph
    arguments: tuple[BufferView, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Grouping:
    """One way to divide a graph into kernels.

    Buffers 0 .. len(inputs) - 1 are the program's inputs, in order; the rest are prepared values and intermediates.
    `decisions` are the structural options that led here, in the order they were taken. `prepared` are read by calls
    as inputs are.
    """

    buffers: tuple[TensorSpec, ...]
    calls: tuple[KernelCall, ...]
    outputs: tuple[BufferView, ...]
    decisions: tuple[Option, ...] = ()
    prepared: tuple[Preparation, ...] = ()

    def input_specs(self) -> tuple[TensorSpec, ...]:
        """The program's inputs, in order: every buffer that nothing of the plan writes."""
        steps: tuple[KernelCall | Preparation, ...] = (*self.prepared, *self.calls)
        return self.buffers[: len(self.buffers) - len({result for step in steps for result in step.results})]

    def kernel_counts(self) -> dict[str, tuple[Kernel, int]]:
        """Distinct kernels by structural key, each with how often it occurs, in order of first launch."""
        counts: dict[str, tuple[Kernel, int]] = {}
        for call in self.calls:
            kernel, count = counts.get(call.kernel.key, (call.kernel, 0))
            counts[call.kernel.key] = (kernel, count + 1)
        return counts
