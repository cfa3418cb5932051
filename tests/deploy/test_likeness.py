"""A captured graph that isn't the call runs in eager with a sentence; ordinary calls, ill-conditioned too, deploy."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.deploy.execution import check_against
from engine.deploy.likeness import OTHER_BRANCH, is_the_call, same_values
from engine.ir import GraphBuilder, TensorSpec
from engine.ir.graph import Graph
from engine.runtime import evaluate
from tests.deploy.programs import printed_by

LIMIT_S = 200
pytestmark = pytest.mark.timeout(LIMIT_S + 20)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return printed_by("-W", "ignore", "-m", "tests.deploy.branching", limit_s=LIMIT_S)


def test_what_branches_while_it_is_captured_runs_in_eager_and_says_so(found: dict[str, Any]) -> None:
    rows = {**found["branching"], "padded": found["padded"], "by torch.compile": found["by torch.compile"]}
    assert len(rows) > 15
    for name, (deployments, error, said) in rows.items():
        assert (deployments, error) == (0, 0.0), name
        assert len(said) == 1, name
        assert OTHER_BRANCH in said[0], name


def test_ordinary_calls_are_deployed(found: dict[str, Any]) -> None:
    assert len(found["ordinary"]) > 8
    for name, (deployments, _, said) in found["ordinary"].items():
        assert (deployments, said) == (1, []), name


def exp_of_sums(dtype: str) -> Graph:
    """Half sums of some hundreds lose whole units, which exp makes factors of."""
    build = GraphBuilder()
    x = build.input(TensorSpec.contiguous((8, 8), dtype))
    return build.build(build.add("exp", build.add("matmul", x, x)))


def signs(dtype: str, raw: bool) -> Graph:
    """Which of the input, or of what is computed of it, is above 0."""
    build = GraphBuilder()
    x = build.input(TensorSpec.contiguous((64, 64), dtype))
    value = x if raw else build.add("exp", x)
    return build.build(build.add("gt", value, build.constant(0.0 if raw else 1.0, dtype)))


def test_an_ill_conditioned_result_is_near_what_the_graph_gives_as_its_ops_round() -> None:
    x = torch.full((8, 8), 3.1, dtype=torch.bfloat16)
    graph = exp_of_sums("bfloat16")
    (eager,) = evaluate(graph, [x], None)
    (wide,) = evaluate(graph, [x], torch.float32)
    assert float((eager.double() - wide.double()).norm() / wide.double().norm()) > 0.05
    assert is_the_call(graph, [x], [eager], [wide])
    assert not is_the_call(graph, [x], [eager * 0.5], [wide])


@pytest.mark.parametrize(("raw", "flipped", "alike"), [(False, 40, True), (False, 900, False), (True, 1, False)])
def test_a_comparison_of_computed_values_alone_may_come_out_otherwise(raw: bool, flipped: int, alike: bool) -> None:
    graph = signs("float32" if raw else "bfloat16", raw)
    x = torch.randn(64, 64).to(torch.float32 if raw else torch.bfloat16)
    references = evaluate(graph, [x], torch.float32)
    eager = references[0].clone()
    eager.view(-1)[:flipped].logical_not_()
    assert is_the_call(graph, [x], [eager], references) is alike


def test_one_row_of_many_that_is_another_is_seen_and_ours_is_not_asked() -> None:
    build = GraphBuilder()
    x = build.input(TensorSpec.contiguous((5000, 4), "bfloat16"))
    graph = build.build(build.add("mul", x, build.constant(2.0, "bfloat16")))
    value = torch.randn(5000, 4).bfloat16()
    eager = value * 2
    assert check_against(graph, [value], [value * 2], [eager]) == ""
    eager[17] = 0.0
    assert check_against(graph, [value], [value * 2], [eager]) == OTHER_BRANCH


def test_a_nan_of_eagers_alone_is_another_branch() -> None:
    build = GraphBuilder()
    x = build.input(TensorSpec.contiguous((4,), "float32"))
    graph = build.build(build.add("sqrt", x))
    value = torch.tensor([1.0, -1.0, 2.0, 3.0])
    assert is_the_call(graph, [value], [value.sqrt()], evaluate(graph, [value]))
    assert not is_the_call(graph, [value], [value.abs().sqrt()], evaluate(graph, [value]))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ((1, 2.0, None, "a"), (1, 2.0, None, "a"), True),
        ((1, float("nan")), (1, float("nan")), True),
        ({"a": 1}, {"b": 1}, False),
        ((1,), (True,), False),
        ((1,), [1], False),
        ((torch.ones(2), torch.Size((2, 3))), (torch.zeros(2), torch.Size((2, 3))), True),
        (torch.Size((2, 3)), torch.Size((2, 4)), False),
        (torch.ones(2), 1.0, False),
    ],
)
def test_values_beside_tensors_are_equal(one: Any, other: Any, same: bool) -> None:
    assert same_values(one, other) is same
