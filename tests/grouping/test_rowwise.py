from __future__ import annotations

from engine.grouping.partition import Facts
from engine.grouping.rowwise import reduction_chains
from engine.ir import Graph, GraphBuilder
from tests.ir.graphs import add_rms_norm, add_softmax, contiguous, softmax


def chain_kinds(graph: Graph) -> list[list[str]]:
    return [[graph.ops[i].kind for i in sorted(chain)] for chain in reduction_chains(Facts.of(graph))]


def test_a_softmax_is_one_chain() -> None:
    assert chain_kinds(softmax()) == [["amax", "sub", "exp", "sum", "div"]]


def test_a_norm_takes_its_casts_and_its_weight() -> None:
    b = GraphBuilder()
    x, w = b.input(contiguous((8, 16), "bfloat16")), b.input(contiguous((16,), "bfloat16"))
    assert chain_kinds(b.build(add_rms_norm(b, x, w))) == [
        ["cast", "mul", "mean", "add", "rsqrt", "mul", "cast", "mul"],
    ]


def test_what_only_changes_the_source_stays_outside() -> None:
    b = GraphBuilder()
    x, y = (b.input(contiguous((8, 16), "float32")) for _ in range(2))
    bent = b.add("gelu", b.add("add", x, y))
    assert chain_kinds(b.build(add_softmax(b, bent))) == [["amax", "sub", "exp", "sum", "div"]]


def test_an_activation_after_a_norm_stays_outside() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((8, 16), "float32"))
    graph = b.build(b.add("relu", add_softmax(b, x)))
    assert chain_kinds(graph) == [["amax", "sub", "exp", "sum", "div"]]


def test_two_norms_with_a_contraction_between_are_two_chains() -> None:
    b = GraphBuilder()
    x, w = b.input(contiguous((16, 16), "float32")), b.input(contiguous((16,), "float32"))
    h = b.add("add", b.add("matmul", add_rms_norm(b, x, w), x), x)
    assert len(chain_kinds(b.build(add_rms_norm(b, h, w)))) == 2


def test_a_lone_reduction_is_no_chain() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((8, 16), "float32"))
    assert chain_kinds(b.build(b.add("sum", b.add("mul", x, x), axes=(1,)))) == []
