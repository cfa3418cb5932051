"""Which grouping to enter next: one that differs from the best by one answer, the most promising first.

One answer may also be given wherever the same is asked: what both inputs of an attention are spared can be worth more
than each of them alone. A tree spends its first visits on the forks that are asked first; what a measured grouping got
wrong may be the answer to the last one. A neighbour shares all but a kernel or two with the best, so that it costs
little to try. Predictions are corrected by what the run has measured: a model that is wrong about a kernel is so about
its like too.
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
USUAL = 0.1
"""What the usual error of predictions counts for against that of kernels of the same make, which count for up to 1."""


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """`changes` are the kernels that come (more of one) and go (fewer)."""

    copies: bool
    order: int
    path: Path
    kernels: frozenset[tuple[str, int]]
    changes: tuple[tuple[Kernel, int], ...]


class Neighbourhood:
    """The groupings around the best one. `entered` and `measured` tell it what the run knows; nothing else does."""

    def __init__(self, problem: Problem, space: Space, scorer: GroupingScorer) -> None:
        self._problem = problem
        self._space = space
        self._scorer = scorer
        self._measured: dict[str, float] = {}
        self._known: dict[tuple[str, ...], dict[str, Kernel]] = {}
        self._errors: dict[str, float] = {}
        self._entered: set[frozenset[tuple[str, int]]] = set()
        self._best: Path | None = None
        self._best_us = math.inf
        self._around: list[_Neighbour] | None = None
        self._promising: list[tuple[float, _Neighbour]] | None = None
        self._expected: dict[str, float] = {}
        self._makes: dict[str, tuple[str, ...]] = {}
        self._weights: dict[tuple[str, str], float] = {}

    def entered(self, path: Path) -> None:
        """The grouping at the end of `path` was entered: another path to the same kernels is not worth a visit."""
        self._entered.add(_kernels(self._problem.kernel_counts(path)))

    def measured(self, path: Path, sum_us: float | None, kernels_us: Mapping[str, float]) -> None:
        """What the grouping came to (None: it failed), and the best time in us of each of its kernels that has one."""
        self._measured.update(kernels_us)
        for key, (kernel, _) in self._problem.kernel_counts(path).items():
            if key in kernels_us and key not in self._errors:
                error = math.log(kernels_us[key] / self._scorer.predicted_us(kernel))
                if not math.isnan(error):
                    self._known.setdefault(self._make(kernel), {})[key] = kernel
                    self._errors[key] = error
        if sum_us is not None and sum_us < self._best_us:
            self._best, self._best_us = path, sum_us
            self._around = None
        self._promising = None
        self._expected.clear()

    def next(self) -> Path | None:
        """The most promising neighbour that was not entered; None where none is within reach of the best."""
        if self._best is None:
            return None
        if self._around is None:
            self._around = list(self._neighbours(self._best))
        if self._promising is None:
            judged = [(round(self._promise(one), 6), one) for one in self._around]
            told = [item for item in judged if not math.isnan(item[0])]
            self._promising = sorted(told, key=lambda item: (item[1].copies, item[0], item[1].order))
        for us, one in self._promising:
            if one.kernels not in self._entered and us <= self._best_us * (1.0 + REACH):
                return one.path
        return None

    def _neighbours(self, best: Path) -> Iterator[_Neighbour]:
        """Those that one other answer makes, and those that an answer to every fork of a question makes."""
        given = {knob for option in best for knob in option.knobs}
        base = self._problem.kernel_counts(best)
        asked: dict[tuple[str, KnobValue], set[str]] = {}
        found: list[tuple[bool, Path | None]] = []
        for depth, answer in enumerate(best):
            fork = self._space.fork(best[:depth])
            for option in fork.options if fork is not None else ():
                for name, value in option.knobs:
                    asked.setdefault((_question(name), value), set()).add(name)
                if option != answer:
                    found.append((_copies(option), self._completed((*best[:depth], option), given)))
        for wanted, names in asked.items():
            if len(names) > 1:
                found.append((_copies(Option((wanted,))), self._completed((), given, wanted)))
        for order, (copies, path) in enumerate(found):
            if path is not None:
                counts = self._problem.kernel_counts(path)
                yield _Neighbour(copies, order, path, _kernels(counts), _changes(base, counts))

    def _completed(
        self, path: Path, given: set[tuple[str, KnobValue]], everywhere: tuple[str, KnobValue] | None = None
    ) -> Path | None:
        """`path` with the answers of the best grouping to the forks that still come, the first where it had none.

        With `everywhere`, a question and its answer, each fork that asks it gets that answer where it is offered.
        """

        def fits(option: Option) -> tuple[bool, int]:
            answers = any((_question(name), value) == everywhere for name, value in option.knobs)
            return answers, len(given.intersection(option.knobs))

        while (fork := self._space.fork(path)) is not None:
            if not fork.options:
                return None
            path = (*path, max(fork.options, key=fits))
        return path

    def _promise(self, one: _Neighbour) -> float:
        """The best sum, less the kernels that go and plus those that come, in us."""
        change = 0.0
        for kernel, more in one.changes:
            if kernel.key not in self._expected:
                self._expected[kernel.key] = self._expected_us(kernel)
            change += more * self._expected[kernel.key]
        return self._best_us + change

    def _expected_us(self, kernel: Kernel) -> float:
        """Its measured time, else the prediction, as far off as it was for measured kernels of the same make.

        The nearer in work and traffic, the more such a kernel counts. Without one, predictions err as they usually do.
        """
        if kernel.key in self._measured:
            return self._measured[kernel.key]
        usual = statistics.median(self._errors.values()) if self._errors else 0.0
        akin = self._known.get(self._make(kernel), {})
        weights = {key: self._weight(kernel, other) for key, other in akin.items()}
        total = sum(weight * self._errors[key] for key, weight in weights.items()) + USUAL * usual
        return self._scorer.predicted_us(kernel) * math.exp(total / (sum(weights.values()) + USUAL))

    def _make(self, kernel: Kernel) -> tuple[str, ...]:
        if kernel.key not in self._makes:
            self._makes[kernel.key] = _make(kernel)
        return self._makes[kernel.key]

    def _weight(self, kernel: Kernel, other: Kernel) -> float:
        """How much the error of `other` says of the kernel's."""
        pair = (kernel.key, other.key)
        if pair not in self._weights:
            self._weights[pair] = 2.0 ** -_distance(kernel, other)
        return self._weights[pair]


