"""How a kernel's search is guided: the predicted speed of an option is that of its best completion.

The prior predicts before anything is measured and is frozen meanwhile. A learning search also asks a surrogate, which
knows the kernel's own measurements; the tree, its backup and its stop rule are the same.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence

import numpy as np

from engine.ir.kernel import Kernel
from engine.prior import OptionScorer, Prior, Surrogate, features
from engine.search import Path, Proposal, Scorer, Search, Space
from engine.tune.problem import Problem
from engine.tune.settings import Settings
from engine.vocabulary import Option, Target

VARIATION = 0.1
"""About what the cold model errs by near the best (it has the winner among its first ten)."""
LEAST_AHEAD = 8
ANSWERS_PER_CANDIDATE_AHEAD = 8
"""On a recorded landscape of Kernel Tuner the median to 1 % is 68 measurements with one candidate in flight, 82 with
this ramp, 127 with 16 and 154 with 32 from the start."""
LEAST_AHEAD_BESIDE_PRIOR = 24
"""Where a prior orders the first candidates, few in flight buy nothing: over twelve kernels recorded on an H200 the
medians to 5, 2 and 1 % are as with 8, and 100 % of the seeds end within 5 % of the best instead of 92 %."""


class LearningSearch(Search):
    """A search whose scorer learns from every answer: rewards are 1/us, forks are scored anew before each descent.

    `patience` and `limit` as in `Search`. Where the surrogate knows nothing of an option, there is no opinion.
    """

    def __init__(
        self,
        space: Space,
        surrogate: Surrogate,
        *,
        patience: int = 50,
        limit: int | None = None,
        forbidden: Callable[[Path], bool] | None = None,
    ) -> None:
        self._surrogate = surrogate
        super().__init__(
            space,
            self._score,
            patience=patience,
            exploration=Surrogate.EXPLORATION,
            limit=limit,
            forbidden=forbidden,
        )

    def ahead(self, most: int) -> int:
        """How many candidates to have in flight: few while each answer still changes the picture, then up to `most`."""
        least = LEAST_AHEAD_BESIDE_PRIOR if self._surrogate.guided else LEAST_AHEAD
        return min(most, max(least, self.decided // ANSWERS_PER_CANDIDATE_AHEAD))

    def ask(self) -> Proposal | None:
        self.score_again()
        proposal = super().ask()
        if proposal is not None:
            self._surrogate.begin(proposal.knobs)
        return proposal

    def tell(self, proposal: Proposal, reward: float | None) -> bool:
        best = super().tell(proposal, reward)
        self._surrogate.learn(proposal.knobs, None if reward is None else 1.0 / reward)
        return best

    def withdraw(self, proposal: Proposal) -> None:
        super().withdraw(proposal)
        self._surrogate.release(proposal.knobs)

    def _score(self, path: Path, options: Sequence[Option]) -> Sequence[float]:
        return self._surrogate.speeds({name: value for option in path for name, value in option.knobs}, options)


def kernel_search(
    settings: Settings,
    prior: Prior,
    problem: Problem,
    kernel: Kernel,
    target: Target,
    forbidden: Callable[[Path], bool] | None = None,
    guiding: Callable[[Scorer], Scorer] | None = None,
) -> Search:
    """The search over the kernel's schedules that the settings ask for; it learns where the prior knows nothing.

    What `forbidden` says of a path is kept out of it. `guiding` knows better than the prior of some forks, which the
    surrogate's candidates don't have, so that such a search follows the prior.
    """
    space = problem.schedule_space(kernel)
    if (settings.surrogate and guiding is None) or kernel.foreign is not None:
        surrogate = kernel_surrogate(prior, problem, kernel, target, settings.seed)
        return LearningSearch(space, surrogate, patience=settings.patience, limit=settings.limit, forbidden=forbidden)
    scorer = varied(kernel_scorer(prior, problem, kernel, target), settings.seed)
    return Search(
        space,
        guiding(scorer) if guiding is not None else scorer,
        patience=settings.patience,
        exploration=settings.exploration,
        limit=settings.limit,
        forbidden=forbidden,
    )


def kernel_surrogate(prior: Prior, problem: Problem, kernel: Kernel, target: Target, seed: int) -> Surrogate:
    """A surrogate over the kernel's candidates that starts from what the prior predicts of them, if it can."""
    if (begun := problem.take_surrogate(kernel, prior, seed)) is not None:
        return begun
    candidates = problem.candidates(kernel)
    if kernel.foreign is not None or not candidates:
        return Surrogate(candidates, seed=seed)
    predicted = prior.predict(features(kernel, candidates, target))
    return Surrogate(candidates, np.asarray(predicted, dtype=np.float64).tolist(), seed)


def kernel_scorer(prior: Prior, problem: Problem, kernel: Kernel, target: Target) -> Scorer:
    """Speeds (1/us) of sibling options as the prior predicts their best completion.

    Of a kernel of another tool the prior knows nothing that it could predict from.
    """
    if kernel.foreign is not None:
        return no_opinion
    scorer = OptionScorer(prior, kernel, target, problem.candidates(kernel))

    def score(path: Path, options: Sequence[Option]) -> Sequence[float]:
        fixed = {name: value for option in path for name, value in option.knobs}
        return scorer.speeds(fixed, options)

    return score


def varied(scorer: Scorer, seed: int) -> Scorer:
    """The same opinions, each off by up to VARIATION in a direction that seed, path and option decide; seed 0: as is.

    So a seed is another path through the same tree, equal in every process.
    """
    if seed == 0:
        return scorer

    def score(path: Path, options: Sequence[Option]) -> Sequence[float]:
        place = " / ".join(map(str, path))
        return [
            speed * math.exp(VARIATION * _direction(f"{seed}: {place} / {option}"))
            for option, speed in zip(options, scorer(path, options), strict=True)
        ]

    return score


def _direction(text: str) -> float:
    """Between -1 and 1, evenly, by the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**63 - 1.0


def no_opinion(path: Path, options: Sequence[Option]) -> Sequence[float]:
    """The scorer of a search that knows nothing beforehand."""
    return [math.nan] * len(options)
