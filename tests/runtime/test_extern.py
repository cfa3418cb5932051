"""Kinds that make or move elements, and calls of ATen ops, against torch."""

from __future__ import annotations

import pytest
import torch

from engine.ir import GraphBuilder, GraphError, Op, TensorSpec
from engine.ir.extern import EXTERN_OPS, arguments_to_json
from engine.runtime.extern import _resolve, call_extern
from engine.runtime.reference import evaluate

contiguous = TensorSpec.contiguous


@pytest.mark.parametrize("dtype", [None, torch.float64])
def test_moving_kinds_mean_what_torch_means(dtype: torch.dtype | None) -> None:
    b = GraphBuilder()
    table = b.input(contiguous((9, 6), "bfloat16"))
    index = b.input(contiguous((2, 4), "int32"))
    rows = b.add("gather", table, index)
    rolled = b.add("roll", rows, axis=2, shift=2)
    joined = b.add("cat", rows, rolled, axis=1)
    graph = b.build(rows, rolled, joined, b.iota(5, axis=1, rank=3, dtype="int32"))
    t = torch.randn(9, 6, dtype=torch.bfloat16)
    i = torch.randint(0, 9, (2, 4), dtype=torch.int32)
    wide = t if dtype is None else t.to(dtype)
    taken = torch.nn.functional.embedding(i, wide)
    i[0, 0] -= 9
    i[1, 1] += 18
    found = evaluate(graph, [t, i], dtype=dtype)
    wanted = [taken, torch.roll(taken, -2, 2), torch.cat([taken, torch.roll(taken, -2, 2)], 1)]
    for mine, theirs in zip(found, wanted, strict=False):
        assert torch.equal(mine, theirs)
    assert torch.equal(found[3], torch.arange(5, dtype=torch.int32).view(1, 5, 1))


def test_every_op_of_the_list_exists() -> None:
    """By name; in a torch that lacks one, a program can't hold it."""
    assert all(callable(_resolve(name)) for name in EXTERN_OPS)


def cumsum(dtype: str, shape: tuple[int, ...] = (3, 4), axis: int = 1) -> Op:
    arguments = arguments_to_json([{"tensor": 0}, axis], {"dtype": {"dtype": dtype}})
    attributes = (("arguments", arguments), ("op", "aten.cumsum.default"))
    return Op("extern", (0,), contiguous(shape, dtype), attributes)


def test_a_call_runs_in_its_own_and_in_higher_precision() -> None:
    x = torch.randn(3, 4, dtype=torch.bfloat16)
    assert torch.equal(call_extern(cumsum("bfloat16"), [x]), x.cumsum(1))
    assert call_extern(cumsum("bfloat16"), [x.double()], torch.float64).dtype == torch.float64
    b = GraphBuilder()
    op = cumsum("bfloat16")
    graph = b.build(b.extern(op.attribute("op"), (b.input(op.out),), op.attribute("arguments"), op.out))
    assert torch.equal(evaluate(graph, [x])[0], x.double().cumsum(1))
    assert torch.equal(evaluate(graph, [x], dtype=None)[0], x.cumsum(1))


@pytest.mark.parametrize(
    ("op", "sentence"),
    [
        (cumsum("float32", (4, 3)), "doesn't give shape"),
        (cumsum("float32", axis=7), "can't be called so"),
        (Op("extern", (0,), contiguous((3, 4), "float32"), (("arguments", "{}"), ("op", "os.system"))), "not in the"),
    ],
)
def test_a_call_that_can_not_be_is_one_sentence(op: Op, sentence: str) -> None:
    with pytest.raises(GraphError, match=sentence) as raised:
        call_extern(op, [torch.randn(3, 4)])
    assert "\n" not in str(raised.value)


def test_a_product_wider_than_its_operands_is_not_rounded_to_them() -> None:
    b = GraphBuilder()
    x, w = (b.input(contiguous(shape, "bfloat16")) for shape in ((4, 32), (32, 6)))
    graph = b.build(b.add("matmul", x, w, dtype="float32"))
    a, c = torch.randn(4, 32).bfloat16(), torch.randn(32, 6).bfloat16()
    assert torch.equal(evaluate(graph, [a, c], dtype=None)[0], a.float() @ c.float())


def test_a_call_with_several_results_says_which() -> None:
    x = torch.randn(3, 4)
    text = arguments_to_json([{"tensor": 0}, 1, False], {})
    for place, right in enumerate(torch.sort(x, 1)):
        b = GraphBuilder()
        spec = contiguous((3, 4), str(right.dtype).removeprefix("torch."))
        graph = b.build(b.extern("aten.sort.default", (b.input(contiguous((3, 4), "float32")),), text, spec, place))
        assert torch.equal(evaluate(graph, [x], dtype=None)[0], right)
    for wrong in ((("result", 2),), ()):
        attributes = (("arguments", text), ("op", "aten.sort.default"), *wrong)
        with pytest.raises(GraphError, match="doesn't give shape"):
            call_extern(Op("extern", (0,), contiguous((3, 4), "float32"), attributes), [x])
    b = GraphBuilder()
    missing = b.extern("aten.sort.default", (b.input(contiguous((3, 4), "float32")),), text, spec, -1)
    with pytest.raises(GraphError, match="ill-typed"):
        b.build(missing)
