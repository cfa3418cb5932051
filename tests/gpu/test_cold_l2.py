"""Cold and warm times of one kernel on a real GPU: what fits the L2 is slower cold, what doesn't is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import median

import pytest

from engine.codegen import illegal_because, offered_schedules, render
from engine.ir.kernel import Kernel
from engine.measure import CudaDevice
from engine.measure.cuda import CudaSettings
from engine.vocabulary import Measurement, Regime
from tests.gpu.bodies import add

SMALL, LARGE = add(1 << 20), add(1 << 27)
SETTINGS = CudaSettings(index=0, compilers=12)


@pytest.fixture(scope="module")
def cold() -> Iterator[CudaDevice]:
    with CudaDevice(replace(SETTINGS, cold_l2=True), render, illegal_because) as opened:
        yield opened


def _deployed(device: CudaDevice, kernel: Kernel) -> list[Measurement]:
    schedules = list(offered_schedules(kernel, device.target))[:6]
    futures = [device.submit(kernel, schedule, Regime.DEPLOY) for schedule in schedules]
    return [future.result(300) for future in futures]


def _best_us(found: list[Measurement]) -> float:
    return min(one.us for one in found if one.us is not None)


def test_what_fits_the_l2_is_slower_cold(device: CudaDevice, cold: CudaDevice) -> None:
    warm_us, cold_us = (_best_us(_deployed(one, SMALL)) for one in (device, cold))
    print(f"\nadd of 12 MiB: warm {warm_us:.2f} us, cold {cold_us:.2f} us")
    assert 1.1 * warm_us < cold_us < 10 * warm_us


def test_what_does_not_fit_takes_as_long_cold(device: CudaDevice, cold: CudaDevice) -> None:
    warm_us, cold_us = (_best_us(_deployed(one, LARGE)) for one in (device, cold))
    print(f"\nadd of 1.5 GiB: warm {warm_us:.1f} us, cold {cold_us:.1f} us")
    assert 0.95 * warm_us < cold_us < 1.15 * warm_us


def test_cold_windows_repeat_and_are_a_context_of_their_own(device: CudaDevice, cold: CudaDevice) -> None:
    assert cold.context == replace(device.context, cold_l2=True)
    for one in _deployed(cold, SMALL):
        assert one.timing is not None
        assert one.context_key == cold.context.key
        spread = (one.timing.high_us - one.timing.low_us) / one.timing.median_us
        print(f"\n{one.schedule}: {one.timing.median_us:.2f} us, spread {spread:.1%}")
        assert spread < 0.25


def test_cold_candidates_are_compared_in_turns(cold: CudaDevice) -> None:
    schedules = list(offered_schedules(SMALL, cold.target))[:2]
    times = cold.compare(SMALL, schedules)
    assert times.failure is None
    print(f"\n{[median(windows) for windows in times.windows]}")
    assert all(median(windows) > 1.0 for windows in times.windows)
