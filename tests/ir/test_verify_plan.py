from __future__ import annotations

from dataclasses import replace

import pytest

from engine.grouping import grouping_space
from engine.ir import GraphError, Kernel, TensorSpec
from engine.ir.plan import BufferView, Grouping
from engine.ir.verify_plan import verify_grouping, verify_kernel
from tests.grouping.rewritable import stored_weights
from tests.ir.graphs import linear_gelu, softmax


def two_kernels() -> Grouping:
    space = grouping_space(linear_gelu())
    fork = space.fork(())
    assert fork is not None
    return space.grouping((fork.options[1],))


def test_what_a_space_makes_verifies() -> None:
    plan = two_kernels()
    assert verify_grouping(plan) is plan


def test_a_family_holds_only_its_ops() -> None:
    assert verify_kernel(Kernel("rowwise", softmax())).family == "rowwise"
    for family in ("contraction", "pointwise"):
        with pytest.raises(GraphError, match="can't hold"):
            verify_kernel(Kernel(family, softmax()))
    with pytest.raises(GraphError, match="unknown kernel family"):
        verify_kernel(Kernel("shell", softmax()))


def test_launches_that_can_not_run_are_refused() -> None:
    plan = two_kernels()
    first, second = plan.calls
    far = BufferView(0, replace(plan.calls[0].arguments[0].spec, offset=1))
    wrong = [
        (replace(plan, calls=(second, first)), "isn't written yet"),
        (replace(plan, calls=(first, replace(second, results=first.results))), "written already"),
        (replace(plan, calls=(first, replace(second, results=(99,)))), "doesn't exist|reads a buffer"),
        (replace(plan, calls=(first, replace(second, results=()))), "more or fewer"),
        (replace(plan, calls=(replace(first, arguments=(far, first.arguments[1])), second)), "past a buffer"),
        (replace(plan, outputs=()), "at least one output"),
        (replace(plan, outputs=(BufferView(99, plan.outputs[0].spec),)), "doesn't exist"),
        (replace(plan, buffers=(*plan.buffers[:-1], TensorSpec.contiguous((3,), "float32"))), "another shape"),
    ]
    for broken, sentence in wrong:
        with pytest.raises(GraphError, match=sentence):
            verify_grouping(broken)


def turned_weights() -> Grouping:
    space = grouping_space(stored_weights())
    path = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[-1])
    return space.grouping(path)


def test_inputs_are_what_neither_a_kernel_nor_a_preparation_writes() -> None:
    plan = turned_weights()
    assert len(plan.prepared) == 2
    assert plan.input_specs() == stored_weights().input_specs()
    assert verify_grouping(plan) is plan


def test_preparations_that_can_not_run_are_refused() -> None:
    plan = turned_weights()
    first, second = plan.prepared
    result = BufferView(plan.calls[0].results[0], plan.buffers[plan.calls[0].results[0]])
    wrong = [
        (replace(plan, prepared=(first, replace(second, results=first.results))), "preparation 1: .*written already"),
        (replace(plan, prepared=(replace(first, results=()), second)), "preparation 0: has more or fewer"),
        (replace(plan, prepared=(replace(first, arguments=(result,)), second)), "preparation 0: .*isn't written yet"),
        (replace(plan, prepared=(replace(first, results=(0,)), second)), "preparation 0: .*"),
    ]
    for broken, sentence in wrong:
        with pytest.raises(GraphError, match=sentence):
            verify_grouping(broken)
