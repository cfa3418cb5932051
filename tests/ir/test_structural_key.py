from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.ir import Graph, GraphBuilder, Op, TensorSpec
from engine.ir.json_form import graph_to_json
from engine.ir.structural_key import canonical_form, canonical_numbers, structural_key
from tests.ir.graphs import contiguous, linear_gelu, random_graphs, softmax

ROOT = Path(__file__).parents[2]


def rewritten(graph: Graph, seed: int) -> Graph:
    """The same graph with its ops, inputs, outputs and commutative operands in another order, and other labels."""
    rng = random.Random(seed)
    waiting = {i: set(op.inputs) for i, op in enumerate(graph.ops)}
    order: list[int] = []
    while waiting:
        ready = sorted(i for i, needs in waiting.items() if needs <= set(order))
        order.append(rng.choice(ready))
        del waiting[order[-1]]
    where = {old: new for new, old in enumerate(order)}
    ops = []
    for old in order:
        op = graph.ops[old]
        inputs = [where[i] for i in op.inputs]
        if op.kind in ("add", "mul", "maximum", "minimum") and rng.random() < 0.5:
            inputs.reverse()
        ops.append(replace(op, inputs=tuple(inputs)))
    inputs, outputs = ([where[i] for i in ends] for ends in (graph.inputs, graph.outputs))
    rng.shuffle(inputs)
    rng.shuffle(outputs)
    return Graph(tuple(ops), tuple(inputs), tuple(outputs), tuple(f"other{i}" for i in inputs))


@settings(max_examples=150, deadline=None)
@given(random_graphs(), st.integers(0, 2**32))
def test_the_order_in_which_a_body_is_written_is_no_part_of_its_key(graph: Graph, seed: int) -> None:
    assert structural_key("f", rewritten(graph, seed)) == structural_key("f", graph)


@pytest.mark.parametrize("seed", range(24))
def test_inputs_that_nothing_tells_apart_may_be_outputs_too(seed: int) -> None:
    builder = GraphBuilder()
    a, b, c = (builder.input(contiguous((4, 6), "float32")) for _ in range(3))
    graph = builder.build(a, b, c, builder.add("add", a, b), builder.add("mul", builder.add("add", a, b), c))
    assert structural_key("f", rewritten(graph, seed)) == structural_key("f", graph)


def test_a_key_is_24_hex_digits() -> None:
    key = structural_key("contraction", linear_gelu())
    assert len(key) == 24
    assert int(key, 16) >= 0


def test_whatever_changes_the_time_or_the_meaning_changes_the_key() -> None:
    bodies = [
        linear_gelu(),
        linear_gelu(rows=16),
        linear_gelu(dtype="float16"),
        softmax(),
        replace(softmax(), outputs=(1,)),
        *_small_bodies(),
    ]
    keys = {structural_key("rowwise", body) for body in bodies} | {structural_key("other", bodies[0])}
    assert len(keys) == len(bodies) + 1


def _small_bodies() -> list[Graph]:
    found = []
    for shared, kind, number, tf32 in (
        (True, "add", 1.0, False),
        (False, "sub", 2.0, False),
        (False, "add", 1.0, True),
    ):
        b = GraphBuilder()
        x, y = (b.input(contiguous((4, 4), "float32")) for _ in range(2))
        other = x if shared else y
        found.append(b.build(b.add(kind, b.add("mul", x, b.constant(number)), other), y))
        found.append(b.build(b.add("matmul", x, other, allow_tf32=tf32)))
    b = GraphBuilder()
    x = b.input(contiguous((4, 4), "float32"))
    found.append(b.build(b.add("sum", x, axes=(1,))))
    found.append(b.build(b.add("sum", x, axes=(0, 1))))
    return found


def _copy_of(spec: TensorSpec) -> Graph:
    b = GraphBuilder()
    return b.build(b.add("relu", b.input(spec)))


def test_strides_count_but_not_those_of_an_axis_of_one_element() -> None:
    plain = structural_key("pointwise", _copy_of(TensorSpec((4, 1, 6), "float32", (6, 6, 1))))
    assert structural_key("pointwise", _copy_of(TensorSpec((4, 1, 6), "float32", (6, 999, 1)))) == plain
    assert structural_key("pointwise", _copy_of(TensorSpec((4, 1, 6), "float32", (8, 6, 1)))) != plain


def test_of_an_offset_only_the_alignment_counts() -> None:
    def key(offset: int) -> str:
        return structural_key("pointwise", _copy_of(TensorSpec((4, 6), "float32", (6, 1), offset)))

    assert key(4) == key(0) == key(400)
    assert key(1) != key(0)
    assert key(1) != key(2)


def test_equal_ops_written_twice_count_once() -> None:
    x, y = contiguous((4, 4), "float32"), contiguous((4, 4), "float32")
    twice = Graph((Op("input", (), x), Op("exp", (0,), y), Op("exp", (0,), y), Op("add", (1, 2), y)), (0,), (3,))
    once = Graph((Op("input", (), x), Op("exp", (0,), y), Op("add", (1, 1), y)), (0,), (2,))
    assert structural_key("pointwise", twice) == structural_key("pointwise", once)


@pytest.mark.parametrize("hash_seed", ["0", "1", "12345"])
def test_another_process_gives_the_same_key(hash_seed: str, tmp_path: Path) -> None:
    body = linear_gelu()
    code = (
        "import sys; from engine.ir.json_form import graph_from_json;"
        "from engine.ir.structural_key import structural_key;"
        "print(structural_key('contraction', graph_from_json(sys.stdin.read())))"
    )
    child = subprocess.run(
        [sys.executable, "-c", code],
        input=graph_to_json(body),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
    )
    assert child.stdout.strip() == structural_key("contraction", body)


@settings(max_examples=60, deadline=None)
@given(random_graphs(), st.integers(0, 1000))
def test_canonical_numbers_say_which_op_is_which(graph: Graph, seed: int) -> None:
    other = rewritten(graph, seed)
    own, found = canonical_numbers(graph), canonical_numbers(other)
    assert canonical_form("f", graph) == canonical_form("f", other)
    assert set(own.values()) == set(found.values())
    by_number = {number: other.ops[index] for index, number in found.items()}
    for index, number in own.items():
        op = graph.ops[index]
        assert (op.kind, op.out.shape, op.out.dtype) == (
            by_number[number].kind,
            by_number[number].out.shape,
            by_number[number].out.dtype,
        )
    assert {own[i] for i in graph.outputs} == {found[i] for i in other.outputs}
