"""Structural forks of a program that nobody tuned: each answered by the kernels that its answers make.

A kernel costs what it was measured to take in this context, and what the prior says where it was not. The walk answers
one fork after the other, each with the rest of the path at its first options, so it takes as many groupings as there
are options and not as many as there are paths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.codegen import is_generated, unbuildable_because
from engine.grouping import grouping_space
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.prior import UNBUILDABLE_US, Prior, score_options
from engine.search import FirstCompletion, Path
from engine.store import Store
from engine.vocabulary import Option, Target

LAUNCH_US = 2.0
"""What a library's call costs besides its memory traffic, about a launch."""


@dataclass(frozen=True, slots=True)
class Step:
    """A fork with the answer taken: `us` is what the program is thought to take with it, `runner_up` the next best.

    `us` is None where the first answers of later forks make a kernel that can't be built.
    """

    fork: str
    answer: str
    us: float | None
    runner_up: str
    runner_up_us: float | None


def walk_forks(
    graph: Graph, store: Store, context_key: str, target: Target, prior: Prior
) -> tuple[Grouping, tuple[Step, ...]]:
    """The grouping that the walk ends at, and how it went. Raises GraphError for a graph that is no verified one."""
    space = grouping_space(graph)
    costs = _Costs(store, context_key, target, prior)
    completed_us = FirstCompletion(space, lambda finished: costs.total(space.grouping(finished)), math.inf)
    path: Path = ()
    steps: list[Step] = []
    while (fork := space.fork(path)) is not None:
        ranked = sorted((completed_us((*path, option)), i) for i, option in enumerate(fork.options))
        options = [fork.options[i] for _, i in ranked]
        first, second, *_ = (*(us if us < UNBUILDABLE_US else None for us, _ in ranked), None)
        runner_up = _answer(options[1]) if second is not None else ""
        steps.append(Step(fork.name, _answer(options[0]), first, runner_up, second))
        path = (*path, options[0])
    return space.grouping(path), tuple(steps)


class _Costs:
    """Times of kernels in us, measured or predicted, each looked up once."""

    def __init__(self, store: Store, context_key: str, target: Target, prior: Prior) -> None:
        self._store = store
        self._context_key = context_key
        self._target = target
        self._prior = prior
        self._known: dict[str, float] = {}

    def total(self, grouping: Grouping) -> float:
        return sum(self.of(kernel) * count for kernel, count in grouping.kernel_counts().values())

    def of(self, kernel: Kernel) -> float:
        if kernel.key not in self._known:
            self._known[kernel.key] = self._looked_up(kernel)
        return self._known[kernel.key]

    def _looked_up(self, kernel: Kernel) -> float:
        if not is_generated(kernel):
            return kernel.bytes_moved / self._target.memory_bandwidth * 1e6 + LAUNCH_US
        if unbuildable_because(kernel, self._target) is not None:
            return UNBUILDABLE_US
        measured = self._store.best_known(kernel.key, self._context_key)
        if measured is not None and measured.us is not None:
            return measured.us
        (speed,) = score_options(self._prior, kernel, self._target, {}, [Option(())])
        return 1.0 / speed if speed > 0 else math.inf


def _answer(option: Option) -> str:
    return " ".join(str(value) for _, value in option.knobs)
