"""Whether the ranking regime orders candidates as the deploy regime does, from the pairs of times that a run leaves.

A candidate near the best is timed in both regimes. Spearman's correlation says how alike the two orders are; what
counts is the regret: how much slower the candidate that ranking puts first is than the best, both in deploy times.
Where all pairs lie within the noise the correlation is low and the regret is nothing, and nothing is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

Pair = tuple[float, float]
"""Ranking time and deploy time of one candidate, in us."""

FEWEST = 5
"""A kernel with fewer pairs says nothing of an order."""
ENOUGH, LEAST_SPEARMAN, MOST_REGRET = 24, 0.6, 0.02
"""A family with so many pairs ranks badly below that correlation and above that regret (a share), both together: near
the best, correlations are low by nature (0.98 over whole spaces of bf16 matmuls on an H200)."""


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How the pairs of `kernels` kernels rank, each kernel by itself; both numbers are means over them.

    `regret` is a share: 0.02 is 2 % slower than the best.
    """

    kernels: int
    pairs: int
    spearman: float
    regret: float

    @property
    def bad(self) -> bool:
        """Whether the ranking regime misleads there, so that a search had better rank by deploy times."""
        return self.pairs >= ENOUGH and self.spearman < LEAST_SPEARMAN and self.regret > MOST_REGRET


def fidelity(of_kernels: Sequence[Sequence[Pair]]) -> Fidelity | None:
    """Of the pairs of several kernels; None where no kernel has enough of them."""
    enough = [pairs for pairs in of_kernels if len(pairs) >= FEWEST]
    if not enough:
        return None
    return Fidelity(
        len(enough), sum(map(len, enough)), fmean(map(spearman, enough)), fmean(regret(pairs) for pairs in enough)
    )


def misleading(of_kinds: Mapping[str, Sequence[Sequence[Pair]]]) -> frozenset[str]:
    """The kinds of kernels whose pairs rank badly."""
    found = {kind: fidelity(pairs) for kind, pairs in of_kinds.items()}
    return frozenset(kind for kind, one in found.items() if one is not None and one.bad)


def regret(pairs: Sequence[Pair]) -> float:
    """How much slower, as a share, the candidate with the lowest ranking time is than the best one, when deployed."""
    return min(pairs)[1] / min(deploy for _, deploy in pairs) - 1.0


def spearman(pairs: Sequence[Pair]) -> float:
    """Spearman's rank correlation, equal values sharing their mean rank; 1 where one side doesn't vary at all."""
    first, second = _ranks([a for a, _ in pairs]), _ranks([b for _, b in pairs])
    middle = (len(pairs) - 1) / 2
    along = sum((a - middle) * (b - middle) for a, b in zip(first, second, strict=True))
    spread = sum((a - middle) ** 2 for a in first) * sum((b - middle) ** 2 for b in second)
    return along / spread**0.5 if spread > 0 else 1.0


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in order[start : end + 1]:
            ranks[place] = (start + end) / 2
        start = end + 1
    return ranks
