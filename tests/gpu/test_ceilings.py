"""What a real GPU reaches at its best, and that no kernel of ours comes below its floor."""

from __future__ import annotations

import time

import pytest

from engine.codegen import offered_schedules
from engine.ir.kernel import Kernel
from engine.ir.roofline import Ceilings, floor_us
from engine.measure import CudaDevice
from engine.vocabulary import Regime
from tests.gpu.bodies import add, matmul, rms_norm, row_sum

SLACK = 0.97
"""A ceiling is itself measured, so a time may lie a little below the floor."""


def _ceilings(device: CudaDevice) -> Ceilings:
    deadline = time.monotonic() + 120
    while (found := device.health().ceilings) is None:
        assert time.monotonic() < deadline, "the ceilings never came"
        time.sleep(0.1)
    return found


def test_ceilings_are_near_what_the_chip_is_known_for(device: CudaDevice) -> None:
    ceilings = _ceilings(device)
    print(f"\n{ceilings.text}")
    known = dict(ceilings.tflops)
    target = device.target
    assert 0.7 < ceilings.copy_gbs * 1e9 / target.memory_bandwidth < 1.2
    assert 0.5 < known["bf16"] * 1e12 / target.peak_bf16 < 1.3
    assert 0.5 < known["tf32"] * 1e12 / target.peak_tf32 < 1.3
    assert 0.5 < known["fp32"] * 1e12 / target.peak_fp32 < 1.3
    assert known["fp16"] > 0.8 * known["bf16"]
    assert ceilings.l2_gbs > ceilings.copy_gbs
    assert 0.8 * ceilings.copy_gbs < ceilings.read_gbs
    assert ceilings.read_gbs * 1e9 / target.memory_bandwidth < 1.1
    assert ceilings.l2_gbs <= ceilings.l2_read_gbs < 2 * ceilings.l2_gbs


@pytest.mark.parametrize(
    "kernel",
    [
        *(add(1 << 27), add(1 << 20), row_sum(65536, 4096), row_sum(6144, 1024)),
        *(rms_norm(16384, 4096), matmul(4096, 4096, 4096, "bfloat16")),
    ],
    ids=["large add", "small add", "large sum", "small sum", "rms norm", "matmul"],
)
def test_no_time_lies_below_the_floor(device: CudaDevice, kernel: Kernel) -> None:
    floor, bound = floor_us(kernel, _ceilings(device))
    schedules = list(offered_schedules(kernel, device.target))
    spread = schedules[:: max(1, len(schedules) // 24)]
    futures = [device.submit(kernel, schedule, Regime.RANKING) for schedule in spread]
    found = [future.result(300) for future in futures]
    causes = sorted({f"{one.failure.kind}: {one.failure.cause}" for one in found if one.failure is not None})
    times = {one.us: one.schedule for one in found if one.us is not None}
    print(f"\n{len(times)} of {len(found)} timed", *causes, sep="\n")
    assert times
    best = min(times)
    told = f"{kernel.label}: floor {floor:.2f} us by {bound}, best {best:.2f} us ({best / floor:.2f}x) of {times[best]}"
    gbs = kernel.bytes_moved / (best * 1e3)
    print(f"{told}\n{gbs:.0f} GB/s; {_ceilings(device).text}")
    assert best > SLACK * floor, told


def test_no_other_candidate_waits_long_for_the_ceilings(device: CudaDevice) -> None:
    _ceilings(device)
    assert device.health().busy_s < 60
