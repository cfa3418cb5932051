"""Which ops before an attention's scores keep to their heads, and whose values nobody else needs."""

from __future__ import annotations

import pytest

from engine.ir import Graph, GraphBuilder, TensorSpec
from engine.ir.attention import AttentionChain, attention_chain
from engine.ir.attention_prologue import KEYS, QUERIES, head_ops, operand_prologue
from tests.codegen.attention_bodies import add_softmax, attention
from tests.codegen.attention_prologue_bodies import Heads


def chain_of(graph: Graph) -> AttentionChain:
    (chain,) = [c for i in range(len(graph.ops)) if (c := attention_chain(graph, i)) is not None]
    return chain


def kinds(graph: Graph, ops: frozenset[int]) -> list[str]:
    return [graph.ops[i].kind for i in sorted(ops)]


def test_a_norm_and_a_rotation_are_found_from_the_projection_on() -> None:
    graph = Heads(4, 12, 12, 16, "bfloat16", group=2).body()
    chain = chain_of(graph)
    queries, keys = (operand_prologue(graph, chain, operand) for operand in (QUERIES, KEYS))
    assert kinds(graph, queries) == kinds(graph, keys)
    assert kinds(graph, queries)[:6] == ["cast", "mul", "mean", "add", "rsqrt", "mul"]
    assert kinds(graph, queries)[-3:] == ["mul", "mul", "add"]
    assert not queries & keys
    assert not (queries | keys) & chain.ops


def test_nothing_is_found_where_operands_are_read_from_memory() -> None:
    graph = attention(4, 12, 12, 16, "bfloat16", group=2, causal=True)
    assert not operand_prologue(graph, chain_of(graph), QUERIES)
    assert not operand_prologue(graph, chain_of(graph), KEYS)


def test_a_part_of_the_ops_can_be_asked_for() -> None:
    graph = Heads(2, 12, 12, 16, "float32").body()
    chain = chain_of(graph)
    root = [i if op.kind != "view" else op.inputs[0] for i, op in enumerate(graph.ops)]
    whole = operand_prologue(graph, chain, KEYS)
    last = frozenset(sorted(whole)[-3:])
    assert head_ops(graph, root, chain, KEYS, last) == last
    assert not head_ops(graph, root, chain, KEYS, last - {max(whole)})


def graph_with(case: str) -> Graph:
    b = GraphBuilder()
    q, k, v = (b.input(TensorSpec.contiguous((2, 8, 16), "float32")) for _ in range(3))
    queries = b.add("relu", q)
    if case == "a projection":
        weight = b.input(TensorSpec.contiguous((16, 16), "float32"))
        queries = b.add("relu", b.add("matmul", q, weight))
    if case == "a softmax over tokens":
        queries = b.add("div", queries, b.add("amax", queries, axes=(1,)))
    if case == "read as values too":
        v = queries
    if case == "a part of a head":
        queries = b.view(b.add("relu", b.input(TensorSpec.contiguous((2, 8, 24), "float32"))), (2, 8, 16), (192, 24, 1))
    scores = b.add("matmul", queries, b.view(k, (2, 16, 8), (128, 1, 16)))
    out = b.add("matmul", add_softmax(b, scores, "float32"), v)
    return b.build(out, *([queries] if case == "returned" else []))


@pytest.mark.parametrize(
    ("case", "found"),
    [
        ("", ["relu"]),
        ("a projection", ["relu"]),
        ("a softmax over tokens", ["div"]),
        ("read as values too", []),
        ("a part of a head", []),
        ("returned", []),
    ],
)
def test_ops_end_where_a_head_is_left_or_shared(case: str, found: list[str]) -> None:
    graph = graph_with(case)
    assert kinds(graph, operand_prologue(graph, chain_of(graph), QUERIES)) == found
