"""One run of a candidate against what it should have computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.ir.kernel import Kernel
from engine.ir.needed import fewest_bytes
from engine.ir.plan import Grouping
from engine.measure.gate import impossible_time, largest_norm, less_exact_than_eager
from engine.runtime import Case, CompiledSource, Launch, compare, poison, registers_and_spills
from engine.vocabulary import BuildReport, Failure, Target

if TYPE_CHECKING:
    import torch


class Rejected(Exception):
    """A candidate that ran and may not pass."""

    def __init__(self, failure: Failure, error: float | None = None) -> None:
        super().__init__(failure.cause)
        self.failure = failure
        self.error = error


def check_once(launch: Launch, case: Case, references: Sequence[torch.Tensor]) -> float:
    """The error of one run on poisoned outputs. Raises Rejected if it is too large."""
    poison(case.written, case.poison_byte)
    launch()
    found = compare(case.outputs, references)
    error = largest_norm(found)
    dtypes = [str(output.dtype) for output in case.outputs]
    if failure := less_exact_than_eager(found, case.eager, dtypes, case.rounding):
        raise Rejected(failure, error)
    return error


def impossible_for(us: float, work: Kernel | Grouping, target: Target) -> Failure | None:
    """A failure if no correct run of the work takes as little as `us`. Bytes that a mask of positions hides are told
    apart only where that decides, as it may take long."""
    failure = impossible_time(us, work.flops, work.bytes_moved, target)
    return impossible_time(us, work.flops, fewest_bytes(work), target) if failure else None


def report_of(compiled: CompiledSource) -> BuildReport:
    """What the driver says of a loaded binary, for what the compile process could not tell."""
    registers, spills = registers_and_spills(compiled)
    return replace(compiled.build, registers=registers, spills=spills)
