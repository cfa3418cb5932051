"""Kernels of every family at sizes that a GPU notices."""

from __future__ import annotations

from engine.ir.builder import GraphBuilder
from engine.ir.graph import TensorSpec
from engine.ir.kernel import Kernel


def matmul(m: int, n: int, k: int, dtype: str) -> Kernel:
    build = GraphBuilder()
    left = build.input(TensorSpec.contiguous((m, k), dtype), "x")
    right = build.input(TensorSpec.contiguous((k, n), dtype), "w")
    return Kernel("contraction", build.build(build.add("matmul", left, right)), "matmul")


def rms_norm(rows: int, columns: int) -> Kernel:
    build = GraphBuilder()
    x = build.input(TensorSpec.contiguous((rows, columns), "bfloat16"), "x")
    weight = build.input(TensorSpec.contiguous((columns,), "bfloat16"), "weight")
    wide = build.add("cast", x, dtype="float32")
    mean = build.add("mean", build.add("mul", wide, wide), axes=(1,))
    scale = build.add("rsqrt", build.add("add", mean, build.constant(1e-6)))
    normal = build.add("cast", build.add("mul", wide, scale), dtype="bfloat16")
    return Kernel("rowwise", build.build(build.add("mul", normal, weight)), "rms_norm")


def silu_product(rows: int, columns: int) -> Kernel:
    build = GraphBuilder()
    gate = build.input(TensorSpec.contiguous((rows, columns), "bfloat16"), "gate")
    up = build.input(TensorSpec.contiguous((rows, columns), "bfloat16"), "up")
    return Kernel("pointwise", build.build(build.add("mul", build.add("silu", gate), up)), "silu*mul")


def row_sum(rows: int, columns: int) -> Kernel:
    """Reads, and writes next to nothing."""
    build = GraphBuilder()
    x = build.input(TensorSpec.contiguous((rows, columns), "float32"), "x")
    return Kernel("rowwise", build.build(build.add("sum", x, axes=(1,))), "sum")


def add(elements: int) -> Kernel:
    build = GraphBuilder()
    x = build.input(TensorSpec.contiguous((elements,), "float32"), "x")
    y = build.input(TensorSpec.contiguous((elements,), "float32"), "y")
    return Kernel("pointwise", build.build(build.add("add", x, y)), "add")
