"""What a real device tells of its processes, and a real disk without space under Triton's cache."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.codegen import illegal_because, offered_schedules, render
from engine.measure import CudaDevice
from engine.measure.cuda import CudaSettings
from engine.vocabulary import FailureKind, Regime, Status
from tests.gpu.bodies import matmul

KERNEL = matmul(1024, 1024, 1024, "bfloat16")
OF_THE_DISK = (FailureKind.COMPILE_ERROR, FailureKind.CRASH)


def test_workers_and_compiles_are_named_while_they_run(device: CudaDevice) -> None:
    schedules = list(offered_schedules(KERNEL, device.target))[:24]
    futures = [device.submit(KERNEL, schedule, Regime.RANKING) for schedule in schedules]
    compiling, steps = set(), set()
    while not all(future.done() for future in futures):
        health = device.health()
        compiling |= {one.candidate.schedule for one in health.compiles}
        steps |= {one.step for one in health.workers}
        time.sleep(0.002)
    print(f"\n{len(compiling)} compiles seen, steps {sorted(steps)}")
    assert compiling <= {str(schedule) for schedule in schedules}
    assert len(compiling) > 3
    assert {"timing"} <= steps


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk of 4 MiB where temporary folders are made; needs the right to mount."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(tmp_path)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small disk can't be mounted here")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def test_a_full_disk_is_said_and_fails_no_candidate(small_disk: Path) -> None:
    with CudaDevice(CudaSettings(index=0, compilers=2), render, illegal_because) as device:
        filler = small_disk / "filler"
        filler.write_bytes(b"0" * (2 << 20))
        schedules = list(offered_schedules(KERNEL, device.target))
        futures = [device.submit(KERNEL, schedule, Regime.RANKING) for schedule in schedules[:400]]
        deadline = time.monotonic() + 240
        while not device.health().disk_full and not all(future.done() for future in futures):
            assert time.monotonic() < deadline, device.health()
            time.sleep(0.05)
        full = device.health().disk_full
        print(f"\n{full}")
        causes = [str(one.result().failure) for one in futures if one.done()]
        assert full.startswith("no space is left under"), causes
        subprocess.run(["mount", "-o", "remount,size=1g", str(small_disk)], check=True)
        first = [future.result(240) for future in futures[:40]]
        respawned = device.health().respawned
    failures = [(one, one.failure) for one in first if one.failure is not None]
    told = [f"{failure.kind}: {failure.cause} ({one.schedule})" for one, failure in failures]
    print(f"\n{sum(one.status is Status.OK for one in first)} of {len(first)} ok", *told, sep="\n")
    print(*(f"replaced: {one.process}, {one.cause} ({one.candidate.schedule})" for one in respawned), sep="\n")
    blamed = [text for text, (_, failure) in zip(told, failures, strict=True) if failure.kind in OF_THE_DISK]
    assert not blamed, blamed
