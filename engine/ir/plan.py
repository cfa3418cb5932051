"""A grouping as a plan that can run: kernels in order, the buffers they read and write, and the program itself."""

from __future__ import annotations

from dataclasses import dataclass

from engine.ir.graph import Graph, TensorSpec
from engine.ir.kernel import Kernel
from engine.ir.structural_key import same_ends
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

    @property
    def flops(self) -> int:
        """Of all its calls."""
        return sum(call.kernel.flops for call in self.calls)

    @property
    def bytes_moved(self) -> int:
        """Of all its calls."""
        return sum(call.kernel.bytes_moved for call in self.calls)

    def launches(self) -> tuple[KernelCall, ...]:
        """The calls as they are launched, one text a structural key: each with the first kernel of its key, which
        `kernel_counts` gives, and with arguments and results in the order in which that one names them.

        Equal kernels may name them in orders of their own, and read their buffers at other offsets.
        """
        first = {key: kernel for key, (kernel, _) in self.kernel_counts().items()}
        return tuple(_as_launched(call, first[call.kernel.key]) for call in self.calls)

    def kernel_counts(self) -> dict[str, tuple[Kernel, int]]:
        """Distinct kernels by structural key, each with how often it occurs, in order of first launch."""
        counts: dict[str, tuple[Kernel, int]] = {}
        for call in self.calls:
            kernel, count = counts.get(call.kernel.key, (call.kernel, 0))
            counts[call.kernel.key] = (kernel, count + 1)
        return counts


def _as_launched(call: KernelCall, kernel: Kernel) -> KernelCall:
    if call.kernel.body is kernel.body:
        return call
    inputs, outputs = same_ends(kernel.body, call.kernel.body)
    return KernelCall(kernel, tuple(call.arguments[i] for i in inputs), tuple(call.results[i] for i in outputs))
