from __future__ import annotations

import pytest

from engine.ir import Graph, GraphBuilder, Kernel, TensorSpec
from engine.ir.measures import count_bytes, count_flops, describe_shape
from tests.ir.graphs import contiguous, linear_gelu, softmax


def matmul(left: tuple[int, ...], right: tuple[int, ...], dtype: str = "bfloat16") -> Graph:
    b = GraphBuilder()
    return b.build(b.add("matmul", b.input(contiguous(left, dtype)), b.input(contiguous(right, dtype))))


@pytest.mark.parametrize(
    ("left", "right", "flops", "text"),
    [
        ((4096, 4096), (4096, 4096), 2 * 4096**3, "4096x4096x4096 bfloat16"),
        ((2, 8, 16), (16, 32), 2 * 16 * 16 * 32, "16x32x16 bfloat16"),
        ((3, 8, 16), (3, 16, 32), 2 * 3 * 8 * 16 * 32, "3x8x32x16 bfloat16"),
        ((2, 3, 8, 16), (2, 3, 16, 32), 2 * 6 * 8 * 16 * 32, "6x8x32x16 bfloat16"),
    ],
)
def test_a_matmul(left: tuple[int, ...], right: tuple[int, ...], flops: int, text: str) -> None:
    body = matmul(left, right)
    assert count_flops(body) == flops
    assert describe_shape("contraction", body) == text


def test_pointwise_ops_count_by_their_weight() -> None:
    assert count_flops(linear_gelu(8, 32, 16)) == 2 * 8 * 32 * 16 + 8 * 32 * (1 + 4)


def test_a_reduction_counts_what_it_reads() -> None:
    b = GraphBuilder()
    body = b.build(b.add("sum", b.input(contiguous((8, 16), "float32")), axes=(1,)))
    assert count_flops(body) == 8 * 16


def test_bytes_are_each_input_and_output_once() -> None:
    assert count_bytes(linear_gelu(8, 32, 16)) == 2 * (8 * 16 + 16 * 32 + 32 + 8 * 32)


def test_an_expanded_or_overlapping_input_is_touched_once() -> None:
    b = GraphBuilder()
    expanded = b.input(TensorSpec((8, 16), "float32", (0, 1)))
    window = b.input(TensorSpec((8, 16), "float32", (1, 1)))
    body = b.build(b.add("add", expanded, window))
    assert count_bytes(body) == 4 * (16 + 23 + 8 * 16)


def test_rowwise_and_pointwise_shapes() -> None:
    assert describe_shape("rowwise", softmax(16384, 4096)) == "16384x4096 bfloat16"
    b = GraphBuilder()
    x = b.input(contiguous((6,), "float16"))
    assert describe_shape("pointwise", b.build(b.add("exp", x))) == "6 float16"
    scalar = b.input(contiguous((), "float32"))
    assert describe_shape("pointwise", b.build(b.add("exp", scalar))) == "scalar float32"


def test_a_kernel_carries_them() -> None:
    kernel = Kernel("contraction", matmul((8, 16), (16, 32)), "matmul")
    assert (kernel.flops, kernel.bytes_moved, kernel.shape_text) == (8192, 2 * (128 + 512 + 256), "8x32x16 bfloat16")
    assert kernel == Kernel("contraction", kernel.body, "another name")
