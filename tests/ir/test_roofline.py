"""Floors: what sets them, which ceiling counts, and that they are read back as they were written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.ir.roofline import Ceilings, floor_us

CEILINGS = Ceilings(4000.0, (("bf16", 800.0), ("fp32", 50.0), ("tf32", 400.0)), l2_gbs=8000.0, l2_bytes=50 << 20)
"""As they were measured before reading had a rate of its own."""
COLD = Ceilings(4000.0, CEILINGS.tflops, read_gbs=4800.0)
WARM = replace(CEILINGS, read_gbs=4800.0, l2_read_gbs=10_000.0)


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


def scale(elements: int) -> Kernel:
    """A copy, as the ceilings are measured with."""
    build = GraphBuilder()
    x = build.input(TensorSpec.contiguous((elements,), "float32"), "x")
    return Kernel("pointwise", build.build(build.add("mul", x, build.constant(1.5))), "mul")


def total(elements: int) -> Kernel:
    build = GraphBuilder()
    x = build.input(TensorSpec.contiguous((elements // 4096, 4096), "float32"), "x")
    return Kernel("rowwise", build.build(build.add("sum", x, axes=(1,))), "sum")


def test_a_copy_runs_at_the_rate_of_a_copy() -> None:
    assert floor_us(scale(1 << 26), COLD)[0] == pytest.approx(2 * 4 * (1 << 26) / 4000e9 * 1e6)


def test_what_mostly_reads_comes_below_a_copy_of_as_many_bytes() -> None:
    size = 4 * (1 << 26)
    only_reads = floor_us(total(1 << 26), COLD)[0]
    assert only_reads == pytest.approx(size / 4800e9 * 1e6, rel=1e-2)
    added = floor_us(add(1 << 26), COLD)[0]
    written_gbs = 1 / (2 / 4000 - 1 / 4800)
    assert added == pytest.approx((2 * size / 4800e9 + size / (written_gbs * 1e9)) * 1e6)
    assert added < floor_us(add(1 << 26), CEILINGS)[0]


def test_a_large_kernel_may_keep_in_the_l2_what_that_holds() -> None:
    written_gbs = 1 / (2 / 4000 - 1 / 4800)
    kept_us = WARM.l2_bytes / (written_gbs * 1e3)
    assert floor_us(add(1 << 26), WARM)[0] == pytest.approx(floor_us(add(1 << 26), COLD)[0] - kept_us)
    inside, beyond = (floor_us(scale(count), WARM)[0] for count in ((50 << 20) // 8, (52 << 20) // 8))
    assert inside == pytest.approx((50 << 20) / 8000e9 * 1e6)
    assert inside < beyond < 1.1 * inside, "no step where the L2 ends"


def test_the_measured_add_of_an_h200_is_above_its_floor() -> None:
    """366.13 us, while a copy moved 4173 GB/s of 4.8 TB/s that the memory has by its data sheet."""
    measured = Ceilings(4173.0, (), l2_gbs=7311.0, l2_bytes=60 << 20, read_gbs=4600.0, l2_read_gbs=7311.0)
    assert 350.0 < floor_us(add(1 << 27), measured)[0] < 366.13


@given(st.integers(1, 1 << 24), st.integers(1, 1 << 24))
def test_more_bytes_never_take_less(less: int, more: int) -> None:
    less, more = sorted((less, more))
    for ceilings in (COLD, WARM):
        assert floor_us(add(less), ceilings)[0] <= floor_us(add(more), ceilings)[0]


def test_a_sum_that_was_slower_than_a_copy_changes_nothing() -> None:
    slow = replace(COLD, read_gbs=3000.0)
    assert floor_us(add(1 << 26), slow)[0] == pytest.approx(3 * 4 * (1 << 26) / 4000e9 * 1e6)


def test_a_rate_of_reading_that_no_gpu_has_counts_as_a_copys() -> None:
    """Sums within the L2 of an H200 that waited for their ends gave 50 to 140 TB/s, where copies moved 7.3."""
    wrong = replace(WARM, l2_read_gbs=60_000.0)
    right = replace(WARM, l2_read_gbs=WARM.l2_gbs)
    for elements in (1 << 16, 1 << 20, 1 << 26):
        assert floor_us(total(elements), wrong) == floor_us(total(elements), right)
        assert floor_us(add(elements), wrong) == floor_us(add(elements), right)


def test_fp32_products_may_be_made_of_tf32_ones() -> None:
    exact, rounded = (floor_us(matmul(8192, "float32", allow_tf32=tf32), CEILINGS)[0] for tf32 in (False, True))
    assert exact == pytest.approx(2 * 8192**3 / (400e12 / 3) * 1e6)
    assert rounded == pytest.approx(2 * 8192**3 / 400e12 * 1e6)


def test_products_of_a_kind_that_was_not_measured_leave_the_memory_floor() -> None:
    assert floor_us(matmul(4096, "float16"), CEILINGS)[1] == "memory"


rates = st.floats(1e-3, 1e9)


kinds = st.dictionaries(st.sampled_from(["bf16", "fp16", "tf32", "fp32"]), rates)


@given(rates, kinds, rates, st.integers(0, 1 << 40), rates, rates)
def test_ceilings_are_read_back(
    copy: float, tflops: dict[str, float], near: float, size: int, read: float, near_read: float
) -> None:
    ceilings = Ceilings(copy, tuple(sorted(tflops.items())), near, size, read, near_read)
    assert Ceilings.from_text(ceilings.text) == ceilings


def test_ceilings_without_a_rate_of_reading_are_read() -> None:
    older = '{"copy_gbs":4000.0,"l2_bytes":52428800,"l2_gbs":8000.0,"tflops":{"bf16":800.0,"fp32":50.0,"tf32":400.0}}'
    assert Ceilings.from_text(older) == CEILINGS


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"copy_gbs":0,"tflops":{},"l2_gbs":0,"l2_bytes":0}'])
def test_what_is_no_ceilings_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a GPU's ceilings"):
        Ceilings.from_text(text)
