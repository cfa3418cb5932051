"""Cold and warm times of one kernel on a real GPU: what fits the L2 is slower cold, what doesn't is not.

A sum of rows shows it best: it only reads, and a warm L2 gives what it holds faster than the GPU's memory ever could.
An add of small blocks doesn't: what bounds it is how fast blocks start, warm or cold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import median

import pytest

from engine.codegen import illegal_because, offered_schedules, render
from engine.ir.kernel import Kernel
from engine.measure import CudaDevice
from engine.measure.cuda import CudaSettings
from engine.vocabulary import Measurement, Regime, Schedule
from tests.gpu.bodies import add, row_sum

SMALL, LARGE = add(1 << 20), add(1 << 27)
READING = row_sum(6144, 1024)
"""24 MiB: half of what the L2 of an H200 holds, and one of its two sides holds it."""
EACH = 12
SETTINGS = CudaSettings(index=0, compilers=12)


@pytest.fixture(scope="module")
def cold() -> Iterator[CudaDevice]:
    with CudaDevice(replace(SETTINGS, cold_l2=True), render, illegal_because) as opened:
        yield opened


def _deployed(device: CudaDevice, kernel: Kernel) -> list[Measurement]:
    schedules = list(offered_schedules(kernel, device.target))[:6]
    futures = [device.submit(kernel, schedule, Regime.DEPLOY) for schedule in schedules]
    return [future.result(300) for future in futures]


def _spread(device: CudaDevice, kernel: Kernel) -> dict[str, list[Schedule]]:
    """Some schedules of each eviction hint, over all of the space: its corners are bound by something else."""
    found: dict[str, list[Schedule]] = {}
    for schedule in offered_schedules(kernel, device.target):
        found.setdefault(str(schedule["EVICTION"]), []).append(schedule)
    return {hint: of_one[:: max(1, len(of_one) // EACH)] for hint, of_one in found.items()}


def _best(device: CudaDevice, kernel: Kernel) -> dict[str, tuple[float, Schedule]]:
    """The fastest schedule of each eviction hint and its time in us."""
    best = {}
    for hint, schedules in _spread(device, kernel).items():
        futures = [device.submit(kernel, schedule, Regime.RANKING) for schedule in schedules]
        found = [future.result(300) for future in futures]
        times = [(one.us, one.schedule) for one in found if one.us is not None]
        assert times, [str(one.failure) for one in found]
        best[hint] = min(times, key=lambda timed: timed[0])
    return best


def _compared(kernel: Kernel, device: CudaDevice, cold: CudaDevice) -> tuple[dict[str, float], dict[str, float]]:
    """Warm and cold times in us by eviction hint, each of the fastest schedule; printed."""
    warm_best, cold_best = _best(device, kernel), _best(cold, kernel)
    memory_us = kernel.bytes_moved / device.target.memory_bandwidth * 1e6
    print(f"\n{kernel.label} of {kernel.bytes_moved / 2**20:.0f} MiB, {memory_us:.2f} us at the memory's own rate")
    for hint, (warm_us, schedule) in warm_best.items():
        cold_us, cold_schedule = cold_best[hint]
        print(f"  {hint or 'no hint'}: warm {warm_us:.2f} us ({schedule}), cold {cold_us:.2f} us ({cold_schedule})")
    return {hint: us for hint, (us, _) in warm_best.items()}, {hint: us for hint, (us, _) in cold_best.items()}


def test_what_fits_the_l2_is_slower_cold(device: CudaDevice, cold: CudaDevice) -> None:
    warm, of_cold = _compared(READING, device, cold)
    assert 1.15 * min(warm.values()) < min(of_cold.values()) < 10 * min(warm.values())


def test_the_flush_leaves_nothing_in_the_l2(device: CudaDevice, cold: CudaDevice) -> None:
    """Cold, nothing is faster than the memory, and not what asks the L2 to keep its data longest either."""
    _, of_cold = _compared(READING, device, cold)
    memory_us = READING.bytes_moved / device.target.memory_bandwidth * 1e6
    for hint, us in of_cold.items():
        assert us > 0.95 * memory_us, hint
    _compared(SMALL, device, cold)


def test_what_does_not_fit_takes_as_long_cold(device: CudaDevice, cold: CudaDevice) -> None:
    warm, of_cold = _compared(LARGE, device, cold)
    assert 0.95 * min(warm.values()) < min(of_cold.values()) < 1.15 * min(warm.values())


def test_cold_windows_repeat_and_are_a_context_of_their_own(device: CudaDevice, cold: CudaDevice) -> None:
    assert cold.context == replace(device.context, cold_l2=True)
    for one in _deployed(cold, SMALL):
        assert one.timing is not None
        assert one.context_key == cold.context.key
        spread = (one.timing.high_us - one.timing.low_us) / one.timing.median_us
        print(f"\n{one.schedule}: {one.timing.median_us:.2f} us, spread {spread:.1%}")
        assert spread < 0.25, one.timing.samples


def test_cold_candidates_are_compared_in_turns(cold: CudaDevice) -> None:
    schedules = list(offered_schedules(SMALL, cold.target))[:2]
    times = cold.compare(SMALL, schedules)
    assert times.failure is None
    print(f"\n{[median(windows) for windows in times.windows]}")
    assert all(median(windows) > 1.0 for windows in times.windows)
