"""The spare on a real GPU: it takes over at once, costs a context's memory, and nobody's time is changed by it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import pytest
import torch

from engine.measure import CudaDevice
from engine.measure.cuda import CudaSettings
from engine.measure.link import SPARE
from tests.gpu.test_faults import measure, render
from tests.measure.rig import settled

REPEATS = 20
LARGEST_CONTEXT_BYTES = 2 << 30


@pytest.fixture
def hostile() -> Iterator[CudaDevice]:
    with CudaDevice(CudaSettings(index=0, compilers=4), render, lambda *_: None) as opened:
        folder = opened._nursery.folder
        yield opened
    assert settled(folder)


def wait_for_spare(device: CudaDevice) -> float:
    """Seconds until the next spare has opened the GPU."""
    start = time.monotonic()
    while not any(one.step == SPARE for one in device.health().workers) or device._link.preparing:
        assert time.monotonic() - start < 60
        time.sleep(0.01)
    return time.monotonic() - start


def seconds(device: CudaDevice, case: str, number: int) -> float:
    start = time.monotonic()
    measure(device, case, number)
    return time.monotonic() - start


def times(device: CudaDevice, first: int) -> list[float]:
    found = [measure(device, "right", first + number).us for number in range(REPEATS)]
    assert all(found)
    return [us for us in found if us is not None]


def test_a_spare_takes_over_at_once_and_changes_no_time(hostile: CudaDevice) -> None:
    measure(hostile, "right", 0)
    alone = times(hostile, 100)
    free_alone, _ = torch.cuda.mem_get_info(0)
    measure(hostile, "abort", 0)
    without = seconds(hostile, "right", 1)
    beginning = times(hostile, 200)
    ready_s = wait_for_spare(hostile)
    beside = times(hostile, 300)
    free_beside, _ = torch.cuda.mem_get_info(0)
    spare = next(one.pid for one in hostile.health().workers if one.step == SPARE)
    measure(hostile, "abort", 1)
    with_spare = seconds(hostile, "right", 2)
    assert hostile.health().workers[0].pid == spare
    medians = [statistics.median(one) for one in (alone, beginning, beside)]
    print(
        f"\na replacement and its first candidate: {without:.2f} s without a spare, {with_spare:.2f} s with one, "
        f"which was ready {ready_s:.1f} s after 20 candidates; the spare takes {(free_alone - free_beside) >> 20} MiB; "
        f"medians alone, while it begins, beside it: {', '.join(f'{us:.3f}' for us in medians)} us"
    )
    assert hostile.health().respawns == 2
    assert with_spare < without
    assert free_alone - free_beside < LARGEST_CONTEXT_BYTES
    for one in medians[1:]:
        assert one == pytest.approx(medians[0], rel=0.02)


def test_losses_in_a_row_are_replaced_faster_than_they_import(hostile: CudaDevice) -> None:
    measure(hostile, "right", 0)
    spent = []
    for number in range(10):
        start = time.monotonic()
        measure(hostile, "abort", number)
        measure(hostile, "right", 10 + number)
        spent.append(time.monotonic() - start)
    print(f"\nseconds for an abort and the candidate after it, ten times: {', '.join(f'{one:.1f}' for one in spent)}")
    assert hostile.health().respawns == 10
