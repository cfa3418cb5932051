from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.ir import Graph, GraphBuilder, GraphError, Kernel, TensorSpec
from engine.ir.placement import passed_to, placed
from engine.ir.plan import BufferView, Grouping, KernelCall
from engine.ir.structural_key import same_ends
from tests.ir.evaluate import evaluate
from tests.ir.graphs import random_graphs
from tests.ir.test_structural_key import rewritten


def seen(offset: int, view_offset: int) -> Graph:
    """A kernel that reads the first elements of an input, and others through another view of it."""
    b = GraphBuilder()
    x = b.input(TensorSpec((32,), "float32", (1,), offset))
    return b.build(b.add("sub", b.view(x, (4,), (1,)), b.view(x, (4,), (1,), view_offset)))


@pytest.mark.parametrize(
    ("dtype", "step"), [("float64", 2), ("float32", 4), ("bfloat16", 8), ("int8", 16), ("bool", 16)]
)
def test_a_kernel_is_given_the_boundary_and_knows_the_rest(dtype: str, step: int) -> None:
    for offset in (0, 1, step - 1, step, 3 * step + 1):
        spec = TensorSpec((2, 3), dtype, (3, 1), offset)
        b = GraphBuilder()
        x = b.input(spec)
        (known,) = placed(b.build(b.add("copy", x))).input_specs()
        assert passed_to(spec) % step == 0
        assert (passed_to(spec) + known.offset, known.offset < step) == (offset, True)
        assert replace(known, offset=offset) == spec


def test_a_body_at_the_start_of_its_buffers_stays_as_it_is() -> None:
    body = seen(0, 4)
    assert placed(body) is body


def test_of_an_empty_input_the_first_element_is_passed() -> None:
    assert passed_to(TensorSpec((0, 3), "float32", (3, 1), 12)) == 0


def test_views_of_an_input_count_from_where_it_lies() -> None:
    key = Kernel("pointwise", seen(8, 12)).key
    assert Kernel("pointwise", seen(16, 20)).key == key == Kernel("pointwise", seen(0, 4)).key
    assert Kernel("pointwise", seen(12, 12)).key != key
    assert placed(seen(8, 0)).ops[2].out.offset == -8


@settings(max_examples=80, deadline=None)
@given(random_graphs(), st.integers(0, 2**32))
def test_equal_bodies_find_their_ends_in_each_other(graph: Graph, seed: int) -> None:
    other = rewritten(graph, seed)
    inputs, outputs = same_ends(graph, other)
    assert sorted(inputs) == list(range(len(graph.inputs)))
    assert sorted(outputs) == list(range(len(graph.outputs)))
    draw = np.random.default_rng(seed)
    given_to_other = [draw.uniform(0.5, 2.0, spec.storage_elements) for spec in other.input_specs()]
    with np.errstate(all="ignore"):
        wanted = evaluate(graph, [given_to_other[position] for position in inputs])
        found = evaluate(other, given_to_other)
    for value, position in zip(wanted, outputs, strict=True):
        np.testing.assert_allclose(found[position], value, rtol=1e-9)


def test_bodies_that_differ_have_no_ends_in_common() -> None:
    with pytest.raises(GraphError, match="different things"):
        same_ends(seen(0, 4), seen(0, 8))


def difference(turned: bool, offset: int) -> Graph:
    """The exponential of one input less twice another one, which is named first if `turned`."""
    spec = TensorSpec((4, 4), "float32", (12, 1), offset)
    b = GraphBuilder()
    ends = [b.input(spec), b.input(spec)]
    minuend, subtrahend = reversed(ends) if turned else ends
    return b.build(b.add("sub", b.add("exp", minuend), b.add("add", subtrahend, subtrahend)))


def test_calls_of_one_key_are_launched_as_the_first_one_names_its_arguments() -> None:
    bodies = [difference(turned=False, offset=0), difference(turned=True, offset=4)]
    kernels = [Kernel("pointwise", body) for body in bodies]
    assert kernels[0].key == kernels[1].key
    buffer, result = TensorSpec.contiguous((4, 12), "float32"), TensorSpec.contiguous((4, 4), "float32")
    calls = tuple(
        KernelCall(kernel, tuple(BufferView(n, s) for n, s in enumerate(kernel.body.input_specs())), (2 + place,))
        for place, kernel in enumerate(kernels)
    )
    plan = Grouping((buffer, buffer, result, result), calls, tuple(BufferView(n, result) for n in (2, 3)))
    first, second = plan.launches()
    assert first == calls[0]
    assert second.kernel == kernels[0]
    assert [view.buffer for view in second.arguments] == [1, 0]
    assert {view.spec.offset for view in second.arguments} == {4}
