"""A case's data can be replaced, verified and restored, and its limits come from eager in the same dtype."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from engine.grouping import grouping_space
from engine.ir.builder import GraphBuilder
from engine.ir.graph import TensorSpec
from engine.ir.kernel import Kernel
from engine.measure.gate import Deviation, less_exact_than_eager, tolerance
from engine.runtime import elsewhere, is_intact, overwrite_inputs, prepare_case, references_for, repair
from engine.runtime.cases import Case, Deviations, prepare_plan_case
from engine.runtime.comparison import GARBAGE_BYTE, NAN_BYTE, compare
from tests.grouping.rewritable import stored_weights

CPU = torch.device("cpu")


def widened(case: Case) -> Deviations:
    """Eager's deviations, or what rounding moves the references by where that is more."""
    pairs = zip(case.eager, case.rounding(), strict=True)
    return tuple((max(norm, moved), max(worst, most)) for (norm, worst), (moved, most) in pairs)


def matmul(dtype: str) -> Kernel:
    build = GraphBuilder()
    x = build.input(TensorSpec((24, 32), dtype, (40, 1), 3))
    w = build.input(TensorSpec.contiguous((32, 16), dtype))
    return Kernel("contraction", build.build(build.add("matmul", x, w, allow_tf32=False)))


@pytest.mark.parametrize(("dtype", "low", "high"), [("float32", 1e-9, 1e-6), ("bfloat16", 1e-4, 1e-2)])
def test_eager_in_the_same_dtype_sets_the_scale(dtype: str, low: float, high: float) -> None:
    case = prepare_case(matmul(dtype), 0, CPU)
    assert case.references[0].dtype is torch.float64
    assert low < case.eager[0][0] < high
    assert case.outputs[0].shape == (24, 16)
    assert case.poison_byte == NAN_BYTE
    assert case.prepare_s > 0


def test_inputs_are_replaced_in_place_and_restored() -> None:
    case = prepare_case(matmul("float32"), 0, CPU)
    before, addresses = case.inputs[0].clone(), [tensor.data_ptr() for tensor in case.inputs]
    overwrite_inputs(case, 1)
    assert not torch.equal(case.inputs[0], before)
    assert not torch.equal(references_for(case)[0], case.references[0])
    overwrite_inputs(case, 0)
    assert torch.equal(case.inputs[0], before)
    assert [tensor.data_ptr() for tensor in case.inputs] == addresses


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_a_case_is_intact_as_it_is_prepared(dtype: str) -> None:
    """What asks how far the answer moves with its inputs moves copies of them, of every dtype."""
    case = prepare_case(matmul(dtype), 0, CPU)
    case.rounding()
    assert is_intact(case)


def test_elsewhere_the_same_inputs_lie_in_other_places() -> None:
    case = prepare_case(matmul("float32"), 0, CPU)
    inputs, outputs = elsewhere(case)
    for old, new in zip((*case.inputs, *case.outputs), (*inputs, *outputs), strict=True):
        assert new.data_ptr() != old.data_ptr()
        assert (new.shape, new.stride(), new.dtype) == (old.shape, old.stride(), old.dtype)
    assert all(map(torch.equal, case.inputs, inputs))


@pytest.mark.parametrize("where", ["input", "reference"])
def test_damage_is_noticed_and_repaired(where: str) -> None:
    case = prepare_case(matmul("float32"), 0, CPU)
    assert is_intact(case)
    (case.inputs if where == "input" else case.references)[0][2, 2] = 7.0
    assert not is_intact(case)
    repair(case)
    assert is_intact(case)


def test_a_reference_with_nan_is_poisoned_with_numbers() -> None:
    build = GraphBuilder()
    x = build.input(TensorSpec.contiguous((64,), "float32"))
    case = prepare_case(Kernel("pointwise", build.build(build.add("log", x))), 0, CPU)
    assert case.poison_byte == GARBAGE_BYTE
    assert is_intact(case)


def test_a_reference_that_is_a_view_of_an_input_survives_new_inputs() -> None:
    build = GraphBuilder()
    x = build.input(TensorSpec.contiguous((8, 8), "float64"))
    case = prepare_case(Kernel("pointwise", build.build(build.add("cast", x, dtype="float64"))), 0, CPU)
    before = case.references[0].clone()
    overwrite_inputs(case, 1)
    assert torch.equal(case.references[0], before)


