"""Why a node: the terms of the search's rule among its siblings, in agreement with the rule itself."""

from __future__ import annotations

import math

import pytest

from emmy_tui.text import line_width, plain
from emmy_tui.view import View
from emmy_tui.why import sibling_terms, why_lines
from engine.search import puct
from engine.snapshot import Snapshot, apply
from tests.emmy_tui.scripted import search_events


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    snapshot = Snapshot()
    for event in search_events():
        apply(snapshot, event)
    return snapshot


def test_the_terms_are_those_of_the_rule(snapshot: Snapshot) -> None:
    seen = 0
    for name, row in snapshot.nodes.items():
        terms = sibling_terms(snapshot, name)
        parent = snapshot.nodes.get(row.parent)
        assert bool(terms) == (parent is not None)
        for one in terms:
            assert one.rank == 1 + sum(other.node.prior > one.node.prior for other in terms)
            assert one.tied == sum(other.node.prior == one.node.prior for other in terms)
        assert [one.score for one in terms] == sorted((one.score for one in terms), reverse=True)
        for one in terms:
            assert 0 <= one.q <= 1
            assert parent is not None
            assert one.score == puct(one.q, one.node.prior, parent.visits, one.node.visits, math.sqrt(2))
            seen += 1
    assert seen > 100


@pytest.mark.parametrize("width", [30, 74, 100])
def test_every_node_has_words_that_fit(snapshot: Snapshot, width: int) -> None:
    for name in list(snapshot.nodes)[:200]:
        lines = why_lines(View(snapshot=snapshot, node=name), width)
        assert all(line_width(line) <= max(width, 54) for line in lines)
        text = "\n".join(plain(line) for line in lines)
        assert ("root of a tree" in text) != ("Its score is" in text)
        assert "prior of" in text


def test_without_a_node_it_says_what_to_do() -> None:
    assert "put the cursor" in plain(why_lines(View(), 60)[0])


def test_a_tried_node_says_what_it_led_to_and_its_place_by_the_prior(snapshot: Snapshot) -> None:
    row = next(iter(snapshot.kernels.values()))
    root = next(node for node in snapshot.nodes.values() if node.kernel == row.kernel and not node.parent)
    best = next(child for child in root.children if snapshot.nodes[child].best_us == root.best_us)
    text = " ".join(" ".join(plain(line).split()) for line in why_lines(View(snapshot=snapshot, node=best), 100))
    assert "us by ranking time, the best of the tree. The prior put it at number" in text
    other = next(child for child in root.children if (snapshot.nodes[child].best_us or 0) > (root.best_us or 0))
    text = " ".join(" ".join(plain(line).split()) for line in why_lines(View(snapshot=snapshot, node=other), 100))
    assert "; the tree's best is" in text
