"""How much of a program's structure a run left alone: the groupings that its outer search never entered.

The tree of a layer has some dozen groupings and is walked to its end. That of a whole model can have more than anybody
would count, so that the walk has a budget, and what it then says is a lower bound.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from engine.search import Path, Space

MOST_FORKS, FEWEST_FORKS = 2000, 24
OPS_LOOKED_AT = 50_000
"""A question costs about 25 us an op of the graph, because the partition behind it is computed: about 1 s in all."""


@dataclass(frozen=True, slots=True)
class Untried:
    """Groupings that were never entered; unless `exact`, there are at least so many."""

    count: int
    exact: bool


def forks_worth_asking(ops: int) -> int:
    """How many questions may be asked while counting, for a graph of so many ops; the same on every machine."""
    return max(FEWEST_FORKS, min(MOST_FORKS, OPS_LOOKED_AT // max(ops, 1)))


def count_untried(space: Space, entered: Set[Path], forks: int = MOST_FORKS) -> Untried:
    """Finished paths of `space` that are not in `entered`, looked for with at most `forks` questions.

    Each path that the budget leaves open leads to one grouping or more.
    """
    waiting: list[Path] = [()]
    finished = asked = 0
    while waiting and asked < forks:
        path = waiting.pop()
        asked += 1
        fork = space.fork(path)
        if fork is None:
            finished += 1
        else:
            waiting.extend((*path, option) for option in reversed(fork.options))
    return Untried(max(finished + len(waiting) - len(entered), 0), not waiting)
