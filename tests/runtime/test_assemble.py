"""A plan's reference follows its buffers and views, and buffers look as their specs say."""

from __future__ import annotations

import torch

from engine.ir.builder import GraphBuilder
from engine.ir.extern import arguments_to_json
from engine.ir.graph import TensorSpec
from engine.ir.kernel import Kernel
from engine.ir.plan import BufferView, Grouping, KernelCall, Preparation
from engine.runtime import evaluate
from engine.runtime.assemble import assemble_plan, empty_buffer, evaluate_plan, view_buffer
from engine.runtime.interpret import interpret_plan


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


def prepared_alone() -> Grouping:
    """A plan whose output is computed from its second input once, in bfloat16."""
    spec = TensorSpec.contiguous((4,), "bfloat16")
    build = GraphBuilder()
    body = build.build(build.add("mul", build.input(spec), build.constant(1 / 3)))
    step = Preparation(body, (BufferView(1, spec),), (2,))
    return Grouping((spec, spec, spec), (), (BufferView(2, spec),), prepared=(step,))


def test_what_is_prepared_is_there_before_the_first_launch_and_follows_other_inputs() -> None:
    x, w = torch.zeros(4, dtype=torch.bfloat16), torch.tensor([1.0, 2.0, 3.0, 5.0], dtype=torch.bfloat16)
    plan = assemble_plan(prepared_alone(), {}, (x, w))
    (out,) = plan.outputs
    assert torch.equal(out, w * (1 / 3))
    assert plan.written == ()
    w.fill_(7.0)
    plan.launch()
    assert out[0] != w[0] * (1 / 3)
    plan.prepare()
    assert torch.equal(out, w * (1 / 3))


def test_a_plan_is_evaluated_with_what_it_prepares() -> None:
    w = torch.rand(4).bfloat16()
    (found,) = evaluate_plan(prepared_alone(), [w, w], lambda graph, tensors: evaluate(graph, tensors))
    assert torch.equal(found, w.double() * (1 / 3))


def test_a_library_call_runs_where_the_plan_wants_its_result() -> None:
    b = GraphBuilder()
    spec = TensorSpec.contiguous((4, 8), "float32")
    call = arguments_to_json([{"tensor": 0}, 1], {})
    kernel = Kernel("extern", b.build(b.extern("aten.cumsum.default", (b.input(spec),), call, spec)))
    calls = (KernelCall(kernel, (BufferView(0, spec),), (1,)), KernelCall(kernel, (BufferView(1, spec),), (2,)))
    x = torch.randn(4, 8)
    plan = assemble_plan(Grouping((spec, spec, spec), calls, (BufferView(2, spec),)), {}, [x])
    for out in plan.written:
        out.fill_(float("nan"))
    plan.launch()
    assert torch.equal(plan.outputs[0], x.cumsum(1).cumsum(1))
    x.mul_(2)
    plan.launch()
    assert torch.equal(plan.outputs[0], x.cumsum(1).cumsum(1)), "bound to the tensors, not to their values"


def test_a_library_call_that_gives_a_part_of_its_input_back_is_read_where_it_lies() -> None:
    b = GraphBuilder()
    there, out = TensorSpec((1, 5), "float32", (5, 1), 3), TensorSpec.contiguous((1,), "float32")
    call = arguments_to_json([{"tensor": 0}, 0, -2, -1], {})
    kernel = Kernel("extern", b.build(b.extern("aten.diagonal.default", (b.input(there),), call, out)))
    grouping = Grouping((there, out), (KernelCall(kernel, (BufferView(0, there),), (1,)),), (BufferView(1, out),))
    x = torch.arange(8.0)[3:].view(1, 5)
    plan = assemble_plan(grouping, {}, [x])
    plan.launch()
    evaluated = evaluate_plan(grouping, [x], lambda graph, tensors: evaluate(graph, tensors))
    for (found,) in (plan.outputs, evaluated, interpret_plan(grouping, {}, [x])):
        assert found.tolist() == [3.0]
