"""Looking at the GPU: what NVML says becomes a state, what it refuses becomes None, and the sampler leaves nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.measure.gpu_state import GpuState, Guard, Throttle
from engine.measure.process import Nursery
from engine.measure.sampler import describe_missing, read_state
from engine.measure.sampling import Sampling
from tests.measure.rig import open_fake, script, settled


class FakeNvml:
    """As much of pynvml as is asked; `refused` names calls that the driver doesn't support."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    class NVMLError(Exception):
        pass

    def __init__(self, *refused: str, reasons: int = 0, pids: tuple[int, ...] = ()) -> None:
        self._refused = refused
        self._reasons = reasons
        self._pids = pids

    def _answer(self, name: str, value: Any) -> Any:
        if name in self._refused:
            raise self.NVMLError("not supported")
        return value

    def nvmlDeviceGetClockInfo(self, handle: object, kind: int) -> int:
        return int(self._answer("clock", {1: 1980, 2: 3201}[kind]))

    def nvmlDeviceGetMaxClockInfo(self, handle: object, kind: int) -> int:
        return 1980

    def nvmlDeviceGetTemperature(self, handle: object, sensor: int) -> int:
        return int(self._answer("temperature", 41))

    def nvmlDeviceGetPowerUsage(self, handle: object) -> int:
        return int(self._answer("power", 123_456))

    def nvmlDeviceGetUtilizationRates(self, handle: object) -> object:
        return self._answer("use", SimpleNamespace(gpu=37, memory=2))

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: object) -> int:
        return int(self._answer("reasons", self._reasons))

    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> object:
        return self._answer("processes", [SimpleNamespace(pid=pid) for pid in self._pids])


def look(nvml: FakeNvml, engine: int = 1 << 30) -> GpuState:
    return read_state(nvml, object(), engine, lambda: 5.0)


def test_a_state_is_what_nvml_says() -> None:
    state = look(FakeNvml(reasons=0x1 | 0x4 | 0x20))
    assert state == GpuState(
        *(5.0, 1980, 1980, 3201, 41, 123.456, 0.37),
        throttle=(Throttle.POWER_CAP, Throttle.HEAT),
        others=(),
    )
    assert GpuState.from_data(json.loads(json.dumps(asdict(state)))) == state


def test_what_the_driver_refuses_is_none() -> None:
    state = look(FakeNvml("clock", "temperature", "power", "use", "reasons", "processes"))
    assert state == GpuState(5.0, sm_max_mhz=1980)
    assert GpuState.from_data(json.loads(json.dumps(asdict(state)))) == state


def test_other_processes_are_those_that_are_not_the_engines_children() -> None:
    with _sleeper() as child:
        ours = look(FakeNvml(pids=(child,)), engine=os.getpid())
        theirs = look(FakeNvml(pids=(child,)), engine=1 << 30)
    assert ours.others == ()
    assert theirs.others is not None
    assert theirs.others[0].startswith(f"{child} ")


def test_a_process_that_branched_off_a_child_is_the_engines() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(flush=True); input()'])"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as child:  # type: ignore[call-overload]
        child.stdout.readline()
        (grandchild,) = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
        assert look(FakeNvml(pids=(int(grandchild),)), engine=os.getpid()).others == ()
        assert look(FakeNvml(pids=(int(grandchild),)), engine=1 << 30).others != ()
        child.stdin.close()


@pytest.mark.parametrize(("hidden", "others"), [((), ()), ((1 << 29,), ()), ((1 << 29, 1 + (1 << 29)), ("",))])
def test_of_processes_without_a_face_one_may_be_ours(hidden: tuple[int, ...], others: tuple[str, ...]) -> None:
    assert look(FakeNvml(pids=hidden)).others == others


def test_a_missing_package_is_said_with_what_to_do() -> None:
    assert "pip install nvidia-ml-py" in describe_missing(ModuleNotFoundError("No module named 'pynvml'"))
    assert describe_missing(OSError("no library")) == "clocks and temperature are not sampled: no library"


def test_the_guard_warns_once_of_each_trouble_and_of_nothing_on_a_good_gpu() -> None:
    guard = Guard()
    assert guard.warnings(GpuState(0.0)) == []
    assert guard.warnings(GpuState(0.0, throttle=(), others=())) == []
    first = guard.warnings(GpuState(1.0, throttle=(Throttle.HEAT,), others=("7 python", "")))
    assert len(first) == 2
    assert "7 python, one that the system hides" in first[1]
    assert guard.warnings(GpuState(2.0, throttle=(Throttle.HEAT,), others=("8 python",))) == []
    assert len(guard.warnings(GpuState(3.0, throttle=(Throttle.HEAT, Throttle.POWER_BRAKE)))) == 1


@pytest.mark.parametrize("throttle", list(Throttle))
def test_every_reason_has_a_sentence(throttle: Throttle) -> None:
    assert len(Guard().warnings(GpuState(0.0, throttle=(throttle,)))) == 1


def test_a_device_tells_the_latest_look_and_leaves_no_sampler() -> None:
    with open_fake(sampler_command=script("fake_sampler")) as device:
        _until(lambda: bool(device.health().states))
        name, state = device.health().states[0]
        assert (name, state.sm_mhz, state.throttle) == ("cuda:0", 1980, (Throttle.POWER_CAP,))
        folder = device._nursery.folder
    assert settled(folder)


def test_looks_go_on_at_their_pace() -> None:
    nursery = Nursery()
    sampling = Sampling(nursery, script("fake_sampler"), 0, period_s=0.01)
    _until(lambda: sampling.state is not None and sampling.state.at >= 3.0)
    sampling.close()
    assert sampling.missing == ""
    nursery.close()
    assert settled(nursery.folder)


@pytest.mark.parametrize(
    ("fault", "said"),
    [("missing", "no NVML here"), ("dies", "not sampled any more"), ("talks nonsense", "not sampled")],
)
def test_a_sampler_in_trouble_costs_no_measurement(fault: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SAMPLER", fault)
    with open_fake(sampler_command=script("fake_sampler")) as device:
        _until(lambda: bool(device.health().missing))
        assert said in device.health().missing[0]
        assert device.health().states == ()
        assert device.context.gpu == "Fake GPU"


def test_a_sampler_that_cannot_start_is_said() -> None:
    with open_fake(sampler_command=("/no/such/program",)) as device:
        _until(lambda: bool(device.health().missing))
        assert "/no/such/program" in device.health().missing[0]


@contextmanager
def _sleeper() -> Iterator[int]:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        yield child.pid
    finally:
        child.kill()
        child.wait()
        assert child.stdin is not None
        child.stdin.close()


def _until(true: Callable[[], bool], limit_s: float = 20.0) -> None:
    deadline = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)
