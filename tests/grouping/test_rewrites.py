"""Questions that change the graph come before those that divide it, and no answer changes what is computed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from engine.grouping import GroupingSpace, grouping_space
from engine.grouping.rewrites import REWRITES
from engine.ir import Graph, GraphBuilder, GraphError
from engine.ir.json_form import grouping_from_json, grouping_to_json
from engine.ir.plan import Grouping
from engine.ir.verify_plan import verify_grouping
from engine.runtime.assemble import evaluate_plan
from engine.runtime.inputs import make_inputs
from engine.runtime.reference import evaluate
from engine.vocabulary import Option
from tests.grouping.rewritable import REWRITABLE, deep_matmul, norm_and_linears, stacked
from tests.grouping.test_space import walk

ROOT = Path(__file__).parents[2]
LIMIT_S = 280
KNOBS = tuple(rewrite.knob for rewrite in REWRITES)


def rewritten_paths(space: GroupingSpace) -> list[tuple[Option, ...]]:
    """Every combination of answers to the rewrites, each with the first answers to what follows."""
    found, stack = [], [()]
    while stack:
        path = stack.pop()
        fork = space.fork(path)
        if fork is None:
            found.append(path)
        elif fork.name.rsplit("_", 1)[0] in KNOBS:
            stack += [(*path, option) for option in fork.options]
        else:
            stack.append((*path, fork.options[0]))
    return found


def asked(space: GroupingSpace, path: tuple[Option, ...]) -> list[str]:
    forks = [space.fork(path[:i]) for i in range(len(path))]
    return [fork.name for fork in forks if fork is not None]


@pytest.mark.parametrize("name", REWRITABLE)
def test_every_rewrite_computes_the_graph_as_exactly_as_eager(name: str) -> None:
    graph = REWRITABLE[name]()
    space = grouping_space(graph)
    tensors = make_inputs(graph.input_specs(), 3, "cpu")
    exact, eager = evaluate(graph, tensors), evaluate(graph, tensors, dtype=None)
    paths = rewritten_paths(space)
    assert len(paths) > 1
    for path in paths:
        plan = verify_grouping(space.grouping(path))
        wide = evaluate_plan(plan, tensors, lambda body, given: evaluate(body, given))
        own = evaluate_plan(plan, tensors, lambda body, given: evaluate(body, given, dtype=None))
        for position, want in enumerate(exact):
            torch.testing.assert_close(wide[position], want, rtol=1e-9, atol=1e-9)
            error, allowed = ((value[position].double() - want).norm() for value in (own, eager))
            assert error <= 1.5 * allowed + 1e-6 * want.norm(), str(path)
            assert own[position].dtype == eager[position].dtype


@pytest.mark.parametrize("name", REWRITABLE)
def test_a_rewritten_grouping_comes_back_from_json_and_is_the_same_each_time(name: str) -> None:
    space, other = grouping_space(REWRITABLE[name]()), grouping_space(REWRITABLE[name]())
    for path in rewritten_paths(space):
        plan = space.grouping(path)
        assert plan.decisions == path
        assert grouping_from_json(grouping_to_json(plan)) == plan
        again = other.grouping(path)
        assert again == plan
        assert list(again.kernel_counts()) == list(plan.kernel_counts())


@pytest.mark.timeout(LIMIT_S + 20)
@pytest.mark.slow
def test_kernels_of_rewritten_graphs_match_the_reference() -> None:
    command = [sys.executable, "-m", "tests.grouping.interpreted"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert finished.returncode == 0, finished.stderr[-2000:]
    lines = [json.loads(line) for line in finished.stdout.splitlines()]
    assert [line for line in lines if "problem" in line] == []
    assert {line["graph"] for line in lines} == set(REWRITABLE)
    assert all(line["checked"] > 0 for line in lines)


def test_the_first_answers_leave_the_graph_as_it_is() -> None:
    marked, plain = norm_and_linears(), norm_and_linears(fixed=False)
    first = grouping_space(marked)
    path = walk(first, 0)
    names = [name for name in asked(first, path) if name.rsplit("_", 1)[0] in KNOBS]
    assert names == ["NORM_SCALE_0", "WEIGHT_LAYOUT_0"]
    plan, unmarked = first.grouping(path), _with_first_answers(plain)
    assert plan.prepared == ()
    assert [call.kernel for call in plan.calls] == [call.kernel for call in unmarked.calls]
    assert (plan.buffers, plan.outputs) == (unmarked.buffers, unmarked.outputs)


def _with_first_answers(graph: Graph) -> Grouping:
    space = grouping_space(graph)
    return space.grouping(walk(space, 0))


def test_a_fork_may_have_more_than_two_answers() -> None:
    fork = grouping_space(deep_matmul()).fork(())
    assert fork is not None
    assert [str(option) for option in fork.options] == [
        *("SPLIT_K_0=whole", "SPLIT_K_0=halves", "SPLIT_K_0=quarters", "SPLIT_K_0=eighths")
    ]


@pytest.mark.parametrize("choose", [0, 1])
def test_equal_layers_are_asked_once_and_all_follow(choose: int) -> None:
    one, three = (grouping_space(stacked(layers)) for layers in (1, 3))
    short, long = walk(one, choose), walk(three, choose)
    rewrites = [name for name in asked(three, long) if name.rsplit("_", 1)[0] in KNOBS]
    assert rewrites == [name for name in asked(one, short) if name.rsplit("_", 1)[0] in KNOBS]
    assert len(three.grouping(long).prepared) == 3 * len(one.grouping(short).prepared)


@pytest.mark.parametrize("path", [(("NORM_SCALE_0", "merged"),), (("FUSE_EPILOGUE_0", "fused"),)])
def test_what_answers_no_rewrite_is_refused(path: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(GraphError, match="answers no question"):
        grouping_space(norm_and_linears()).fork((Option(path),))


def test_a_path_that_ends_among_the_rewrites_has_no_grouping() -> None:
    with pytest.raises(GraphError, match="NORM_SCALE_0 open"):
        grouping_space(norm_and_linears()).grouping(())


def test_long_walks_forget_and_find_again() -> None:
    graph = stacked(2)
    space = grouping_space(graph)
    path = walk(space, 1)
    plan = space.grouping(path)
    for choice in range(600):
        space.fork(())
        walk(space, choice % 2)
    assert space.grouping(path) == plan


def test_a_graph_without_weights_asks_no_layout() -> None:
    b = GraphBuilder()
    x, w = (b.input(norm_and_linears().input_specs()[0]) for _ in range(2))
    assert grouping_space(b.build(b.add("add", x, w))).fork(()) is None
