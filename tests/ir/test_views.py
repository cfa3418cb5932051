from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ir import GraphError, TensorSpec
from engine.ir.views import expanded, narrowed, permuted, reshaped, selected, view_axes, with_axis, without_axes
from tests.ir.evaluate import read

EXTENTS = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def storage(spec: TensorSpec) -> np.ndarray:
    return np.arange(spec.storage_elements, dtype=np.float64)


@given(EXTENTS, st.data())
def test_views_read_what_numpy_reads(shape: tuple[int, ...], data: st.DataObject) -> None:
    spec = TensorSpec.contiguous(shape, "float32")
    flat = storage(spec)
    whole = read(flat, spec)
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    axis = data.draw(st.integers(0, len(shape) - 1))
    start, stop, step = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 5)), data.draw(st.integers(1, 3))
    place = data.draw(st.integers(-shape[axis], shape[axis] - 1))
    cut = tuple(slice(start, stop, step) if i == axis else slice(None) for i in range(len(shape)))
    pairs = [
        (permuted(spec, order), whole.transpose(order)),
        (with_axis(spec, axis), np.expand_dims(whole, axis)),
        (selected(spec, axis, place), whole.take(place, axis)),
        (expanded(spec, (2, *(-1,) * len(shape))), np.broadcast_to(whole, (2, *shape))),
        (without_axes(spec, (axis,)), whole.squeeze(axis) if shape[axis] == 1 else whole),
    ]
    narrow = narrowed(spec, axis, start, stop, step)
    assert narrow.shape == whole[cut].shape
    if narrow.numel:
        pairs.append((narrow, whole[cut]))
    for seen, wanted in pairs:
        np.testing.assert_array_equal(read(flat, seen), wanted)


@given(EXTENTS, st.data())
def test_a_reshape_is_a_view_exactly_where_the_order_of_elements_allows(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    spec = permuted(TensorSpec.contiguous(shape, "float32"), order)
    flat = storage(spec)
    wanted = _another_shape(math.prod(shape), data)
    seen = reshaped(spec, wanted)
    values = read(flat, spec).reshape(wanted)
    if seen is not None:
        np.testing.assert_array_equal(read(flat, seen), values)
    else:
        with pytest.raises(AttributeError):
            # numpy refuses to change the shape in place exactly where no strides express it
            read(flat, spec).shape = wanted


def _another_shape(count: int, data: st.DataObject) -> tuple[int, ...]:
    shape = []
    while count > 1:
        extent = data.draw(st.sampled_from([d for d in range(2, count + 1) if count % d == 0]))
        shape.append(extent)
        count //= extent
    return tuple(shape) or (1,)


def test_expanding_to_what_does_not_fit_is_an_error() -> None:
    with pytest.raises(GraphError, match="doesn't expand"):
        expanded(TensorSpec.contiguous((3,), "float32"), (2,))


def test_the_axes_of_a_view() -> None:
    whole = TensorSpec.contiguous((4, 1, 6), "float32")
    assert view_axes(TensorSpec((6, 4), "float32", (1, 6)), whole) == (1 + 1, 0)
    assert view_axes(TensorSpec((2, 4, 6), "float32", (0, 6, 1)), whole) == (None, 0, 2)
    assert view_axes(TensorSpec((24,), "float32", (1,)), whole) is None
    assert view_axes(TensorSpec((4,), "float32", (6,)), whole) is None
    assert view_axes(TensorSpec((4, 6), "float32", (6, 1), 1), whole) is None