def test_a_plan_that_prepares_is_checked_on_its_programs_inputs_alone() -> None:
    graph = stored_weights()
    space = grouping_space(graph)
    path = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[-1])
    plan = space.grouping(path)
    told: list[int] = []
    by_kernels, by_program = (prepare_plan_case(plan, program, 0, CPU) for program in (None, graph))
    assert by_kernels.specs == graph.input_specs()
    torch.testing.assert_close(by_kernels.references, by_program.references)
    overwrite_inputs(replace(by_program, prepare=lambda: told.append(1)), 1)
    assert told == [1]


def test_what_rounding_moves_is_not_held_against_a_kernel() -> None:
    """1 / root of a mean that nearly cancels: that eager is near by luck is no limit for others; else it is eager's."""
    builder = GraphBuilder()
    rows = builder.input(TensorSpec.contiguous((64, 64), "float32"))
    mean = builder.add("mean", rows, axes=(1,))
    singular = Kernel("rowwise", builder.build(builder.add("rsqrt", builder.add("abs", mean))))
    plain = GraphBuilder()
    doubled = plain.add("add", *(2 * [plain.input(TensorSpec.contiguous((64, 64), "float32"))]))
    assert prepare_case(singular, 0, CPU).rounding()[0][0] > 5e-7
    assert prepare_case(Kernel("pointwise", plain.build(doubled)), 0, CPU).rounding()[0][0] < 3e-7


@pytest.mark.parametrize("seed", range(20))
def test_the_limit_is_asked_only_where_eager_alone_would_refuse(seed: int) -> None:
    """Then it is that of inputs that nothing has written to, whatever became of the case's own."""
    builder = GraphBuilder()
    rows = builder.input(TensorSpec.contiguous((64, 64), "float32"))
    mean = builder.add("mean", rows, axes=(1,))
    kernel = Kernel("rowwise", builder.build(builder.add("rsqrt", builder.add("abs", mean))))
    untouched, case = prepare_case(kernel, seed, CPU), prepare_case(kernel, seed, CPU)
    asked: list[int] = []

    def rounding() -> Deviations:
        asked.append(1)
        return case.rounding()

    assert less_exact_than_eager(case.eager, case.eager, ["torch.float32"], rounding) is None
    assert less_exact_than_eager([(math.nan, 0.0)], case.eager, ["torch.float32"], rounding) is not None
    assert asked == []
    for tensor in (*case.inputs, *case.references):
        tensor.fill_(3.0)
    far = [(1.0, 1.0)]
    failure = less_exact_than_eager(far, case.eager, ["torch.float32"], rounding)
    assert failure == less_exact_than_eager(far, widened(untouched), ["torch.float32"])
    assert asked == [1]
    just = [(4 * norm, 4 * worst) for norm, worst in widened(untouched)]
    assert less_exact_than_eager(just, case.eager, ["torch.float32"], rounding) is None


@pytest.mark.parametrize("seed", range(20))
def test_a_sum_may_be_taken_in_any_order(seed: int) -> None:
    """The root of what nearly cancels differs with the order of summation: no order is refused for eager's luck."""
    builder = GraphBuilder()
    rows = builder.input(TensorSpec.contiguous((500, 64), "float32"))
    mean = builder.add("mean", rows, axes=(1,))
    case = prepare_case(Kernel("rowwise", builder.build(builder.add("rsqrt", builder.add("abs", mean)))), seed, CPU)
    ((norm, worst),) = widened(case)
    limit = tolerance(Deviation(norm, worst), "float32")
    (x,) = case.inputs
    for order in (x, x.flip(1), x.sort(1).values, x.roll(7, 1)):
        one_by_one = order.cumsum(1, dtype=torch.float32)[:, -1:] / 64
        ((found, most),) = compare((one_by_one.abs().rsqrt(),), case.references)
        assert found <= limit.norm
        assert most <= limit.worst


def test_float64_is_held_to_float64() -> None:
    builder = GraphBuilder()
    rows = builder.input(TensorSpec.contiguous((64, 64), "float64"))
    kernel = Kernel(
        "rowwise", builder.build(builder.add("rsqrt", builder.add("abs", builder.add("mean", rows, axes=(1,)))))
    )
    assert widened(prepare_case(kernel, 0, CPU))[0][0] < 1e-12
