"""How the outer search is guided: an option is as fast as the kernels that the first answers after it make.

The prior only orders what is entered; every grouping that the search enters is judged by measured sums. A kernel is
predicted by its best over a few values of each knob, which is cheap and blind to legality; that it has a legal
schedule at all is asked first, so that no visits go to groupings that can't be built.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.ir.kernel import Kernel
from engine.prior import UNBUILDABLE_US, Prior, score_options
from engine.search import FirstCompletion, Path, Space
from engine.tune.problem import Problem
from engine.vocabulary import Option, Target

SHARPNESS = 8.0
"""The power of a predicted speed that becomes an opinion: kernel sets differ by per cents, where schedules differ by
factors, so that one 10 % slower is to be half as likely."""


class GroupingScorer:
    """A scorer of structural options: predicted speeds, by the sum over the kernels of one finished path each."""

    def __init__(self, prior: Prior, problem: Problem, space: Space, target: Target) -> None:
        self._prior = prior
        self._problem = problem
        self._target = target
        self._kernel_us: dict[str, float] = {}
        self._completed_us = FirstCompletion(space, self._sum, math.nan)

    def __call__(self, path: Path, options: Sequence[Option]) -> list[float]:
        """One number an option, higher is faster; NaN where a kernel of its path can't be predicted."""
        return [(1.0 / self._completed_us((*path, option))) ** SHARPNESS for option in options]

    def _sum(self, path: Path) -> float:
        return sum(self.predicted_us(kernel) * count for kernel, count in self._problem.kernel_counts(path).values())

    def predicted_us(self, kernel: Kernel) -> float:
        """The kernel's time in us, at its best over a few values of each knob; NaN where nothing can be said."""
        if kernel.foreign is not None:
            return math.nan
        if kernel.key not in self._kernel_us:
            self._kernel_us[kernel.key] = self._predicted(kernel)
        return self._kernel_us[kernel.key]

    def _predicted(self, kernel: Kernel) -> float:
        if self._problem.declined_because(kernel) is not None:
            return UNBUILDABLE_US
        (speed,) = score_options(self._prior, kernel, self._target, {}, [Option(())])
        return 1.0 / speed
