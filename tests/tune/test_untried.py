"""How many groupings a search left alone: exact where the tree is small, a lower bound where it isn't."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.search import EnumeratedSpace
from engine.tune.untried import Untried, count_untried, forks_worth_asking
from engine.vocabulary import KnobValue, Option

LEAVES = [{"A": a, "B": b, "C": c} for a in range(4) for b in range(3) for c in range(2)]


def test_everything_is_counted_within_the_budget() -> None:
    space = EnumeratedSpace(LEAVES)
    assert count_untried(space, set()) == Untried(24, exact=True)
    path = _first_path(space)
    assert count_untried(space, {path}) == Untried(23, exact=True)


def test_no_question_is_one_grouping() -> None:
    assert count_untried(EnumeratedSpace([{}]), {()}) == Untried(0, exact=True)


def test_a_large_graph_gets_fewer_questions() -> None:
    budgets = [forks_worth_asking(ops) for ops in (0, 10, 100, 1000, 3000, 100_000)]
    assert budgets == [2000, 2000, 500, 50, 24, 24]


@given(
    leaves=st.lists(st.fixed_dictionaries({name: st.integers(0, 2) for name in "ABC"}), min_size=1, max_size=20),
    forks=st.integers(1, 40),
)
def test_a_small_budget_never_counts_too_many(leaves: list[dict[str, KnobValue]], forks: int) -> None:
    space = EnumeratedSpace(leaves)
    found = count_untried(space, set(), forks)
    assert found.count <= len(space)
    if found.exact:
        assert found.count == len(space)


def _first_path(space: EnumeratedSpace) -> tuple[Option, ...]:
    path: tuple[Option, ...] = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[0])
    return path
