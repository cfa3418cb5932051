"""One run of a candidate against what it should have computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.measure.gate import Deviation, largest_norm, tolerance, wrong_result
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
    found = [Deviation(*pair) for pair in compare(case.outputs, references)]
    limits = [
        tolerance(Deviation(*eager), str(output.dtype).removeprefix("torch."))
        for eager, output in zip(case.eager, case.outputs, strict=True)
    ]
    error = largest_norm(found)
    if failure := wrong_result(found, limits):
        raise Rejected(failure, error)
    return error