def _changes(
    base: Mapping[str, tuple[Kernel, int]], counts: Mapping[str, tuple[Kernel, int]]
) -> tuple[tuple[Kernel, int], ...]:
    """The kernels of which `counts` has more or fewer than `base`, and how many."""
    found = []
    for key in sorted(base.keys() | counts.keys()):
        kernel = (counts.get(key) or base[key])[0]
        more = counts.get(key, (kernel, 0))[1] - base.get(key, (kernel, 0))[1]
        if more:
            found.append((kernel, more))
    return tuple(found)


def _copies(option: Option) -> bool:
    """Whether the answer takes a prepared copy of a weight for nothing but its layout: the last thing to try, for on an
    H200 no bf16 product gained more than 0.3 % by it."""
    return any(value == "turned" for _, value in option.knobs)


def _question(name: str) -> str:
    """What a fork asks, without the number of the place that it asks it of."""
    return name.rpartition("_")[0]


def _make(kernel: Kernel) -> tuple[str, ...]:
    """What a kernel's time is made of: products, in batches or not, whatever is computed on them, else reductions too.
    Kernels of one make are predicted alike, well or badly."""
    kinds = {"matmul"} if kernel.family == "contraction" else {"matmul", *REDUCTIONS}
    found = (op for op in kernel.body.ops if op.kind in kinds)
    return kernel.family, *sorted(f"{op.kind} {math.prod(op.out.shape[:-2]) > 1}" for op in found)


def _distance(kernel: Kernel, other: Kernel) -> float:
    """How many doublings of work and of traffic lie between two kernels."""
    pairs = ((kernel.flops, other.flops), (kernel.bytes_moved, other.bytes_moved))
    return sum(abs(math.log2(max(mine, 1) / max(its, 1))) for mine, its in pairs)


def _kernels(counts: Mapping[str, tuple[Kernel, int]]) -> frozenset[tuple[str, int]]:
    return frozenset((key, count) for key, (_, count) in counts.items())
