"""A set of inputs, what the outputs should be for them, and how far eager in the same dtypes is from that."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import torch

from engine.ir.graph import Graph, TensorSpec
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.runtime.assemble import empty_buffer, evaluate_plan
from engine.runtime.comparison import GARBAGE_BYTE, NAN_BYTE, compare, holds_nan, same_bits
from engine.runtime.inputs import make_inputs
from engine.runtime.memory import whole_storage
from engine.runtime.reference import evaluate
from engine.runtime.tf32 import allows_tf32, tf32

ROUNDING = 2.0**-24
"""Half of the last bit of an fp32 number near 1."""
ROUNDINGS = 4.0
"""What a kernel in fp32 rounds each operand by, TF32 in three parts included. An answer that moves by more when its
inputs move by as much can't be known better, and that eager came nearer is luck: so it is where a root is taken of what
nearly cancels, or where large sums stand in an exponent."""

Tensors = tuple[torch.Tensor, ...]
Evaluate = Callable[[Sequence[torch.Tensor], torch.dtype | None], Tensors]
Deviations = tuple[tuple[float, float], ...]
"""(norm, worst element) of each output, as `compare` gives them."""


@dataclass(frozen=True, slots=True)
class Case:
    """What one kernel, or one whole plan, is checked with.

    `outputs` are compared with `references`; `written` are all contiguous buffers that a run writes, poisoned with
    `poison_byte` before it (no NaN pattern where the reference holds a NaN). `eager` is how far eager is from the
    references; `rounding` evaluates, once, how far rounding the inputs moves these. `prepare_s` is what one set of
    inputs and references costs.
    `prepare` computes what a plan derives from its weights once, and has to again when other inputs are written.
    """

    seed: int
    specs: tuple[TensorSpec, ...]
    evaluate: Evaluate
    inputs: Tensors
    references: Tensors
    eager: Deviations
    rounding: Callable[[], Deviations]
    poison_byte: int
    prepare_s: float
    outputs: Tensors = ()
    written: Tensors = ()
    prepare: Callable[[], None] | None = None


def prepare_case(kernel: Kernel, seed: int, device: torch.device) -> Case:
    """The case of one kernel, outputs allocated. Raises torch's OutOfMemoryError if it can't fit."""
    body = kernel.body
    outputs = tuple(empty_buffer(spec, device) for spec in body.output_specs())

    def run(inputs: Sequence[torch.Tensor], dtype: torch.dtype | None) -> Tensors:
        return tuple(evaluate(body, inputs, dtype=dtype))

    return _prepare(body.input_specs(), (body,), run, seed, device, outputs)


def prepare_plan_case(grouping: Grouping, program: Graph | None, seed: int, device: torch.device) -> Case:
    """The case of a whole plan, without outputs. Its reference is the program's own graph, so that a plan that divides
    the program wrongly shows; without one, the plan's kernels one after the other.
    """
    specs = grouping.input_specs()
    bodies = [call.kernel.body for call in grouping.calls]

    def run(inputs: Sequence[torch.Tensor], dtype: torch.dtype | None) -> Tensors:
        if program is not None:
            return tuple(evaluate(program, inputs, dtype=dtype))
        return tuple(evaluate_plan(grouping, inputs, lambda graph, tensors: evaluate(graph, tensors, dtype=dtype)))

    return _prepare(specs, bodies, run, seed, device, ())


def elsewhere(case: Case) -> tuple[Tensors, Tensors]:
    """The case's inputs in other places, and room for its outputs. Raises torch's OutOfMemoryError if it can't fit."""
    copies = (
        whole_storage(tensor).clone().as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        for tensor in case.inputs
    )
    return tuple(copies), tuple(torch.empty_like(output) for output in case.outputs)


def overwrite_inputs(case: Case, seed: int) -> None:
    """Put the inputs of another seed where the case's inputs are, so that bound launches and graphs read them."""
    for old, new in zip(case.inputs, make_inputs(case.specs, seed, _device_of(case)), strict=True):
        old.untyped_storage().copy_(new.untyped_storage())
    if case.prepare is not None:
        case.prepare()


def references_for(case: Case) -> Tensors:
    """What the outputs should be for the inputs that are there now, in float64."""
    return case.evaluate(case.inputs, torch.float64)


def is_intact(case: Case) -> bool:
    """Whether nothing wrote into the inputs or references: a candidate may write past its outputs and pass unseen."""
    inputs = tuple(make_inputs(case.specs, case.seed, _device_of(case)))
    return same_bits(case.inputs, inputs) and same_bits(case.references, case.evaluate(inputs, torch.float64))


def repair(case: Case) -> None:
    """Write the case's own inputs and references again."""
    overwrite_inputs(case, case.seed)
    for old, new in zip(case.references, references_for(case), strict=True):
        old.copy_(new)


def _prepare(
    specs: tuple[TensorSpec, ...],
    bodies: Sequence[Graph],
    run: Evaluate,
    seed: int,
    device: torch.device,
    outputs: Tensors,
) -> Case:
    start = time.perf_counter()
    inputs = tuple(make_inputs(specs, seed, device))
    # A copy, because a reference may be a view of an input, and of its expanded axes too.
    references = tuple(result.clone() for result in run(inputs, torch.float64))
    byte = GARBAGE_BYTE if holds_nan(references) else NAN_BYTE
    prepare_s = time.perf_counter() - start
    with tf32(allows_tf32(bodies)):
        eager = compare(run(inputs, None), references)
    rounding = cache(partial(_moved_by_rounding, specs, run, seed, device))
    return Case(seed, specs, run, inputs, references, eager, rounding, byte, prepare_s, outputs, outputs)


def _moved_by_rounding(specs: Sequence[TensorSpec], run: Evaluate, seed: int, device: torch.device) -> Deviations:
    """How far rounding the inputs of a seed moves the references; NaN, which says nothing, counts as not at all.

    On inputs and references of its own: a candidate may have written into those of the case.
    """
    inputs = tuple(make_inputs(specs, seed, device))
    references = run(inputs, torch.float64)
    moved = [
        compare(run(tuple(_moved(tensor, share, roundings) for tensor in inputs), torch.float64), references)
        for share, roundings in ((_at_random(seed), ROUNDINGS), (torch.sign, 1.0))
    ]
    return tuple((_largest(a, c), _largest(b, d)) for (a, b), (c, d) in zip(*moved, strict=True))


def _moved(tensor: torch.Tensor, share: Callable[[torch.Tensor], torch.Tensor], roundings: float) -> torch.Tensor:
    """The tensor in float64, in the same storage order, each element off by its `share` (-1 to 1) of some roundings.

    At random stands for what usually happens. By its sign is the worst that can happen to a sum: what adds up moves one
    way, however much of it cancels.
    """
    if not tensor.is_floating_point() or tensor.dtype == torch.float64:
        return tensor
    flat = whole_storage(tensor).to(torch.float64, copy=True)
    flat *= 1.0 + roundings * ROUNDING * share(flat)
    return flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def _at_random(seed: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def share(values: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator(values.device).manual_seed(seed)
        return 2.0 * torch.rand(values.shape, generator=generator, dtype=values.dtype, device=values.device) - 1.0

    return share


def _largest(*moved: float) -> float:
    return max((one for one in moved if not math.isnan(one)), default=0.0)


def _device_of(case: Case) -> torch.device:
    return case.references[0].device
