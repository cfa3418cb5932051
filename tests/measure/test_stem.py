"""Benchmark processes branch off from one that has imported: crashes in a row wait for no import, and none is left."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.measure import CudaDevice, stem_child
from engine.measure.health import WorkerState
from engine.measure.link import SPARE, WatchLimits
from engine.measure.process import Nursery, entry_command
from engine.measure.stem import Stem
from engine.vocabulary import Measurement, Regime, Status
from tests.measure.rig import a_kernel, an_engine, do, open_fake, processes_about, script, settled, until

KERNEL = a_kernel()
STEM = script("fake_stem")
NONE = ("/no/such/program",)
PROBED = {"probe_command": script("fake_probe")}


@pytest.fixture
def device() -> Iterator[CudaDevice]:
    """One whose benchmark processes come from its stem or not at all."""
    with open_fake(stem_command=STEM, worker_command=NONE, compilers=1) as opened:
        folder = opened._nursery.folder
        yield opened
    assert settled(folder)
    assert not folder.exists()


def measure(device: CudaDevice, what: str, number: int = 0) -> Measurement:
    return device.submit(KERNEL, do(what, number), Regime.RANKING).result(timeout=30)


def stem_of(device: CudaDevice) -> int:
    child = device._link._stem._child
    assert child is not None
    return child.pid


def children_of(pid: int) -> set[int]:
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def at_work(device: CudaDevice) -> WorkerState:
    return next(one for one in device.health().workers if one.step != SPARE)


def test_ten_crashes_in_a_row_wait_for_no_import(device: CudaDevice) -> None:
    """Each replacement comes from the one stem: there is no other program that could be run."""
    measure(device, "fine")
    stem, files = stem_of(device), len(os.listdir("/proc/self/fd"))
    start = time.monotonic()
    for number in range(10):
        failure = measure(device, "run-abort", number).failure
        assert failure is not None
        assert failure.cause == "the benchmark process died of SIGABRT in its first launch"
        assert measure(device, "fine", number).us == 10.0
    print(f"ten crashes, and a candidate after each, took {time.monotonic() - start:.2f} s")
    health = device.health()
    assert (health.respawns, len(health.respawned), len(health.workers)) == (10, 10, 2)
    assert stem_of(device) == stem
    assert children_of(stem) == {one.pid for one in health.workers}, "the dead are reaped"
    assert len(os.listdir("/proc/self/fd")) <= files + 2, "the pipes of the spare"


def test_a_process_is_alike_whether_it_branched_off_or_started(device: CudaDevice) -> None:
    worker = at_work(device).pid
    assert os.getpgid(worker) == worker
    output = [os.readlink(f"/proc/{worker}/fd/{fd}") for fd in (1, 2)]
    assert output == [str(device._nursery.folder / "worker-0-1.log")] * 2
    assert len(os.listdir(f"/proc/{worker}/fd")) == 5, "three of the usual, two of the channel, none of the stem's"
    ignored = next(line for line in Path(f"/proc/{worker}/status").read_text().splitlines() if "SigIgn" in line)
    assert int(ignored.split()[1], 16) & 1 << (signal.SIGINT - 1), "Ctrl-C is the engine's"


def test_a_loss_takes_its_group_along(device: CudaDevice) -> None:
    folder = device._nursery.folder
    assert measure(device, "run-with-a-child run-hang").status is Status.FAILED
    measure(device, "fine")
    assert settled(folder, 5), "caretaker, stem, compiler, benchmark process and spare"


def test_who_waits_for_the_stem_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_STEM", "never imports")
    device = open_fake(stem_command=STEM, worker_command=NONE, **PROBED)
    folder = device._nursery.folder
    device.start()
    until(lambda: device._link._stem._child is not None)
    device.close()
    assert settled(folder)


@pytest.mark.parametrize("caretaker", [True, False], ids=["with its caretaker", "after its caretaker"])
def test_kill_9_of_the_engine_leaves_nobody(tmp_path: Path, caretaker: bool) -> None:
    engine, (name, pid) = an_engine(
        tmp_path,
        f"device = open_fake(stem_command={STEM!r}, worker_command={NONE!r})\n"
        "device.submit(a_kernel(), do('run-abort'), Regime.RANKING).result()\n"
        "device.submit(a_kernel(), do('run-hang'), Regime.RANKING)\n"
        "while not any(one.step == 'first launch' for one in device.health().workers):\n"
        "    time.sleep(0.001)\n"
        "print(device._nursery.folder, device._nursery._caretaker.pid, flush=True)\n",
    )
    folder = Path(name)
    if not caretaker:
        os.kill(int(pid), signal.SIGKILL)
    engine.kill()
    engine.wait()
    assert settled(folder)
    if not caretaker:
        shutil.rmtree(folder)
    until(lambda: not folder.exists())


def test_the_stems_death_is_no_candidates_doing_and_the_run_goes_on() -> None:
    with open_fake(stem_command=STEM) as device:
        answer = device.submit(KERNEL, do("run-slowly"), Regime.RANKING)
        until(lambda: at_work(device).step == "first launch" and at_work(device).candidate.schedule)
        os.kill(stem_of(device), signal.SIGKILL)
        assert answer.result(30).us == 10.0
        assert (device.health().respawns, device.health().respawned) == (0, ())
        for number in range(3):
            failure = measure(device, "run-abort", number).failure
            assert failure is not None
            assert "SIGABRT" in failure.cause
            assert measure(device, "fine", number).us == 10.0
        assert device.health().respawns == 3
        assert "it died of SIGKILL" in device.health().missing[0]
        folder = device._nursery.folder
    assert settled(folder)


def test_a_stem_that_dies_while_nothing_is_asked_costs_nothing() -> None:
    with open_fake(stem_command=STEM) as device:
        measure(device, "run-abort")
        measure(device, "fine")
        until(lambda: len(device.health().workers) == 2)
        os.kill(stem_of(device), signal.SIGKILL)
        assert measure(device, "fine", 1).us == 10.0
        assert (device.health().respawns, len(device.health().respawned)) == (1, 1)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("dies", "it died of exit code 1 after printing: no torch for you"),
        ("has threads", "the imports have started 1 thread"),
        ("cannot fork", "no process is left"),
        ("never imports", "its imports did not end within 3 s"),
    ],
)
def test_without_a_stem_each_process_imports_for_itself(fault: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_STEM", fault)
    with open_fake(stem_command=STEM, watch_limits=WatchLimits(start_s=3.0)) as device:
        stem = device._link._stem
        assert not stem.stands
        (said,) = device.health().missing
        assert why in said
        assert measure(device, "run-abort").failure is not None
        assert measure(device, "fine").us == 10.0
        assert (device.health().respawns, device._link.starts, device._link.renewals) == (1, 2, 0)
        folder = device._nursery.folder
    assert settled(folder)


def test_a_program_that_is_not_there_is_no_stem() -> None:
    with open_fake(stem_command=NONE) as device:
        assert "/no/such/program" in device.health().missing[0]
        assert measure(device, "fine").us == 10.0


def test_two_devices_have_a_stem_each() -> None:
    with open_fake(stem_command=STEM, worker_command=NONE) as first:
        second = CudaDevice(first._settings, first._render, first._illegal_because, first)
        with second:
            assert stem_of(first) != stem_of(second)
            first.close()
            measure(second, "run-abort")
            assert measure(second, "fine").us == 10.0
    assert settled(second._nursery.folder)


def test_a_process_that_has_opened_the_gpu_may_not_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stem_child, "_path_of", lambda fd: "/dev/nvidiactl")
    assert "GPU" in stem_child.unsafe_because()


def test_what_the_benchmark_process_imports_lets_it_fork() -> None:
    nursery = Nursery()
    stem = Stem(nursery, NONE, entry_command("engine.measure.stem_child"), "stem")
    try:
        for number in range(2):
            child = stem.start(f"worker-{number}", 60.0)
            assert child.channel.receive(10) == {"ready": True}
            assert b"engine.measure.stem_child" in Path(f"/proc/{child.pid}/cmdline").read_bytes()
            child.channel.send({"device": 0, "folder": str(nursery.sources)})
            assert set(child.channel.receive(60)) in ({"unusable"}, {"context", "target"})
            child.kill()
            nursery.bury(child)
        assert (stem.missing, stem.stands) == ("", True)
    finally:
        stem.close()
        nursery.close()
    assert processes_about(nursery.folder) == []
