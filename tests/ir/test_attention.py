"""The steps from an attention's logits down to its scores."""

from __future__ import annotations

import pytest

from engine.ir import Graph, GraphBuilder, TensorSpec
from engine.ir.attention import AttentionChain, attention_chain, steps_to_scores
from tests.codegen.attention_bodies import ATTENTION, add_causal, add_softmax


def chain_of(body: Graph) -> AttentionChain:
    (_, values) = (index for index, op in enumerate(body.ops) if op.kind == "matmul")
    chain = attention_chain(body, values)
    assert chain is not None
    return chain


@pytest.mark.parametrize("name", sorted(ATTENTION))
def test_they_lead_from_the_logits_to_the_scores(name: str) -> None:
    body = ATTENTION[name]()
    chain = chain_of(body)
    steps = list(steps_to_scores(body, chain))
    assert [step.index for step in steps] == sorted(chain.path, reverse=True)
    below = [chain.logits, *(step.below for step in steps)]
    assert below == [*(step.index for step in steps), chain.scores]
    for step in steps:
        assert step.position is not None
        assert step.op.inputs[step.position] == step.below
        if len(step.op.inputs) == 2:
            assert {step.below, step.other} == set(step.op.inputs)


def test_they_end_with_an_op_that_reads_the_scores_in_several_places() -> None:
    b = GraphBuilder()
    q, k, v = (b.input(TensorSpec.contiguous((2, 40, 16), "float32")) for _ in range(3))
    scores = b.add("matmul", q, b.view(k, (2, 16, 40), (640, 1, 16)))
    logits = add_causal(b, b.add("mul", scores, b.add("tanh", scores)))
    body = b.build(b.add("matmul", add_softmax(b, logits, "float32"), v))
    steps = list(steps_to_scores(body, chain_of(body)))
    assert [(step.op.kind, step.below is None) for step in steps] == [("where", False), ("mul", True)]
