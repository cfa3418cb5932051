"""Which operands may be turned: those that never change and lie as a matrix."""

from __future__ import annotations

import pytest

from engine.grouping import grouping_space
from engine.grouping.weight_layout import WeightLayout
from engine.ir import Graph, GraphBuilder
from tests.grouping.rewritable import contiguous, linear, stored_weights


def test_each_stored_form_is_a_question_and_turns_into_the_other() -> None:
    graph = stored_weights()
    assert len(WeightLayout().sites(graph)) == 2
    space = grouping_space(graph)
    path = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[1 if fork.name.startswith("WEIGHT_LAYOUT") else 0])
    plan = space.grouping(path)
    assert [step.body.output_specs()[0].shape for step in plan.prepared] == [(24, 40), (24, 17)]
    rights = [
        view.spec.strides
        for call in plan.calls
        for view in call.arguments
        if view.buffer in {result for step in plan.prepared for result in step.results}
    ]
    assert rights == [(1, 40), (17, 1)]


def declined() -> dict[str, Graph]:
    b = GraphBuilder()
    x = b.input(contiguous((4, 16), "float32"))
    loose = b.build(linear(b, x, 8, weight=False))
    b = GraphBuilder()
    x, w = b.input(contiguous((4, 16), "float32")), b.input(contiguous((16, 16), "float32"), weight=True)
    strided = b.build(b.add("matmul", x, b.view(w, (16, 8), (16, 2))))
    b = GraphBuilder()
    w, x = b.input(contiguous((4, 16), "float32"), weight=True), b.input(contiguous((16, 8), "float32"))
    left = b.build(b.add("matmul", w, x))
    return {"it may change": loose, "no axis lies in one piece": strided, "the weight is on the left": left}


@pytest.mark.parametrize("why", declined())
def test_another_operand_is_not_asked(why: str) -> None:
    assert WeightLayout().sites(declined()[why]) == ()
