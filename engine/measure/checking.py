"""One run of a candidate against what it should have computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.measure.gate import largest_norm, less_exact_than_eager
from engine.runtime import Case, CompiledSource, Launch, compare, poison, registers_and_spills
from engine.vocabulary import BuildReport, Failure

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


def report_of(compiled: CompiledSource) -> BuildReport:
    """What the driver says of a loaded binary, for what the compile process could not tell."""
    registers, spills = registers_and_spills(compiled)
    return replace(compiled.build, registers=registers, spills=spills)
