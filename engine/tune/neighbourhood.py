"""Which grouping to enter next: one that differs from the best by one answer, the most promising first.

A tree spends its first visits on the forks that are asked first; what a measured grouping got wrong may be the answer
to the last one. A neighbour shares all but a kernel or two with the best, so that it costs little to try, and the
model's errors about the shared kernels cancel.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from engine.ir.kernel import Kernel
from engine.ir.ops import REDUCTIONS
from engine.search import Path, Space
from engine.tune.grouping_scoring import GroupingScorer
from engine.tune.problem import Problem
from engine.vocabulary import KnobValue, Option

REACH = 0.06
"""A neighbour is entered if it promises at most this share more than the best sum: predictions are off by some 20 %
a kernel, and about one kernel in six changes."""
SHARED = 1.25
"""How much slower than predicted, against the other kernels, a kernel may be for reasons that whatever takes its place
would share; the rest is its own."""
WORTH = 0.01
"""The share of the sum that another layout of a weight has to promise: it costs a prepared copy."""


@dataclass(frozen=True, slots=True)
class _Neighbour:
    us: float
    order: int
    path: Path
    kernels: frozenset[tuple[str, int]]


class Neighbourhood:
    """The groupings around the best one. `entered` and `measured` tell it what the run knows; nothing else does."""

    def __init__(self, problem: Problem, space: Space, scorer: GroupingScorer) -> None:
        self._problem = problem
        self._space = space
        self._scorer = scorer
        self._measured: dict[str, float] = {}
        self._entered: set[frozenset[tuple[str, int]]] = set()
        self._best: Path | None = None
        self._best_us = math.inf
        self._around: list[_Neighbour] | None = None

    def entered(self, path: Path) -> None:
        """The grouping at the end of `path` was entered: another path to the same kernels is not worth a visit."""
        self._entered.add(_kernels(self._problem.kernel_counts(path)))

    def measured(self, path: Path, sum_us: float | None, kernels_us: Mapping[str, float]) -> None:
        """What the grouping came to (None: it failed), and the best time in us of each of its kernels that has one."""
        self._measured.update(kernels_us)
        if sum_us is not None and sum_us < self._best_us:
            self._best, self._best_us = path, sum_us
        self._around = None

    def next(self) -> Path | None:
        """The most promising neighbour that was not entered; None where none is within reach of the best."""
        if self._best is None:
            return None
        if self._around is None:
            self._around = sorted(self._neighbours(self._best), key=lambda one: (one.us, one.order))
        for one in self._around:
            if one.kernels not in self._entered and one.us <= self._best_us * (1.0 + REACH):
                return one.path
        return None

    def _neighbours(self, best: Path) -> Iterator[_Neighbour]:
        wanted = {knob for option in best for knob in option.knobs}
        base = self._problem.kernel_counts(best)
        for depth, answer in enumerate(best):
            fork = self._space.fork(best[:depth])
            for option in fork.options if fork is not None else ():
                if option == answer:
                    continue
                path = self._completed((*best[:depth], option), wanted)
                if path is not None:
                    counts = self._problem.kernel_counts(path)
                    us = self._promise(base, counts) + WORTH * self._best_us * _copies(option)
                    if not math.isnan(us):
                        yield _Neighbour(us, depth, path, _kernels(counts))

    def _completed(self, path: Path, wanted: set[tuple[str, KnobValue]]) -> Path | None:
        """`path` with the answers of the best grouping to the forks that still come, the first where it had none."""
        while (fork := self._space.fork(path)) is not None:
            if not fork.options:
                return None
            path = (*path, max(fork.options, key=lambda option: len(wanted.intersection(option.knobs))))
        return path

    def _promise(self, base: Mapping[str, tuple[Kernel, int]], counts: Mapping[str, tuple[Kernel, int]]) -> float:
        """The best sum, less what goes and plus what comes, in us.

        Both by their measured times if all that comes was measured, else both by prediction, whose bias cancels; but
        a kernel that is far slower than predicted takes that with it, unless one comes that computes the same.
        """
        coming = {key: (k, n - base.get(key, (k, 0))[1]) for key, (k, n) in counts.items()}
        going = {key: (k, n - counts.get(key, (k, 0))[1]) for key, (k, n) in base.items()}
        known = all(key in self._measured for key, (_, more) in coming.items() if more > 0)

        def total(changes: Mapping[str, tuple[Kernel, int]]) -> float:
            return sum(
                more * (self._measured[key] if known and key in self._measured else self._scorer.predicted_us(kernel))
                for key, (kernel, more) in changes.items()
                if more > 0
            )

        made_again = {_make(kernel) for kernel, more in coming.values() if more > 0}
        gone = {key: item for key, item in going.items() if item[1] > 0 and _make(item[0]) not in made_again}
        surprise = 0.0 if known else self._surprise(base, gone)
        return self._best_us + total(coming) - total(going) - surprise

    def _surprise(self, base: Mapping[str, tuple[Kernel, int]], gone: Mapping[str, tuple[Kernel, int]]) -> float:
        """The us by which the kernels that are gone are slower than their predictions and the bias of all explain."""
        predicted = {key: self._scorer.predicted_us(kernel) for key, (kernel, _) in base.items()}
        biases = [self._measured[key] / us for key, us in predicted.items() if key in self._measured and us > 0]
        if not biases:
            return 0.0
        most = SHARED * statistics.median(biases)
        spent = [(more, key) for key, (_, more) in gone.items() if key in self._measured]
        own = sum(more * (self._measured[key] - most * predicted[key]) for more, key in spent)
        return max(own, 0.0)


def _copies(option: Option) -> bool:
    """Whether the answer takes a prepared copy of a weight for nothing but its layout."""
    return any(value == "turned" for _, value in option.knobs)


def _make(kernel: Kernel) -> tuple[str, ...]:
    """What a kernel's time is made of: products, whatever is computed on them, else products and reductions. Kernels of
    one make are predicted alike, well or badly."""
    kinds = {"matmul"} if kernel.family == "contraction" else {"matmul", *REDUCTIONS}
    return kernel.family, *sorted(op.kind for op in kernel.body.ops if op.kind in kinds)


def _kernels(counts: Mapping[str, tuple[Kernel, int]]) -> frozenset[tuple[str, int]]:
    return frozenset((key, count) for key, (_, count) in counts.items())
