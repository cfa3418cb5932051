from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codegen.frames import (
    Digit,
    Frame,
    FrameError,
    broadcast_frame,
    index_text,
    memory_frame,
    split_by_axes,
    whole_frame,
)
from engine.ir.graph import TensorSpec, contiguous_strides

shapes = st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple)


def positions(frame: Frame, size: int) -> list[int]:
    """Where each element of a flat iteration of `size` points."""
    return [frame.offset + sum(i // d.step % d.extent * d.place for d in frame.digits) for i in range(size)]


def storage_positions(spec: TensorSpec) -> list[int]:
    grids = np.indices(spec.shape).reshape(len(spec.shape), -1)
    return (spec.offset + np.tensordot(np.array(spec.strides), grids, axes=1)).tolist()


@given(shapes, st.data())
def test_memory_frame_is_where_a_strided_tensor_keeps_its_elements(shape: tuple[int, ...], data: st.DataObject) -> None:
    strides = tuple(data.draw(st.integers(0, 50)) for _ in shape)
    spec = TensorSpec(shape, "float32", strides, data.draw(st.integers(0, 9)))
    frame = memory_frame(whole_frame(spec.numel), spec)
    assert positions(frame, spec.numel) == storage_positions(spec)


@given(shapes, st.data())
def test_broadcast_frame_repeats_the_smaller_input(shape: tuple[int, ...], data: st.DataObject) -> None:
    kept = data.draw(st.integers(0, len(shape)))
    source = tuple(1 if data.draw(st.booleans()) else extent for extent in shape[kept:])
    frame = broadcast_frame(whole_frame(math.prod(shape)), shape, source)
    flat = np.arange(math.prod(source)).reshape(source)
    assert positions(frame, math.prod(shape)) == np.broadcast_to(flat, shape).reshape(-1).tolist()


@given(shapes, st.data())
def test_permuted_view_of_a_value_is_followed_to_the_value(shape: tuple[int, ...], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    strides = contiguous_strides(shape)
    seen = TensorSpec(tuple(shape[i] for i in order), "float32", tuple(strides[i] for i in order))
    frame = memory_frame(whole_frame(seen.numel), seen)
    assert positions(frame, seen.numel) == storage_positions(seen)
    own = memory_frame(frame, TensorSpec.contiguous(shape, "float32"))
    assert positions(own, seen.numel) == storage_positions(seen)


@given(shapes, st.integers(0, 3))
def test_digits_split_by_axes_add_up_to_the_frame(shape: tuple[int, ...], cut: int) -> None:
    cut = min(cut, len(shape))
    outer, inner = math.prod(shape[:cut]), math.prod(shape[cut:])
    spec = TensorSpec(shape, "float32", tuple(7 * (i + 1) for i in range(len(shape))))
    frame = memory_frame(whole_frame(spec.numel), spec)
    columns, rows = split_by_axes(frame, [inner, outer])

    def walk(digits: Sequence[Digit], index: int) -> int:
        return sum(index // d.step % d.extent * d.place for d in digits)

    found = [frame.offset + walk(rows, i // inner) + walk(columns, i % inner) for i in range(spec.numel)]
    assert found == storage_positions(spec)


def test_equal_maps_are_equal_frames() -> None:
    split = memory_frame(whole_frame(24), TensorSpec((2, 3, 4), "float32", (12, 4, 1)))
    assert split == whole_frame(24)


def test_view_that_cuts_an_axis_unevenly_is_refused() -> None:
    with pytest.raises(FrameError, match="doesn't divide"):
        memory_frame(whole_frame(6), TensorSpec((2, 4), "float32", (4, 1)))


def test_view_across_the_edge_of_an_axis_is_refused() -> None:
    window = memory_frame(whole_frame(4), TensorSpec((4,), "float32", (1,), 3))
    with pytest.raises(FrameError, match="edge of an axis"):
        memory_frame(window, TensorSpec((2, 5), "float32", (9, 1)))


def test_index_text_leaves_out_what_has_no_effect() -> None:
    assert index_text("rows", Digit(8, 1, 1), 8) == "rows"
    assert index_text("rows", Digit(4, 2, 10), 8) == "rows // 2 * 10"
    assert index_text("rows", Digit(2, 2, 1), 8) == "rows // 2 % 2"
