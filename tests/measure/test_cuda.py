"""A candidate may do anything to compilers and benchmark process: it costs exactly its own row, and nothing is left."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from engine.codegen import KernelSource
from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.ir.extern import arguments_to_json
from engine.ir.plan import BufferView, Grouping, KernelCall
from engine.measure import CudaDevice, DeviceError, Starts
from engine.measure.compile_pool import CompileLimits
from engine.vocabulary import FailureKind, Measurement, Regime, Schedule, Status, Target
from tests.measure.rig import a_kernel, an_engine, do, open_fake, processes_about, script, settings, settled

KERNEL = a_kernel()
FAULTS = [
    ("run-abort", FailureKind.CRASH, "SIGABRT"),
    ("run-exit", FailureKind.CRASH, "exit code 3"),
    ("run-hang", FailureKind.HANG, "first launch"),
    ("run-illegal", FailureKind.ILLEGAL_ACCESS, "illegal memory access"),
    ("run-oom", FailureKind.OUT_OF_MEMORY, "out of memory"),
    ("run-wrong", FailureKind.WRONG_RESULT, "4.2e-01"),
    ("compile-abort", FailureKind.CRASH, "SIGABRT"),
    ("compile-hang", FailureKind.COMPILE_TIMEOUT, "longer"),
    ("compile-error", FailureKind.COMPILE_ERROR, "ptxas"),
    ("render-error", FailureKind.COMPILE_ERROR, "no such tile"),
    ("illegal", FailureKind.ILLEGAL, "forbidden"),
]


@pytest.fixture(scope="module", params=[(), script("fake_stem")], ids=["alone", "stem"])
def device(request: pytest.FixtureRequest) -> Iterator[CudaDevice]:
    """Whose benchmark processes start by themselves, or branch off from a stem."""
    with open_fake(stem_command=request.param) as opened:
        yield opened


def measure(device: CudaDevice, what: str, number: int = 0, regime: Regime = Regime.RANKING) -> Measurement:
    return device.submit(KERNEL, do(what, number), regime).result(timeout=30)


def wait_until(condition: object, limit_s: float = 10.0) -> bool:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(("what", "kind", "words"), FAULTS)
def test_a_fault_costs_one_row_and_the_next_candidate_is_timed(
    device: CudaDevice, what: str, kind: FailureKind, words: str
) -> None:
    futures = [device.submit(KERNEL, do(each), Regime.RANKING) for each in ("before", what, "after")]
    before, fault, after = (future.result(timeout=30) for future in futures)
    assert (before.status, after.status) == (Status.OK, Status.OK)
    assert fault.status is Status.FAILED
    assert fault.timing is None
    assert fault.failure is not None
    assert fault.failure.kind is kind
    assert words in fault.failure.cause
    assert "\n" not in fault.failure.cause
    assert measure(device, "once more").us == 10.0


def test_a_result_carries_what_compiler_and_benchmark_said(device: CudaDevice) -> None:
    result = measure(device, "fine", regime=Regime.DEPLOY)
    assert (result.kernel_key, result.regime, result.context_key) == (KERNEL.key, Regime.DEPLOY, device.context.key)
    assert result.timing is not None
    assert result.timing.samples == (9.0, 10.0, 11.0)
    assert (result.build.registers, result.build.spills, result.build.shared_bytes) == (32, 8, 1024)
    assert result.error == 1e-7
    assert not result.cached


def test_a_nan_error_is_left_out_since_json_has_none(device: CudaDevice) -> None:
    assert measure(device, "run-nan").error is None


def test_noise_on_stdout_and_stderr_reaches_neither_results_nor_terminal(
    device: CudaDevice, capfd: pytest.CaptureFixture[str]
) -> None:
    assert measure(device, "run-noise").status is Status.OK
    assert capfd.readouterr() == ("", "")


def test_ranking_and_deploy_compile_once(device: CudaDevice) -> None:
    for regime in (Regime.RANKING, Regime.DEPLOY, Regime.DEPLOY):
        assert measure(device, "shared", 7, regime).status is Status.OK
    compiled = (device._nursery.folder / "sources" / "compiled.txt").read_text().splitlines()
    assert compiled.count(str(do("shared", 7))) == 1


def test_health_counts_respawns_and_busy_time() -> None:
    with open_fake() as device:
        assert device.health().respawns == 0
        measure(device, "run-abort")
        measure(device, "fine")
        health = device.health()
    assert health.respawns == 1
    assert health.busy_s > 0
    assert health.compiling == 0


def test_a_hanging_compiler_dies_with_its_children() -> None:
    with open_fake(compilers=1) as device:
        folder = device._nursery.folder
        future = device.submit(KERNEL, do("compile-hang"), Regime.RANKING)
        assert wait_until(lambda: len(processes_about(folder)) >= 4), "the compiler has started its child"
        failure = future.result(timeout=30).failure
        assert failure is not None
        assert failure.kind is FailureKind.COMPILE_TIMEOUT
        assert wait_until(lambda: len(processes_about(folder)) == 2), "caretaker and benchmark process"


def test_slow_compiles_run_side_by_side() -> None:
    with open_fake(compilers=4, compile_limits=CompileLimits()) as device:
        futures = [device.submit(KERNEL, do("compile-slow", n), Regime.RANKING) for n in range(4)]
        assert wait_until(lambda: device.health().compiling > 1)
        assert all(future.result(timeout=30).status is Status.OK for future in futures)


@pytest.mark.parametrize("what", ["fine", "run-hang", "compile-hang"])
def test_close_in_the_middle_leaves_nothing(what: str) -> None:
    device = open_fake()
    folder = device._nursery.folder
    futures = [device.submit(KERNEL, do(what, n), Regime.RANKING) for n in range(6)]
    start = time.monotonic()
    device.close()
    device.close()
    assert time.monotonic() - start < 10
    assert all(future.done() for future in futures)
    for future in futures:
        if future.cancelled():
            with pytest.raises(CancelledError):
                future.result()
    assert settled(folder)
    assert not folder.exists()


def test_a_closed_device_refuses_in_words() -> None:
    device = open_fake()
    device.close()
    with pytest.raises(DeviceError, match="closed"):
        device.submit(KERNEL, do("fine"), Regime.RANKING).result(timeout=5)


def test_a_benchmark_process_that_never_starts_is_one_sentence() -> None:
    command = (sys.executable, "-c", "import sys; sys.exit('no driver for you')")
    with pytest.raises(DeviceError, match="exit code 1 after printing: no driver for you"):
        open_fake(worker_command=command)


def test_compilers_that_never_start_are_one_sentence() -> None:
    command = (sys.executable, "-c", "import sys; sys.exit('no triton for you')")
    with open_fake(compile_command=command) as device, pytest.raises(DeviceError, match="no triton for you"):
        measure(device, "fine")


def test_a_device_opened_in_a_short_thread_outlives_it() -> None:
    opened: list[CudaDevice] = []
    thread = threading.Thread(target=lambda: opened.append(open_fake()))
    thread.start()
    thread.join()
    with opened[0] as device:
        assert measure(device, "fine").status is Status.OK
        assert device.health().respawns == 0


def test_a_killed_benchmark_process_is_replaced(device: CudaDevice) -> None:
    future = device.submit(KERNEL, do("run-hang", 99), Regime.RANKING)
    assert wait_until(lambda: any(one.step == "first launch" for one in device.health().workers))
    os.kill(next(one.pid for one in device.health().workers if one.step == "first launch"), signal.SIGKILL)
    failure = future.result(timeout=30).failure
    assert failure is not None
    assert failure.kind in (FailureKind.CRASH, FailureKind.HANG)
    assert measure(device, "fine").status is Status.OK


def test_kill_9_of_the_engine_leaves_nothing(tmp_path: Path) -> None:
    engine, (name,) = an_engine(
        tmp_path,
        "device = open_fake()\n"
        "device.submit(a_kernel(), do('compile-hang'), Regime.RANKING)\n"
        "print(device._nursery.folder, flush=True)\n",
    )
    folder = Path(name)
    assert wait_until(lambda: len(processes_about(folder)) >= 4)
    engine.kill()
    engine.wait()
    assert wait_until(lambda: processes_about(folder) == [] and not folder.exists())


def test_assemble_times_the_plan_and_passes_on_its_failure(device: CudaDevice) -> None:
    specs = (*KERNEL.body.input_specs(), *KERNEL.body.output_specs())
    views = tuple(BufferView(i, spec) for i, spec in enumerate(specs))
    grouping = Grouping(specs, (KernelCall(KERNEL, views[:2], (2,)),), views[2:])
    result = device.assemble(grouping, {KERNEL.key: do("fine")})
    assert result.timing is not None
    assert result.timing.median_us == 10.0
    assert result.failure is None
    crashed = device.assemble(grouping, {KERNEL.key: do("run-abort")})
    assert crashed.timing is None
    assert crashed.failure is not None
    assert crashed.failure.kind is FailureKind.CRASH


def test_an_assembly_with_dependent_launch_compiles_the_text_that_waits() -> None:
    compiled: list[str] = []

    def rendered(kernel: Kernel, schedule: Schedule, target: Target) -> KernelSource:
        return KernelSource(f"def entry(x):\n    {schedule}\n", "entry", (), (1, 1, 1), 4, 1)

    specs = (*KERNEL.body.input_specs(), *KERNEL.body.output_specs())
    views = tuple(BufferView(i, spec) for i, spec in enumerate(specs))
    grouping = Grouping(specs, (KernelCall(KERNEL, views[:2], (2,)),), views[2:])
    with CudaDevice(settings(), rendered, lambda *_: None) as device:
        submit = device._pool.submit

        def noted(source: KernelSource, *rest: Any) -> Any:
            compiled.append(source.text)
            return submit(source, *rest)

        device._pool.submit = noted  # type: ignore[method-assign]
        results = [device.assemble(grouping, {KERNEL.key: do("fine")}, pdl=pdl) for pdl in (False, True)]
    assert all(result.timing is not None for result in results)
    assert ["gdc_wait" in text for text in compiled] == [False, True]


def test_a_library_call_is_measured_without_a_compile(device: CudaDevice) -> None:
    build = GraphBuilder()
    spec = TensorSpec.contiguous((4, 8), "float32")
    call = arguments_to_json([{"tensor": 0}, 1], {})
    kernel = Kernel("extern", build.build(build.extern("aten.cumsum.default", (build.input(spec),), call, spec)))
    done = device.submit(kernel, do("fine"), Regime.RANKING).result(timeout=30)
    assert done.status is Status.OK
    assert device.health().compiling == 0


PROBED = {"probe_command": script("fake_probe")}


def test_a_probed_device_starts_its_benchmark_process_with_the_first_request() -> None:
    with open_fake(**PROBED) as device:
        assert device.context.gpu == "Fake GPU"
        assert device.health().workers == ()
        assert measure(device, "fine").status is Status.OK
        assert len(device.health().workers) == 1
        assert device.health().noise is not None


def test_a_probed_device_starts_when_it_is_told_to() -> None:
    with open_fake(**PROBED) as device:
        assert isinstance(device, Starts)
        device.start()
        until = time.monotonic() + 20
        while device.health().noise is None and time.monotonic() < until:
            time.sleep(0.01)
        assert device.health().noise is not None


def test_a_probed_device_that_nothing_was_asked_of_leaves_nothing() -> None:
    device = open_fake(**PROBED)
    folder = device._nursery.folder
    device.close()
    assert settled(folder)
    assert device.health().respawns == 0
    refused = device.submit(a_kernel(), do("fine"), Regime.RANKING)
    assert isinstance(refused.exception(), DeviceError)
