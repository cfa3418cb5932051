"""A plan's reference follows its buffers and views, and buffers look as their specs say."""

from __future__ import annotations

import torch

from engine.ir.builder import GraphBuilder
from engine.ir.graph import TensorSpec
from engine.ir.kernel import Kernel
from engine.ir.plan import BufferView, Grouping, KernelCall
from engine.runtime import evaluate
from engine.runtime.assemble import empty_buffer, evaluate_plan, view_buffer


def exp_kernel(spec: TensorSpec) -> Kernel:
    build = GraphBuilder()
    return Kernel("pointwise", build.build(build.add("exp", build.input(spec))))


def test_a_plan_is_evaluated_through_its_views() -> None:
    whole = TensorSpec.contiguous((4, 6), "float32")
    turned = TensorSpec((6, 4), "float32", (1, 6))
    first, second = exp_kernel(whole), exp_kernel(turned)
    out = TensorSpec.contiguous((6, 4), "float32")
    grouping = Grouping(
        (whole, whole, out),
        (KernelCall(first, (BufferView(0, whole),), (1,)), KernelCall(second, (BufferView(1, turned),), (2,))),
        (BufferView(2, TensorSpec((4, 6), "float32", (1, 4))),),
    )
    x = torch.rand((4, 6))
    (found,) = evaluate_plan(grouping, [x], lambda graph, tensors: evaluate(graph, tensors))
    assert torch.equal(found, x.double().exp().exp())


def test_a_buffer_has_the_layout_of_its_spec() -> None:
    spec = TensorSpec((3, 4), "bfloat16", (8, 2), 5)
    buffer = empty_buffer(spec, "cpu")
    assert (tuple(buffer.shape), buffer.stride(), buffer.storage_offset()) == ((3, 4), (8, 2), 5)
    assert buffer.untyped_storage().nbytes() == 2 * spec.storage_elements
    assert empty_buffer(TensorSpec.contiguous((0, 4), "float32"), "cpu").shape == (0, 4)


def test_a_view_starts_at_the_storage() -> None:
    buffer = torch.arange(12.0).view(3, 4)
    view = view_buffer({0: buffer}, BufferView(0, TensorSpec((2,), "float32", (4,), 1)))
    assert view.tolist() == [1.0, 5.0]
