"""Kinds that make or move elements: iota, roll, cat, gather, and calls of ATen ops."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from engine.ir import Graph, GraphBuilder, GraphError, Kernel, Op, TensorSpec, verify
from engine.ir.extern import EXTERN_OPS, arguments_to_json, read_arguments
from engine.ir.json_form import graph_from_json, graph_to_json, program_from_json, program_to_json
from engine.ir.measures import count_flops
from engine.ir.plan import Program
from engine.ir.verify_plan import verify_kernel
from tests.ir.graphs import contiguous

X = contiguous((4, 6), "float32")
POOL = "aten.avg_pool2d.default"
POOLED = arguments_to_json([{"tensor": 0}, [2, 2]], {})


def moving() -> Graph:
    b = GraphBuilder()
    table, index = b.input(contiguous((9, 6), "float32"), "table"), b.input(contiguous((4,), "int64"), "index")
    rows = b.add("gather", table, index)
    positions = b.iota(6, axis=1, rank=2)
    sign = b.add("where", b.add("lt", positions, b.constant(3)), b.constant(-1.0), b.constant(1.0))
    turned = b.add("mul", b.add("roll", rows, axis=1, shift=3), sign)
    return b.build(b.add("cat", rows, turned, axis=0))


def called(arguments: str = POOLED, op: str = POOL, inputs: int = 1) -> Graph:
    b = GraphBuilder()
    image = b.input(contiguous((1, 3, 8, 8), "float32"))
    return b.build(b.extern(op, (image,) * inputs, arguments, contiguous((1, 3, 4, 4), "float32")))


def one(op: Op, *specs: TensorSpec) -> Graph:
    inputs = tuple(Op("input", (), spec) for spec in specs)
    return Graph((*inputs, op), tuple(range(len(inputs))), (len(inputs),))


def test_results_follow_from_inputs() -> None:
    b = GraphBuilder()
    x = b.input(X)
    assert b.spec(b.add("roll", x, axis=1, shift=2)) == X
    assert b.spec(b.add("cat", x, x, x, axis=0)) == contiguous((12, 6), "float32")
    assert b.spec(b.add("cat", x, b.input(contiguous((4, 1), "float32")), axis=1)) == contiguous((4, 7), "float32")
    assert b.spec(b.iota(5, axis=1, rank=3)) == contiguous((1, 5, 1), "int64")
    index = b.input(contiguous((2, 3), "int32"))
    assert b.spec(b.add("gather", x, index)) == contiguous((2, 3, 6), "float32")
    assert b.iota(5) == b.iota(5)
    assert b.iota(5) != b.iota(5, dtype="int32")


@pytest.mark.parametrize("graph", [moving(), called()])
def test_json_gives_the_same_graph_back(graph: Graph) -> None:
    assert graph_from_json(graph_to_json(graph)) == graph


AXIS = ("axis", 1)
BAD = [
    (Op("roll", (0,), X, (AXIS,)), (X,), "attributes"),
    (Op("roll", (0,), X, (AXIS, ("shift", -1))), (X,), "attributes"),
    (Op("roll", (0,), X, (AXIS, ("shift", True))), (X,), "attributes"),
    (Op("roll", (0,), X, (AXIS, ("shift", 6))), (X,), "below the extent"),
    (Op("roll", (0,), X, (("axis", 2), ("shift", 0))), (X,), "roll by 0 along axis 2"),
    (Op("roll", (0,), replace(X, dtype="float16"), (AXIS, ("shift", 1))), (X,), "not .4, 6. float32"),
    (Op("cat", (0,), X, (AXIS,)), (X,), "takes 2 to"),
    (Op("cat", (0, 0), X, (AXIS,)), (X,), "not .4, 12. float32"),
    (Op("cat", (0, 1), X, (AXIS,)), (X, contiguous((5, 6), "float32")), "don't join along axis 1"),
    (Op("cat", (0, 1), X, (AXIS,)), (X, replace(X, dtype="float16")), "joins float32, float16"),
    (Op("cat", (0, 0), X, ()), (X,), "attributes"),
    (Op("gather", (0, 1), X), (X, contiguous((4,), "float32")), "index of dtype float32"),
    (Op("gather", (0, 1), X), (X, contiguous((5,), "int64")), "not .5, 6. float32"),
    (Op("gather", (0, 0), contiguous((), "int64")), (contiguous((), "int64"),), "table without axes"),
    (Op("iota", (), contiguous((1, 6), "float32"), (AXIS,)), (), "counts in int64 or int32"),
    (Op("iota", (), contiguous((2, 6), "int64"), (AXIS,)), (), "counts along axis 1"),
    (Op("iota", (), contiguous((6,), "int64"), (AXIS,)), (), "counts along axis 1"),
    (Op("iota", (0,), contiguous((6,), "int64"), (("axis", 0),)), (X,), "takes 0 inputs"),
]


@pytest.mark.parametrize(("op", "specs", "sentence"), BAD)
def test_a_bad_op_is_one_sentence(op: Op, specs: tuple[TensorSpec, ...], sentence: str) -> None:
    with pytest.raises(GraphError, match=sentence) as raised:
        verify(one(op, *specs))
    assert re.match(r"op \d+ \(\w+\): ", str(raised.value))


@pytest.mark.parametrize(
    ("op", "arguments", "inputs", "sentence"),
    [
        ("os.system", POOLED, 1, "not in the list"),
        ("aten.set_.source_Storage", POOLED, 1, "not in the list"),
        (POOL, POOLED, 2, "has 2 inputs"),
        (POOL, arguments_to_json([{"tensor": 1}, [2, 2]], {}), 1, "has 1 inputs"),
        (POOL, arguments_to_json([{"tensor": -1}], {}), 1, "has 1 inputs"),
        (POOL, arguments_to_json([{"tensor": True}], {}), 1, "neither a tensor nor a dtype"),
        (POOL, arguments_to_json([{"tensor": 0}, {"dtype": "float8"}], {}), 1, "neither a tensor nor a dtype"),
        (POOL, arguments_to_json([{"tensor": 0}, "rm"], {}), 1, "no op of the list takes this text"),
        (POOL, arguments_to_json([{"tensor": 0}], {"out": {"tensor": 0}}), 1, "writes or draws"),
        (POOL, arguments_to_json([[[[[[{"tensor": 0}]]]]]], {}), 1, "nested too deeply"),
        (POOL, POOLED.replace(":", ": "), 1, "canonical"),
        (POOL, '{"args":{},"kwargs":{}}', 1, "no list and names"),
        (POOL, "[", 1, "no JSON"),
        (POOL, arguments_to_json([{"tensor": 0}, [1] * 4096], {}), 1, "canonical"),
    ],
    ids=range(14),
)
def test_a_call_outside_the_list_is_refused(op: str, arguments: str, inputs: int, sentence: str) -> None:
    with pytest.raises(GraphError, match=sentence):
        called(arguments, op, inputs)


def test_arguments_come_back_and_have_one_text() -> None:
    args, kwargs = [{"tensor": 0}, None, 2.5, [1, [2, True]]], {"dtype": {"dtype": "float32"}, "axis": -1}
    text = arguments_to_json(args, kwargs)
    assert read_arguments(text) == (args, kwargs)
    assert text == arguments_to_json(args, dict(reversed(kwargs.items())))
    with pytest.raises(GraphError, match="can't be written down"):
        arguments_to_json([object()], {})


def test_the_key_tells_moves_apart() -> None:
    def key(shift: int) -> str:
        b = GraphBuilder()
        return Kernel("pointwise", b.build(b.add("roll", b.input(X), axis=1, shift=shift))).key

    assert key(1) == key(1)
    assert key(1) != key(2)
    ceiling = arguments_to_json([{"tensor": 0}, [2, 2], [], [0, 0], True], {})
    assert Kernel("extern", called()).key != Kernel("extern", called(ceiling)).key


def test_only_an_extern_kernel_calls_and_it_calls_once() -> None:
    assert verify_kernel(Kernel("extern", called()))
    with pytest.raises(GraphError, match="1 calls"):
        verify_kernel(Kernel("pointwise", called()))
    with pytest.raises(GraphError, match="0 calls"):
        verify_kernel(Kernel("extern", moving()))
    assert verify_kernel(Kernel("pointwise", moving()))


def test_a_convolution_counts_its_products() -> None:
    b = GraphBuilder()
    image, weight = b.input(contiguous((2, 3, 8, 8), "float32")), b.input(contiguous((5, 3, 3, 3), "float32"))
    one_side = [1, 1]
    arguments = arguments_to_json(
        [{"tensor": 0}, {"tensor": 1}, None, one_side, [0, 0], one_side, False, [0, 0], 1], {}
    )
    out = contiguous((2, 5, 6, 6), "float32")
    graph = b.build(b.extern("aten.convolution.default", (image, weight), arguments, out))
    assert count_flops(graph) == 2 * out.numel * 27
    assert "aten.convolution.default" in EXTERN_OPS


def test_notes_of_a_program_are_kept_and_printable() -> None:
    program = Program(moving(), "f(x)", "cuda", ("The weights are random.",))
    assert program_from_json(program_to_json(program)) == program
    assert "notes" not in program_to_json(replace(program, notes=()))
    with pytest.raises(GraphError, match="printable"):
        program_from_json(program_to_json(replace(program, notes=("\x1b[2J",))))
