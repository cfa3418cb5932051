"""What a device tells of its processes: what compiles and since when, what was lost to whom, and a full disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.codegen import KernelSource
from engine.measure import CudaDevice, compile_pool
from engine.measure.compile_pool import CompileLimits, CompilePool
from engine.measure.process import Nursery
from engine.vocabulary import FailureKind, Regime, Status, Target
from tests.measure.rig import a_kernel, do, open_fake, script, until

KERNEL = a_kernel()
PATIENT = CompileLimits(low_s=30.0, high_s=60.0)


@pytest.fixture
def device() -> Iterator[CudaDevice]:
    with open_fake(compile_limits=PATIENT) as opened:
        yield opened


def test_a_running_compile_is_named_and_can_be_killed(device: CudaDevice) -> None:
    answer = device.submit(KERNEL, do("compile-hang"), Regime.RANKING)
    until(lambda: device.health().compiles)
    (compiling,) = device.health().compiles
    assert compiling.candidate.kernel == KERNEL.key
    assert compiling.candidate.schedule == str(do("compile-hang"))
    until(lambda: device.health().compiles[0].age_s > compiling.age_s)
    assert not device.kill_compile(compiling.number + 1)
    assert device.kill_compile(compiling.number)
    measurement = answer.result(20)
    assert measurement.failure is not None
    assert measurement.failure.kind is FailureKind.COMPILE_TIMEOUT
    assert "a person" in measurement.failure.cause
    assert not device.kill_compile(compiling.number)
    (lost,) = device.health().respawned
    assert (lost.process, lost.candidate) == ("compiler", compiling.candidate)
    assert device.submit(KERNEL, do("fine"), Regime.RANKING).result(20).status is Status.OK


def test_a_worker_says_what_it_is_at_and_who_took_it_down(device: CudaDevice) -> None:
    answer = device.submit(KERNEL, do("run-hang"), Regime.RANKING)
    until(lambda: [one for one in device.health().workers if one.candidate.schedule])
    worker = device.health().workers[0]
    assert worker.step in ("start", "first launch")
    assert worker.device == "cuda:0"
    assert worker.candidate.schedule == str(do("run-hang"))
    assert answer.result(20).failure is not None
    assert device.submit(KERNEL, do("run-abort"), Regime.RANKING).result(20).failure is not None
    first, second = device.health().respawned
    assert (first.device, first.process) == ("cuda:0", "benchmark")
    assert [first.candidate.schedule, second.candidate.schedule] == [str(do("run-hang")), str(do("run-abort"))]
    assert "did not end" in first.cause
    assert "SIGABRT" in second.cause


def test_a_device_that_is_closed_blames_nobody() -> None:
    with open_fake(compile_limits=PATIENT) as device:
        device.submit(KERNEL, do("compile-hang"), Regime.RANKING)
        until(lambda: device.health().compiles)
    assert device.health().respawned == ()


def test_cold_times_are_of_a_context_of_their_own(device: CudaDevice) -> None:
    with open_fake(cold_l2=True) as cold:
        assert cold.context.cold_l2
        assert cold.context.key != device.context.key
        measurement = cold.submit(KERNEL, do("fine"), Regime.RANKING).result(20)
    assert measurement.context_key == cold.context.key


def test_a_full_disk_fails_no_candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_pool, "ROOM_RETRY_S", 0.05)
    nursery = Nursery()
    pool = CompilePool(nursery, script("fake_compiler"), 1, PATIENT)
    try:
        mark = tmp_path / "full"
        mark.touch()
        source = KernelSource(f"disk-full-while {mark} exists", "entry", (), (1, 1, 1), 4, 1)
        reply = pool.submit(source, Target(), 3)
        until(lambda: pool.full)
        assert "no space" in pool.full
        assert not reply.done()
        mark.unlink()
        assert reply.result(20).failure is None
        assert pool.full == ""
    finally:
        pool.close()
        nursery.close()


def test_a_pool_that_is_closed_waits_for_no_space(tmp_path: Path) -> None:
    nursery = Nursery()
    pool = CompilePool(nursery, script("fake_compiler"), 1, PATIENT)
    source = KernelSource(f"disk-full-while {tmp_path} exists", "entry", (), (1, 1, 1), 4, 1)
    reply = pool.submit(source, Target(), 3)
    until(lambda: pool.full)
    pool.close()
    nursery.close()
    assert reply.done()
