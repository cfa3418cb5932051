from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from emmy_tui.tree_index import Key, TreeIndex, is_tried
from engine.events import NodeOpened, NodeVisited
from engine.snapshot import Snapshot, apply
from tests.emmy_tui.scripted import search_events


def grown(size: int, seed: int) -> Snapshot:
    """A random tree of `size` nodes under two roots, part of it tried."""
    rng = random.Random(seed)
    snapshot = Snapshot()
    for number in range(size):
        parent = "" if number < 2 else f"n{rng.randrange(number)}"
        apply(
            snapshot,
            NodeOpened(at=0, node=f"n{number}", parent=parent, kernel="k", label=f"A={number}", prior=0.5, depth=0),
        )
        if rng.random() < 0.5:
            apply(snapshot, NodeVisited(at=0, node=f"n{number}", visits=1, best_us=1.0, state="open"))
    return snapshot


def walked(index: TreeIndex, snapshot: Snapshot) -> list[tuple[Key, int]]:
    """The lines by a plain recursion over what is open."""
    lines: list[tuple[Key, int]] = []

    def children(node: str, depth: int) -> None:
        rows = [snapshot.nodes[child] for child in snapshot.nodes[node].children]
        for row in rows:
            if is_tried(row):
                visit(row.node, depth)
        untried = [row for row in rows if not is_tried(row)]
        if untried:
            lines.append((Key(node, untried=True), depth))
        if index.lists_untried(node):
            for row in untried:
                visit(row.node, depth)

    def visit(node: str, depth: int) -> None:
        lines.append((Key(node), depth))
        if index.is_open(node):
            children(node, depth + 1)

    for root in snapshot.roots:
        visit(root, 0)
    return lines


STEPS = st.lists(
    st.tuples(st.sampled_from(["open", "close", "list", "unlist", "follow", "visit", "grow"]), st.integers(0, 59)),
    max_size=40,
)


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 60), st.integers(0, 1000), STEPS)
def test_lines_are_those_of_a_plain_walk(size: int, seed: int, steps: list[tuple[str, int]]) -> None:
    snapshot = grown(size, seed)
    index = TreeIndex(snapshot)
    for verb, number in steps:
        node = f"n{number % len(snapshot.nodes)}"
        match verb:
            case "open":
                index.open(node)
            case "close":
                index.close(node)
            case "list" | "unlist":
                index.list_untried(node, verb == "list")
            case "follow":
                index.follow(index.path(node))
            case "visit":
                apply(snapshot, NodeVisited(at=0, node=node, visits=3, best_us=None, state="open"))
                index.touch([node])
            case "grow":
                new = f"n{len(snapshot.nodes)}"
                apply(snapshot, NodeOpened(at=0, node=new, parent=node, kernel="k", label="B=1", prior=0.1, depth=1))
                index.touch([new])
    expected = walked(index, snapshot)
    assert len(index) == len(expected)
    assert [(line.key, line.depth) for line in index.lines(0, 10_000)] == expected
    for place, (key, _) in enumerate(expected):
        assert index.position(key) == place
    start = len(expected) // 2
    assert [line.key for line in index.lines(start, 3)] == [key for key, _ in expected[start : start + 3]]
    assert index.lines(len(expected), 5) == []


def test_untried_siblings_share_one_line_that_opens() -> None:
    snapshot = Snapshot()
    for event in search_events():
        apply(snapshot, event)
    index = TreeIndex(snapshot)
    root = next(root for root in snapshot.roots if snapshot.nodes[root].kernel == "5f1c")
    index.open(root)
    inner = next(child for child in snapshot.nodes[root].children if snapshot.nodes[child].visits)
    index.open(inner)
    line = next(line for line in index.lines(0, 100) if line.key == Key(inner, untried=True))
    untried = [child for child in snapshot.nodes[inner].children if not is_tried(snapshot.nodes[child])]
    assert line.hidden == len(untried) > 0
    assert line.hidden_prior == max(snapshot.nodes[child].prior for child in untried)
    before = len(index)
    index.list_untried(inner, True)
    assert len(index) == before + line.hidden


def test_following_leaves_what_a_person_opened_and_closed() -> None:
    snapshot = Snapshot()
    for number in range(6):
        parent = f"n{number - 1}" if number else ""
        apply(
            snapshot,
            NodeOpened(at=0, node=f"n{number}", parent=parent, kernel="k", label="A=1", prior=1.0, depth=number),
        )
        apply(snapshot, NodeVisited(at=0, node=f"n{number}", visits=1, best_us=None, state="open"))
    index = TreeIndex(snapshot)
    index.open("n1")
    index.close("n3")
    index.follow(["n0", "n1", "n2", "n3"])
    assert [index.is_open(f"n{n}") for n in range(4)] == [True, True, True, False]
    index.follow([])
    assert [index.is_open(f"n{n}") for n in range(4)] == [False, True, False, False]
    assert index.nearest(Key("n5")) == Key("n0")
    assert index.nearest(Key("gone")) is None


def test_what_is_followed_not_any_more_closes_again() -> None:
    snapshot = Snapshot()
    for event in search_events():
        apply(snapshot, event)
    index = TreeIndex(snapshot)
    lines = len(index)
    leaf = max(snapshot.nodes.values(), key=lambda row: (row.depth, row.visits)).node
    index.follow(index.path(leaf)[:-1])
    assert len(index) > lines
    index.follow([])
    assert len(index) == lines
    assert [line.key for line in index.lines(0, 99)] == [key for key, _ in walked(index, snapshot)]
