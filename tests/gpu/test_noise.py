"""Times that repeat: the noise floor, the looks at the GPU, and comparisons in fresh processes, on a real GPU."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from engine.codegen import illegal_because, offered_schedules, render
from engine.ir.kernel import Kernel
from engine.measure import CudaDevice, GpuState, NoiseFloor, differences
from engine.measure.cuda import CudaSettings
from engine.measure.process import entry_command
from engine.vocabulary import Regime, Schedule, Status
from tests.gpu.bodies import matmul, rms_norm
from tests.measure.rig import settled

KERNELS = [matmul(1024, 1024, 1024, "bfloat16"), rms_norm(16384, 4096)]
SETTINGS = replace(CudaSettings(index=0, compilers=12), sampler_command=entry_command("engine.measure.sampler"))


@pytest.fixture(scope="module")
def watched() -> Iterator[CudaDevice]:
    """A device with the sampler that a run has too."""
    with CudaDevice(SETTINGS, render, illegal_because) as opened:
        yield opened
        folder = opened._nursery.folder
    assert settled(folder)


def test_clocks_heat_and_power_are_looked_at_without_root(watched: CudaDevice) -> None:
    state = _a_state(watched)
    print(f"\n{state}")
    assert state.sm_mhz is not None
    assert 100 < state.sm_mhz <= (state.sm_max_mhz or 10_000)
    assert state.temperature_c is not None
    assert 10 < state.temperature_c < 110
    assert state.power_w is not None
    assert 5 < state.power_w < 2000
    assert state.throttle is not None


def test_the_engines_own_processes_are_no_company(watched: CudaDevice) -> None:
    _finalists(watched, KERNELS[0])
    before = _a_state(watched).at
    deadline = time.monotonic() + 30
    while (state := _a_state(watched)).at <= before + 2.5:
        assert time.monotonic() < deadline, "the sampler stands still"
        time.sleep(0.1)
    print(f"\nothers: {state.others}")
    assert not state.others


def test_the_noise_floor_is_small_and_not_nothing(watched: CudaDevice) -> None:
    _finalists(watched, KERNELS[0])
    noise = _noise(watched)
    print(f"\nnoise floor {noise.us:.4f} us, {noise.share:.3%}")
    assert 0.0 < noise.share < 0.02


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.label} {kernel.shape_text}")
def test_a_comparison_repeats_in_three_fresh_processes(watched: CudaDevice, kernel: Kernel) -> None:
    finalists = _finalists(watched, kernel)
    floor = _noise(watched).share
    processes = [watched.compare(kernel, finalists, fresh=fresh) for fresh in (False, True)]
    assert [times.failure for times in processes] == [None, None]
    printed = differences([times.windows for times in processes], floor)
    for schedule, one in zip(finalists[1:], printed, strict=True):
        print(
            f"\n{one.ratio:.4f} ({one.low:.4f} to {one.high:.4f}) p {one.p_value:.1e} d {one.effect:+.1f} {one.verdict}"
        )
        print(f"  {schedule}")
    outside = []
    for number in range(3):
        again = watched.compare(kernel, finalists, fresh=True)
        assert again.failure is None
        for at, (one, other) in enumerate(zip(differences([again.windows], floor), printed, strict=True), start=1):
            print(f"  process {number + 3}, candidate {at}: {one.ratio:.4f}")
            if not other.low <= one.ratio <= other.high:
                outside.append((number, at, one.ratio, other.low, other.high))
    assert outside == []
    assert watched.health().respawns == 0, watched.health().respawned


def test_a_kernel_never_beats_itself(watched: CudaDevice) -> None:
    best = _finalists(watched, KERNELS[1])[0]
    times = [watched.compare(KERNELS[1], [best, best, best], fresh=fresh).windows for fresh in (False, True)]
    found = differences(times, _noise(watched).share)
    print(f"\n{[(round(one.ratio, 4), str(one.verdict)) for one in found]}")
    assert {str(one.verdict) for one in found} == {"within noise"}


def _finalists(device: CudaDevice, kernel: Kernel) -> list[Schedule]:
    """The four fastest of some candidates, by deploy time."""
    offered = list(offered_schedules(kernel, device.target))
    answers = [device.submit(kernel, schedule, Regime.DEPLOY) for schedule in offered[:: max(1, len(offered) // 32)]]
    results = [answer.result(timeout=300) for answer in answers]
    good = sorted((item for item in results if item.status is Status.OK), key=lambda item: item.us or 0.0)
    return [item.schedule for item in good[:4]]


def _noise(device: CudaDevice) -> NoiseFloor:
    noise = device.health().noise
    assert noise is not None
    return noise


def _a_state(device: CudaDevice, limit_s: float = 60.0) -> GpuState:
    deadline = time.monotonic() + limit_s
    while not (states := device.health().states):
        assert not device.health().missing, device.health().missing
        assert time.monotonic() < deadline, "no look at the GPU"
        time.sleep(0.05)
    return states[0][1]
