from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from engine.ir import GraphBuilder, TensorSpec
from engine.ir.graph import contiguous_strides
from engine.ir.ops import ARITY, OP_CLASS, OpClass
from engine.runtime.inputs import make_inputs
from engine.runtime.reference import _POINTWISE, evaluate

POINTWISE = sorted(kind for kind, op_class in OP_CLASS.items() if op_class is OpClass.POINTWISE)


def test_every_pointwise_kind_has_a_meaning() -> None:
    assert set(_POINTWISE) | {"cast"} == set(POINTWISE)


@pytest.mark.parametrize("kind", POINTWISE)
def test_every_pointwise_kind_runs_in_both_precisions(kind: str) -> None:
    builder = GraphBuilder()
    dtypes = ["bool" if kind == "where" and i == 0 else "bfloat16" for i in range(ARITY[kind])]
    inputs = [builder.input(TensorSpec.contiguous((3, 4), dtype)) for dtype in dtypes]
    graph = builder.build(builder.add(kind, *inputs, dtype="float16" if kind == "cast" else None))
    tensors = make_inputs(graph.input_specs(), 1, "cpu")
    (eager,) = evaluate(graph, tensors, dtype=None)
    (exact,) = evaluate(graph, tensors)
    assert str(eager.dtype) == f"torch.{graph.output_specs()[0].dtype}"
    assert exact.dtype == (torch.float64 if eager.dtype.is_floating_point else eager.dtype)
    torch.testing.assert_close(eager.double(), exact.double(), rtol=2e-2, atol=1e-2, equal_nan=True)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("gelu", F.gelu), ("silu", F.silu), ("relu", F.relu), ("tanh", torch.tanh)],
)
def test_kind_means_what_torch_means(kind: str, expected: Callable[[torch.Tensor], torch.Tensor]) -> None:
    builder = GraphBuilder()
    graph = builder.build(builder.add(kind, builder.input(TensorSpec.contiguous((50,), "float32"))))
    (x,) = make_inputs(graph.input_specs(), 1, "cpu")
    assert torch.equal(evaluate(graph, [x], dtype=None)[0], expected(x))


def test_matmul_and_reduction_keep_the_dtypes_of_the_graph() -> None:
    builder = GraphBuilder()
    x, w = (builder.input(TensorSpec.contiguous(shape, "bfloat16")) for shape in ((4, 8), (8, 6)))
    product = builder.add("matmul", x, w)
    total = builder.add("sum", product, axes=(1,), dtype="float32")
    graph = builder.build(product, total)
    tensors = make_inputs(graph.input_specs(), 1, "cpu")
    eager, summed = evaluate(graph, tensors, dtype=None)
    assert torch.equal(eager, tensors[0] @ tensors[1])
    assert torch.equal(summed, eager.sum(1, keepdim=True, dtype=torch.float32))
    exact, _ = evaluate(graph, tensors)
    assert torch.equal(exact, tensors[0].double() @ tensors[1].double())


def test_float64_evaluation_rounds_at_no_cast() -> None:
    builder = GraphBuilder()
    x = builder.input(TensorSpec.contiguous((32,), "float64"))
    back = builder.add("cast", builder.add("cast", x, dtype="float16"), dtype="float64")
    graph = builder.build(back)
    (drawn,) = make_inputs(graph.input_specs(), 1, "cpu")
    assert torch.equal(evaluate(graph, [drawn])[0], drawn)
    assert torch.equal(evaluate(graph, [drawn], dtype=None)[0], drawn.half().double())


def test_views_reread_the_storage_of_inputs_and_of_values() -> None:
    builder = GraphBuilder()
    x = builder.input(TensorSpec((4, 6), "float32", (10, 1), 2))
    turned = builder.view(builder.view(x, (6, 4), (1, 10)), (3, 4), (2, 10), 3)
    doubled = builder.add("add", x, x)
    part = builder.view(doubled, (2, 3), contiguous_strides((2, 6)), 6)
    graph = builder.build(builder.add("copy", turned), part)
    (drawn,) = make_inputs(graph.input_specs(), 1, "cpu")
    copied, half = evaluate(graph, [drawn], dtype=None)
    assert torch.equal(copied, drawn.T[1::2])
    assert torch.equal(half, (drawn + drawn)[1:3, :3])


def test_tensor_at_another_offset_of_its_storage_is_read_where_it_is() -> None:
    builder = GraphBuilder()
    x = builder.input(TensorSpec.contiguous((2, 3), "float32"))
    graph = builder.build(builder.add("copy", builder.view(x, (3, 2), (1, 3))))
    storage = torch.arange(20.0)
    given = storage.as_strided((2, 3), (3, 1), 7)
    assert torch.equal(evaluate(graph, [given], dtype=None)[0], given.T)


def test_number_lifts_no_dtype() -> None:
    builder = GraphBuilder()
    x = builder.input(TensorSpec.contiguous((16,), "bfloat16"))
    graph = builder.build(builder.add("mul", x, builder.constant(0.1)))
    (drawn,) = make_inputs(graph.input_specs(), 1, "cpu")
    (eager,) = evaluate(graph, [drawn], dtype=None)
    assert eager.dtype == torch.bfloat16
    assert torch.equal(eager, drawn * 0.1)


def test_inputs_are_left_alone() -> None:
    builder = GraphBuilder()
    x = builder.input(TensorSpec.contiguous((16,), "float32"))
    graph = builder.build(builder.add("relu", x), x)
    (drawn,) = make_inputs(graph.input_specs(), 1, "cpu")
    kept = drawn.clone()
    evaluate(graph, [drawn])
    assert torch.equal(drawn, kept)
