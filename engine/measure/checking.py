"""One run of a candidate against what it should have computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.measure.gate import largest_norm, less_exact_than_eager
from engine.runtime import Case, Launch, compare, poison
from engine.vocabulary import Failure

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
    if failure := less_exact_than_eager(found, case.eager, [str(output.dtype) for output in case.outputs]):
        raise Rejected(failure, error)
    return error
