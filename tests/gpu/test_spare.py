"""Stem and spare on a real GPU: what is lost is replaced at once, a spare costs a context, and no time changes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.measure import CudaDevice
from engine.measure.cuda import CudaSettings
from engine.measure.link import SPARE
from engine.vocabulary import FailureKind, Regime
from tests.gpu.test_faults import KERNEL, do, measure, render
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


def timed(link: Any, name: str) -> list[float]:
    """How long each call of one of the link's methods takes from now on, in seconds."""
    spent: list[float] = []
    method: Callable[[], Any] = getattr(link, name)

    def call() -> Any:
        start = time.monotonic()
        try:
            return method()
        finally:
            spent.append(time.monotonic() - start)

    setattr(link, name, call)
    return spent


def told(seconds: list[float]) -> str:
    return ", ".join(f"{one:.2f}" for one in seconds)


def memory_mib(pid: int) -> dict[str, int]:
    """What a process holds, and what of it is its own and shared with nobody, in MiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return {"rss": sizes["Rss"] >> 10, "own": (sizes["Private_Clean"] + sizes["Private_Dirty"]) >> 10}


def test_illegal_accesses_in_a_row_wait_for_no_import(hostile: CudaDevice) -> None:
    """The stem forks on this machine, and what branches off from it can use the GPU."""
    measure(hostile, "right", 0)
    stem = hostile._link._stem
    assert stem.missing == ""
    assert stem.stands
    buried, started = timed(hostile._link, "_drop"), timed(hostile._link, "start")
    start = time.monotonic()
    train = [hostile.submit(KERNEL, do("far store", 300 + number), Regime.RANKING) for number in range(6)]
    failures = [one.result(timeout=300).failure for one in train]
    faults_s = time.monotonic() - start
    measure(hostile, "right", 1)
    assert stem._child is not None
    print(
        f"\nsix illegal accesses in a row took {faults_s:.2f} s and the candidate after them "
        f"{time.monotonic() - start - faults_s:.2f} s; seconds to bury: {told(buried)}; to a replacement that has "
        f"opened the GPU: {told(started)}; the stem: {memory_mib(stem._child.pid)} MiB, "
        f"who branched off: {memory_mib(hostile.health().workers[0].pid)} MiB"
    )
    assert [failure.kind for failure in failures if failure] == [FailureKind.ILLEGAL_ACCESS] * 6
    assert (hostile.health().respawns, len(started)) == (6, 6)
    assert stem.stands


def test_an_abort_and_a_hang_after_it_are_replaced_by_the_stem_too(hostile: CudaDevice) -> None:
    measure(hostile, "right", 0)
    started = timed(hostile._link, "start")
    kinds = []
    for number, case in enumerate(("abort", "endless loop", "segfault", "exit")):
        failure = measure(hostile, case, 400 + number).failure
        assert failure is not None
        kinds.append(failure.kind)
        assert measure(hostile, "right", 400 + number).failure is None
    print(f"\nseconds to a replacement after an abort, a hang, a segfault and an exit: {told(started)}")
    assert kinds == [FailureKind.CRASH, FailureKind.HANG, FailureKind.CRASH, FailureKind.CRASH]
    assert hostile._link._stem.stands
