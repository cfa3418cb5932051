from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.grouping import grouping_space
from engine.ir import Graph, GraphBuilder, GraphError, Kernel
from engine.ir.json_form import (
    graph_from_json,
    graph_to_json,
    grouping_from_json,
    grouping_to_json,
    kernel_from_json,
    kernel_to_json,
    program_from_json,
    program_to_json,
)
from engine.ir.plan import Program
from tests.grouping.rewritable import stored_weights
from tests.ir.graphs import contiguous, feed_forward, linear_gelu, random_graphs


@given(random_graphs())
def test_a_graph_comes_back_equal(graph: Graph) -> None:
    assert graph_from_json(graph_to_json(graph)) == graph


def test_weights_come_back_and_a_graph_without_them_says_nothing() -> None:
    graph = stored_weights()
    assert graph.weights == (1, 2)
    assert graph_from_json(graph_to_json(graph)) == graph
    assert "weights" not in graph_to_json(linear_gelu())


def test_what_a_grouping_prepares_comes_back_and_one_without_says_nothing() -> None:
    space = grouping_space(stored_weights())
    path = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[-1])
    plan = space.grouping(path)
    assert len(plan.prepared) == 2
    assert grouping_from_json(grouping_to_json(plan)) == plan
    assert "prepared" not in grouping_to_json(replace(plan, prepared=()))


def test_a_kernel_comes_back_with_its_key_and_label() -> None:
    kernel = Kernel("contraction", linear_gelu(), "matmul+add+gelu")
    again = kernel_from_json(kernel_to_json(kernel))
    assert again == kernel
    assert (again.key, again.label) == (kernel.key, kernel.label)


def test_a_program_and_a_grouping_come_back_equal() -> None:
    program = Program(feed_forward(), "f(x)", "cuda:1")
    assert program_from_json(program_to_json(program)) == program
    space = grouping_space(program.graph)
    path = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[0])
    plan = space.grouping(path)
    again = grouping_from_json(grouping_to_json(plan))
    assert again == plan
    assert again.decisions == path
    assert [call.kernel.label for call in again.calls] == [call.kernel.label for call in plan.calls]


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), 1, 2.5, True])
def test_constants_keep_their_value_in_json_that_others_can_read(number: float) -> None:
    b = GraphBuilder()
    x = b.input(contiguous((4,), "float32"))
    text = graph_to_json(b.build(b.add("maximum", x, b.constant(number))))
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    values = [op.attribute("value") for op in graph_from_json(text).ops if op.kind == "constant"]
    assert values == [number]
    assert type(values[0]) is type(number)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"ops": 3, "inputs": [], "outputs": [], "labels": []}',
        "[" * 100_000,
        '{"ops": [], "inputs": [], "outputs": [' + "9" * 5000 + "]}",
    ],
)
def test_text_that_is_no_graph(text: str) -> None:
    for read in (graph_from_json, kernel_from_json, program_from_json, grouping_from_json):
        with pytest.raises(GraphError):
            read(text)


def _places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        found += _places(value, (*path, key))
    return found


_LINEAR_SPACE = grouping_space(linear_gelu())
_GROUPING = grouping_to_json(_LINEAR_SPACE.grouping((_LINEAR_SPACE.fork(()).options[1],)))  # type: ignore[union-attr]
_HOSTILE = (None, -1, 2**70, 1.5, True, "sum", "../x", [], {}, [[0]], "inf")


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(_places(json.loads(_GROUPING))), st.sampled_from(_HOSTILE))
def test_whatever_is_changed_in_a_grouping_it_verifies_or_is_refused(place: tuple[Any, ...], value: Any) -> None:
    data = json.loads(_GROUPING)
    holder = data
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    text = json.dumps(data)
    try:
        plan = grouping_from_json(text)
    except GraphError:
        with pytest.raises(GraphError, match=r"^[^\n]+$"):
            grouping_from_json(text)
    else:
        assert grouping_from_json(grouping_to_json(plan)) == plan


def test_a_body_of_another_family_is_refused() -> None:
    kernel = Kernel("contraction", linear_gelu())
    for family in ("rowwise", "pointwise", "__import__"):
        with pytest.raises(GraphError, match="kernel"):
            kernel_from_json(kernel_to_json(kernel).replace('"contraction"', f'"{family}"'))
