"""A full disk takes a compiler or a benchmark process down by itself: the candidate waits for room and is done again.

What is full is decided by how much of the disk must be free, so that any disk is a full one while a test says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from engine import disk as disks
from engine.codegen import KernelSource
from engine.measure import compile_pool, link
from engine.measure.compile_pool import CompileLimits, CompilePool
from engine.measure.process import Nursery, entry_command
from engine.runtime.machine_code import is_whole
from engine.vocabulary import Regime, Schedule, Status, Target
from tests.measure.rig import a_kernel, do, open_fake, script, until
from tests.runtime.sources import add_source

KERNEL = a_kernel()
PATIENT = CompileLimits(low_s=30.0, high_s=60.0)


@dataclass(frozen=True)
class Disk:
    """Full as long as the file `mark` is there."""

    mark: Path
    clear: Callable[[], None]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    mark = tmp_path / "full"
    mark.touch()
    monkeypatch.setattr(disks, "LEAST_BYTES", 1 << 62)
    for module in (compile_pool, link):
        monkeypatch.setattr(module, "ROOM_RETRY_S", 0.05)

    def clear() -> None:
        mark.unlink()
        monkeypatch.setattr(disks, "LEAST_BYTES", 0)

    return Disk(mark, clear)


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


def text(what: str) -> KernelSource:
    return KernelSource(what, "entry", (), (1, 1, 1), 4, 1)


def test_a_compiler_that_dies_of_a_full_disk_is_started_again(disk: Disk, nursery: Nursery) -> None:
    pool = CompilePool(nursery, script("fake_compiler"), 1, PATIENT)
    try:
        reply = pool.submit(text(f"compile-dies-while {disk.mark} exists"), Target(), 3)
        until(lambda: pool.full)
        assert pool.full.startswith("no space is left under")
        assert not reply.done()
        disk.clear()
        assert reply.result(20).failure is None
        assert (pool.full, pool.respawned) == ("", ())
    finally:
        pool.close()


def test_a_compiler_that_dies_with_room_on_the_disk_is_a_failure(disk: Disk, nursery: Nursery) -> None:
    disk.clear()
    disk.mark.touch()
    pool = CompilePool(nursery, script("fake_compiler"), 1, PATIENT)
    try:
        failure = pool.submit(text(f"compile-dies-while {disk.mark} exists"), Target(), 3).result(20).failure
        assert failure is not None
        assert failure.cause == "the compiler died of SIGBUS"
        assert len(pool.respawned) == 1
    finally:
        pool.close()


def test_one_that_waits_is_told_of_while_others_go_on(disk: Disk, nursery: Nursery) -> None:
    pool = CompilePool(nursery, script("fake_compiler"), 2, PATIENT)
    try:
        waiting = pool.submit(text(f"disk-full-while {disk.mark} exists"), Target(), 3)
        until(lambda: pool.full)
        assert pool.submit(text("fine"), Target(), 3).result(20).failure is None
        assert pool.full
        disk.clear()
        assert waiting.result(20).failure is None
        assert pool.full == ""
    finally:
        pool.close()


def test_a_failure_after_the_wait_ends_it(disk: Disk, nursery: Nursery) -> None:
    pool = CompilePool(nursery, script("fake_compiler"), 1, PATIENT)
    try:
        reply = pool.submit(text(f"disk-full-while {disk.mark} exists, then compile-error"), Target(), 3)
        until(lambda: pool.full)
        disk.clear()
        assert reply.result(20).failure is not None
        assert pool.full == ""
    finally:
        pool.close()


def test_a_benchmark_process_that_dies_of_a_full_disk_is_started_again(disk: Disk) -> None:
    with open_fake(compile_limits=PATIENT) as device:
        schedule = Schedule.of({"DO": f"run-dies-while {disk.mark} exists", "NUMBER": 0})
        answer = device.submit(KERNEL, schedule, Regime.RANKING)
        until(lambda: device.health().disk_full)
        assert not answer.done()
        disk.clear()
        measurement = answer.result(30)
        assert measurement.status is Status.OK
        health = device.health()
        assert (health.disk_full, health.respawns, health.respawned) == ("", 0, ())
        assert device.submit(KERNEL, do("fine"), Regime.RANKING).result(30).status is Status.OK


def test_a_device_that_waits_for_room_closes_at_once(disk: Disk) -> None:
    with open_fake(compile_limits=PATIENT) as device:
        schedule = Schedule.of({"DO": f"run-dies-while {disk.mark} exists", "NUMBER": 0})
        answer = device.submit(KERNEL, schedule, Regime.RANKING)
        until(lambda: device.health().disk_full)
    assert answer.cancelled()


def test_a_child_without_room_for_its_log_runs_without(nursery: Nursery) -> None:
    (nursery.folder / "compile-0.log").mkdir()  # which can't be opened for writing either
    pool = CompilePool(nursery, script("fake_compiler"), 1, PATIENT)
    try:
        assert pool.submit(text("fine"), Target(), 3).result(20).failure is None
    finally:
        pool.close()


def test_half_a_binary_is_not_kept(disk: Disk, tmp_path: Path) -> None:
    """ptxas ends well where the disk took only a part of what it wrote; this one ends as the disk would have it."""
    found = find_spec("triton")
    assert found is not None
    assert found.origin is not None
    real = Path(found.origin).parent / "backends/nvidia/bin/ptxas"
    ptxas = tmp_path / "ptxas"
    ptxas.write_text(
        f'#!/bin/sh\n"{real}" "$@" || exit $?\nfor word in "$@"; do last="$before"; before="$word"; done\n'
        f'[ -e "{disk.mark}" ] || exit 0\nwhile [ $# -gt 1 ]; do [ "$1" = -o ] && truncate -s 4096 "$2"; shift; done\n'
    )
    ptxas.chmod(0o755)
    nursery = Nursery({"TRITON_PTXAS_PATH": str(ptxas)})
    pool = CompilePool(nursery, entry_command("engine.measure.compile_worker"), 1, PATIENT)
    try:
        reply = pool.submit(add_source(), Target(), 3)
        until(lambda: pool.full or reply.done(), 60)
        assert pool.full.startswith("no space is left under")
        assert not list(nursery.folder.rglob("*.cubin"))
        disk.mark.unlink()
        assert reply.result(60).failure is None
        (binary,) = nursery.folder.rglob("*.cubin")
        assert is_whole(binary.read_bytes())
    finally:
        pool.close()
        nursery.close()
