"""A scorer that learns: forks are asked again, and what was answered, closed and in flight stays as it was."""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.search import EnumeratedSpace, Path, Search
from engine.vocabulary import Option

LEAVES = [{"a": a, "b": b} for a in range(4) for b in range(4)]


class Changing:
    def __init__(self) -> None:
        self.favourite = 0
        self.asked: list[Path] = []

    def __call__(self, path: Path, options: Sequence[Option]) -> Sequence[float]:
        self.asked.append(path)
        return [1.0 if option.knobs[0][1] == self.favourite else 0.01 for option in options]


def test_forks_are_asked_anew_where_a_descent_comes_through() -> None:
    scorer = Changing()
    search = Search(EnumeratedSpace(LEAVES), scorer, exploration=1e6)
    first = search.ask()
    assert first is not None
    assert first.knobs == {"a": 0, "b": 0}
    search.tell(first, 1.0)
    scorer.favourite = 2
    search.score_again()
    second = search.ask()
    assert second is not None
    assert second.knobs == {"a": 2, "b": 2}
    assert [len(path) for path in scorer.asked] == [0, 1, 0, 1]
    children = search.root.children
    assert [child.visits for child in children] == [1, 0, 0, 0]
    assert [child.rank for child in children] == [1, 2, 0, 3]
    assert [child.prior for child in children] == [0.01, 0.01, 1.0, 0.01]


def test_every_candidate_is_still_proposed_once() -> None:
    scorer = Changing()
    search = Search(EnumeratedSpace(LEAVES), scorer, patience=100)
    seen = []
    while True:
        scorer.favourite = len(seen) % 4
        search.score_again()
        ahead = [proposal for proposal in (search.ask(), search.ask()) if proposal is not None]
        if not ahead:
            break
        for proposal in ahead:
            seen.append(tuple(proposal.knobs.items()))
            search.tell(proposal, 1.0)
    assert len(seen) == len(set(seen)) == len(LEAVES)


def test_a_search_that_is_never_told_asks_each_fork_once() -> None:
    scorer = Changing()
    search = Search(EnumeratedSpace(LEAVES), scorer, patience=100)
    while (proposal := search.ask()) is not None:
        search.tell(proposal, None)
    assert len(scorer.asked) == len(set(scorer.asked)) == 5


def test_no_opinion_after_one_counts_as_one() -> None:
    opinions = [[0.5, 1.0], [math.nan, math.nan]]
    search = Search(EnumeratedSpace([{"a": 0}, {"a": 1}]), lambda path, options: opinions.pop(0))
    proposal = search.ask()
    assert proposal is not None
    search.withdraw(proposal)
    search.score_again()
    again = search.ask()
    assert again is not None
    assert again.knobs == {"a": 0}
    assert [child.prior for child in search.root.children] == [1.0, 1.0]
