"""Hostile candidates on a real GPU: each costs exactly its own row, and the next one is timed as if nothing was."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from engine.codegen import Argument, KernelSource
from engine.ir.builder import GraphBuilder
from engine.ir.graph import TensorSpec
from engine.ir.kernel import Kernel
from engine.measure import CudaDevice
from engine.measure.cuda import CudaSettings
from engine.vocabulary import FailureKind, Measurement, Regime, Schedule, Status, Target
from tests.gpu.bodies import add
from tests.measure.rig import settled

HEAD = "import os\nimport sys\n\nimport triton\nimport triton.language as tl\n\n\n"
JIT = "@triton.jit\ndef add(x, y, out):\n    at = tl.program_id(0) * 1024 + tl.arange(0, 1024)\n"
RIGHT = JIT + "    tl.store(out + at, tl.load(x + at) + tl.load(y + at))\n"
IN_WORKER = "if 'engine.measure.worker' in sys.modules:\n    "

TEXTS = {
    "right": RIGHT,
    "far store": JIT + "    tl.store(out + at.to(tl.int64) + (1 << 42), tl.load(x + at))\n",
    "far load": JIT + "    tl.store(out + at, tl.load(x + at.to(tl.int64) - (1 << 43)))\n",
    "endless loop": JIT
    + "    seen = tl.load(x, volatile=True)\n"
    + "    while seen != 12345.678:\n"
    + "        seen = tl.load(x, volatile=True)\n"
    + "    tl.store(out + at, tl.load(x + at) + tl.load(y + at) + seen)\n",
    "abort": IN_WORKER + "os.abort()\n\n\n" + RIGHT,
    "exit": IN_WORKER + "os._exit(7)\n\n\n" + RIGHT,
    "segfault": IN_WORKER + "import ctypes; ctypes.string_at(0)\n\n\n" + RIGHT,
    "abort of the compiler": "if 'engine.measure.worker' not in sys.modules:\n    os.abort()\n\n\n" + RIGHT,
    "wrong": JIT + "    tl.store(out + at, tl.load(x + at) - tl.load(y + at))\n",
    "half": JIT + "    tl.store(out + at, tl.load(x + at) + tl.load(y + at), mask=at % 2 == 0)\n",
    "spoils its input": RIGHT + "    tl.store(x + at, 0.0)\n",
    "assertion": JIT + "    tl.store(out + at, tl.load(x + at) + tl.load(z + at))\n",
}
FAULTS = [
    ("far store", {FailureKind.ILLEGAL_ACCESS}),
    ("far load", {FailureKind.ILLEGAL_ACCESS}),
    ("endless loop", {FailureKind.HANG}),
    ("abort", {FailureKind.CRASH}),
    ("exit", {FailureKind.CRASH}),
    ("segfault", {FailureKind.CRASH}),
    ("abort of the compiler", {FailureKind.CRASH}),
    ("wrong", {FailureKind.WRONG_RESULT}),
    ("half", {FailureKind.WRONG_RESULT}),
    ("assertion", {FailureKind.COMPILE_ERROR}),
]
KERNEL = add(1 << 22)


def render(kernel: Kernel, schedule: Schedule, target: Target) -> KernelSource:
    text = HEAD + TEXTS[str(schedule["CASE"])] + f"# {schedule['NUMBER']}\n"
    arguments = (
        Argument("x", "input", 0, "*fp32"),
        Argument("y", "input", 1, "*fp32"),
        Argument("out", "output", 0, "*fp32"),
    )
    elements = kernel.body.output_specs()[0].numel
    return KernelSource(text, "add", arguments, (elements // 1024, 1, 1), 4, 1)


@pytest.fixture(scope="module")
def hostile() -> Iterator[CudaDevice]:
    with CudaDevice(CudaSettings(index=0, compilers=4), render, lambda *_: None) as opened:
        yield opened


def do(case: str, number: int = 0) -> Schedule:
    return Schedule.of({"CASE": case, "NUMBER": number})


def measure(device: CudaDevice, case: str, number: int = 0, kernel: Kernel = KERNEL) -> Measurement:
    return device.submit(kernel, do(case, number), Regime.RANKING).result(timeout=300)


@pytest.mark.parametrize(("case", "kinds"), FAULTS)
def test_a_fault_costs_one_row(hostile: CudaDevice, case: str, kinds: set[FailureKind]) -> None:
    alone = measure(hostile, "right", 0)
    before_respawns = hostile.health().respawns
    start = time.monotonic()
    fault = measure(hostile, case)
    cost_s = time.monotonic() - start
    after = [measure(hostile, "right", number) for number in range(1, 4)]
    print(
        f"\n{case}: {fault.failure} after {cost_s:.1f} s, respawns +{hostile.health().respawns - before_respawns}, "
        f"{alone.us:.2f} us before, {[round(m.us or 0, 2) for m in after]} after"
    )
    assert fault.status is Status.FAILED
    assert fault.failure is not None
    assert fault.failure.kind in kinds
    assert [str(m.failure) for m in after if m.status is not Status.OK] == []
    assert all(m.us == pytest.approx(alone.us, rel=0.25) for m in after)
    assert hostile.health().respawns - before_respawns <= 1, hostile.health().respawned


def test_faults_in_a_row_are_told_apart(hostile: CudaDevice) -> None:
    cases = ["abort", "right", "far store", "right", "wrong", "right", "exit", "right"]
    futures = [hostile.submit(KERNEL, do(case, 100 + n), Regime.RANKING) for n, case in enumerate(cases)]
    results = [future.result(timeout=300) for future in futures]
    told = [f"{case}: {r.failure or r.us}" for case, r in zip(cases, results, strict=True)]
    print("", *told, sep="\n")
    assert [r.status is Status.OK for r in results] == [case == "right" for case in cases], told


def test_who_spoils_the_inputs_costs_only_itself(hostile: CudaDevice) -> None:
    spoiled = measure(hostile, "spoils its input")
    after = measure(hostile, "right", 5)
    print(f"\nspoils its input: {spoiled.failure}, then {after.us} us, {after.failure}")
    assert after.status is Status.OK
    deployed = hostile.submit(KERNEL, do("spoils its input"), Regime.DEPLOY).result(timeout=300)
    assert deployed.failure is not None
    assert deployed.failure.kind is FailureKind.WRONG_RESULT, deployed.failure


def test_out_of_memory_is_a_row_and_memory_comes_back(hostile: CudaDevice) -> None:
    build = GraphBuilder()
    x, y = (build.input(TensorSpec.contiguous((1 << 36,), "float32")) for _ in range(2))
    huge = Kernel("pointwise", build.build(build.add("add", x, y)))
    failed = measure(hostile, "right", 6, huge)
    assert failed.failure is not None
    assert failed.failure.kind is FailureKind.OUT_OF_MEMORY, failed.failure
    assert measure(hostile, "right", 7).failure is None


def test_a_killed_benchmark_process_costs_one_row(hostile: CudaDevice) -> None:
    measure(hostile, "right", 8)
    future = hostile.submit(KERNEL, do("endless loop", 9), Regime.RANKING)
    time.sleep(1.0)
    for one in hostile.health().workers:
        os.kill(one.pid, signal.SIGKILL)
    killed = future.result(timeout=60)
    assert killed.failure is not None
    assert killed.failure.kind is FailureKind.CRASH, killed.failure
    assert "SIGKILL" in killed.failure.cause
    assert measure(hostile, "right", 10).failure is None


def test_closing_with_a_hung_kernel_leaves_nothing() -> None:
    device = CudaDevice(CudaSettings(index=0, compilers=2), render, lambda *_: None)
    folder = device._nursery.folder
    device.submit(KERNEL, do("endless loop", 11), Regime.RANKING)
    time.sleep(1.0)
    start = time.monotonic()
    device.close()
    print(f"\nclosed in {time.monotonic() - start:.1f} s")
    assert settled(folder)
    assert not folder.exists()
