from __future__ import annotations

import math

import pytest

from engine.events import NodeState
from engine.search import Search
from engine.search.tree import ROOT, Tree
from engine.vocabulary import Option
from tests.search.toys import GridSpace, TreeSpace, hashed, hashed_scorer, no_opinion

SPACE = {"BLOCK_M": (16, 32), "NUM_WARPS": (1, 2)}


def options(*values: int) -> list[Option]:
    return [Option((("BLOCK_M", value),)) for value in values]


def test_siblings_keep_canonical_order_and_are_tried_from_the_fastest_predicted() -> None:
    tree = Tree()
    tree.expand(ROOT, "BLOCK_M", options(16, 32, 64), [1.0, 4.0, 2.0])
    assert [tree.options[i].knobs[0][1] for i in tree.children[ROOT]] == [16, 32, 64]
    assert tree.open_children[ROOT] == [2, 3, 1]
    assert tree.priors[1:] == [0.25, 1.0, 0.5]
    assert tree.ranks[1:] == [2, 0, 1]


def test_closing_the_last_child_closes_the_ancestors_and_reopening_brings_all_back_in_place() -> None:
    tree = Tree()
    tree.expand(ROOT, "BLOCK_M", options(16, 32), [1.0, 2.0])
    tree.expand(2, "BLOCK_N", options(16, 32), [math.nan, math.nan])
    for node in (3, 4, 1):
        tree.close(node)
    assert tree.closed[ROOT]
    tree.reopen(4)
    tree.reopen(3)
    assert not tree.closed[ROOT]
    assert tree.open_children[2] == [3, 4]
    assert tree.open_children[ROOT] == [2]
    tree.close(3)
    tree.close(3)
    assert tree.open_children[2] == [4]


def test_a_node_shows_its_place() -> None:
    search = Search(GridSpace(SPACE), hashed_scorer)
    proposal = search.ask()
    assert proposal is not None
    node = proposal.node
    assert node.is_leaf
    assert node.depth == 2
    assert node.path == proposal.path
    assert [n.depth for n in node.lineage()] == [0, 1, 2]
    assert node.lineage()[0] == search.root
    assert node.parent is not None
    assert node in node.parent.children
    assert node.parent.fork == "NUM_WARPS"
    assert search.root.parent is None
    assert search.node(node.id) == node


def test_states_follow_a_candidate_from_open_to_its_answer() -> None:
    search = Search(GridSpace(SPACE), no_opinion)
    first, second, third, fourth = (search.ask() for _ in range(4))
    assert first
    assert second
    assert third
    assert fourth
    assert search.root.state is NodeState.RUNNING
    assert first.node.state is NodeState.RUNNING
    search.tell(first, 1.0)
    search.tell(second, None)
    search.skip(third)
    assert first.node.state is NodeState.MEASURED
    assert second.node.state is NodeState.FAILED
    assert third.node.state is NodeState.EXHAUSTED
    search.withdraw(fourth)
    assert fourth.node.state is NodeState.OPEN
    assert search.root.state is NodeState.OPEN
    assert not search.root.exhausted


def test_a_dead_end_is_marked() -> None:
    search = Search(TreeSpace({"A=1": {}, "A=2": None}), no_opinion)
    while (proposal := search.ask()) is not None:
        search.tell(proposal, 1.0)
    dead, alive = search.root.children
    assert dead.is_dead_end
    assert dead.state is NodeState.EXHAUSTED
    assert alive.is_leaf
    assert search.root.exhausted


def test_an_explanation_adds_up_to_the_score_that_decides() -> None:
    search = Search(GridSpace({"BLOCK_M": (16, 32, 64), "NUM_WARPS": (1, 2, 4, 8)}), hashed_scorer)
    for _ in range(3):
        proposal = search.ask()
        assert proposal is not None
        search.tell(proposal, hashed(proposal.knobs))
    scores = {child: search.explain(child) for child in search.root.children}
    best = max(scores, key=lambda child: scores[child].score)
    proposal = search.ask()
    assert proposal is not None
    assert proposal.node.lineage()[1] == best
    told = scores[best]
    assert told.u == pytest.approx(math.sqrt(2) * told.prior * math.sqrt(told.parent_visits + 1) / (1 + told.visits))
    assert told.score == told.q + told.u
    assert search.explain(search.root).score == 0.0
