"""How the prior guides a kernel's search: the predicted speed of an option is that of its best completion."""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.ir.kernel import Kernel
from engine.prior import OptionScorer, Prior
from engine.search import Path, Scorer
from engine.tune.problem import Problem
from engine.vocabulary import Option, Target


def kernel_scorer(prior: Prior, problem: Problem, kernel: Kernel, target: Target) -> Scorer:
    """Speeds (1/us) of sibling options as the prior predicts their best completion."""
    scorer = OptionScorer(prior, kernel, target, problem.candidates(kernel))

    def score(path: Path, options: Sequence[Option]) -> Sequence[float]:
        fixed = {name: value for option in path for name, value in option.knobs}
        return scorer.speeds(fixed, options)

    return score


def no_opinion(path: Path, options: Sequence[Option]) -> Sequence[float]:
    """The outer search's scorer: between kernel sets only measured sums decide."""
    return [math.nan] * len(options)
