"""Floors: what sets them, which ceiling counts, and that they are read back as they were written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.ir.roofline import Ceilings, floor_us

CEILINGS = Ceilings(4000.0, (("bf16", 800.0), ("fp32", 50.0), ("tf32", 400.0)), l2_gbs=8000.0, l2_bytes=50 << 20)


def matmul(extent: int, dtype: str, **attributes: bool) -> Kernel:
    build = GraphBuilder()
    left, right = (build.input(TensorSpec.contiguous((extent, extent), dtype), name) for name in "xw")
    return Kernel("contraction", build.build(build.add("matmul", left, right, **attributes)), "matmul")


def add(elements: int) -> Kernel:
    build = GraphBuilder()
    left, right = (build.input(TensorSpec.contiguous((elements,), "float32"), name) for name in "xy")
    return Kernel("pointwise", build.build(build.add("add", left, right)), "add")


def test_a_large_matmul_is_bound_by_compute() -> None:
    us, bound = floor_us(matmul(8192, "bfloat16"), CEILINGS)
    assert bound == "compute"
    assert us == pytest.approx(2 * 8192**3 / 800e12 * 1e6)


def test_a_stream_is_bound_by_memory() -> None:
    us, bound = floor_us(add(1 << 26), CEILINGS)
    assert bound == "memory"
    assert us == pytest.approx(3 * 4 * (1 << 26) / 4000e9 * 1e6)


def test_what_fits_the_l2_is_measured_against_the_l2() -> None:
    assert floor_us(add(1 << 20), CEILINGS)[0] == pytest.approx(3 * 4 * (1 << 20) / 8000e9 * 1e6)
    cold = Ceilings(CEILINGS.copy_gbs, CEILINGS.tflops)
    assert floor_us(add(1 << 20), cold)[0] == pytest.approx(3 * 4 * (1 << 20) / 4000e9 * 1e6)


def test_fp32_products_may_be_made_of_tf32_ones() -> None:
    exact, rounded = (floor_us(matmul(8192, "float32", allow_tf32=tf32), CEILINGS)[0] for tf32 in (False, True))
    assert exact == pytest.approx(2 * 8192**3 / (400e12 / 3) * 1e6)
    assert rounded == pytest.approx(2 * 8192**3 / 400e12 * 1e6)


def test_products_of_a_kind_that_was_not_measured_leave_the_memory_floor() -> None:
    assert floor_us(matmul(4096, "float16"), CEILINGS)[1] == "memory"


rates = st.floats(1e-3, 1e9)


@given(rates, st.dictionaries(st.sampled_from(["bf16", "fp16", "tf32", "fp32"]), rates), rates, st.integers(0, 1 << 40))
def test_ceilings_are_read_back(copy: float, tflops: dict[str, float], near: float, size: int) -> None:
    ceilings = Ceilings(copy, tuple(sorted(tflops.items())), near, size)
    assert Ceilings.from_text(ceilings.text) == ceilings


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"copy_gbs":0,"tflops":{},"l2_gbs":0,"l2_bytes":0}'])
def test_what_is_no_ceilings_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a GPU's ceilings"):
        Ceilings.from_text(text)
