from __future__ import annotations

from engine.grouping.partition import Facts, Partition, escaping, family_of
from engine.ir import GraphBuilder
from tests.ir.graphs import contiguous, linear_gelu


def test_a_merge_that_would_close_a_circle_is_refused() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((8, 8), "float32"))
    bent = b.add("exp", x)
    product = b.add("matmul", bent, x)
    last = b.add("add", product, bent)
    partition = Partition.finest(Facts.of(b.build(last)))
    assert partition.merged((bent, last)) is None
    assert partition.merged((product, last)) is not None


def test_an_atom_never_reads_itself_through_a_view() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((8, 8), "float32"))
    bent = b.add("exp", x)
    last = b.add("relu", b.view(bent, (8, 8), (1, 8)))
    graph = b.build(last)
    assert Partition.finest(Facts.of(graph)).merged((1, 3)) is None


def test_what_was_decided_apart_is_not_brought_together() -> None:
    facts = Facts.of(linear_gelu())
    free = Partition.finest(facts)
    ops = frozenset(i for i, atom in enumerate(free.atom_of) if atom >= 0)
    held = Partition(facts, free.atom_of, free.groups, apart=frozenset({ops}))
    assert free.merged(ops) is not None
    assert held.merged(ops) is None
    assert held.merged(sorted(ops)[:2]) is not None


def test_families_follow_from_the_ops_and_from_what_leaves() -> None:
    facts = Facts.of(linear_gelu())
    matmul, add, gelu = (i for i in range(len(facts.classes)) if facts.computes(i))
    assert family_of(facts, frozenset({matmul, add, gelu})) == "contraction"
    assert family_of(facts, frozenset({add, gelu})) == "pointwise"
    assert escaping(facts, frozenset({add, gelu})) == (gelu,)
    b = GraphBuilder()
    x, row = b.input(contiguous((8, 16), "float32")), b.input(contiguous((16,), "float32"))
    small = b.add("exp", row)
    facts = Facts.of(b.build(b.add("add", x, small), small))
    assert family_of(facts, frozenset({i for i in range(4) if facts.computes(i)})) is None
