"""The process that looks at the GPU through NVML every now and then, without root and without torch.

It is a process of its own because a driver call may hang, and neither the engine nor the benchmark process may then.
It changes nothing: clocks, power limit and persistence stay as they are found.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.measure.channel import Channel, ChannelClosed
from engine.measure.child_side import open_channel
from engine.measure.gpu_state import GpuState, Throttle
from engine.runtime import pci_bus_id

_THROTTLES = (
    (0x04, Throttle.POWER_CAP),
    (0x08, Throttle.HARDWARE),
    (0x20, Throttle.HEAT),
    (0x40, Throttle.HARDWARE_HEAT),
    (0x80, Throttle.POWER_BRAKE),
)
"""Bits of nvmlClocksEventReasons (nvml.h)."""

_GENERATIONS = 3
"""The engine, a child of it, and a child of that."""


def main(read_fd: int, write_fd: int, parent: int) -> None:
    """Send {"state": …} at the pace that the first message names, or {"missing": sentence} once and end."""
    channel = open_channel(read_fd, write_fd, parent)
    try:
        first = channel.receive()
        try:
            nvml, handle = open_nvml(int(first["device"]))
        except Exception as error:
            channel.send({"missing": describe_missing(error)})
            return
        serve(channel, float(first["period_s"]), lambda: read_state(nvml, handle, parent))
    except ChannelClosed:
        return


def serve(channel: Channel, period_s: float, look: Callable[[], GpuState]) -> None:
    """Look and send until nobody reads any more, when it raises ChannelClosed."""
    while True:
        channel.send({"state": asdict(look())})
        with suppress(TimeoutError):
            channel.receive(period_s)


def open_nvml(index: int) -> tuple[Any, Any]:
    """The NVML module and the handle of CUDA's `index`-th GPU, found by its place on the bus: the two count apart."""
    import pynvml

    bus_id = pci_bus_id(index)
    pynvml.nvmlInit()
    return pynvml, pynvml.nvmlDeviceGetHandleByPciBusId(bus_id.encode())


def describe_missing(error: Exception) -> str:
    """Why nothing is sampled, in one sentence for a person."""
    if isinstance(error, ImportError):
        return "clocks and temperature are not sampled: nvidia-ml-py is not installed (`pip install nvidia-ml-py`)"
    return f"clocks and temperature are not sampled: {error}"


def read_state(nvml: Any, handle: Any, engine: int, clock: Callable[[], float] = time.time) -> GpuState:
    """One look. What the driver refuses (a virtual GPU, a container) is None and stops nothing."""

    def ask(name: str, *arguments: Any) -> Any:
        call = getattr(nvml, name, None)
        try:
            return None if call is None else call(handle, *arguments)
        except nvml.NVMLError:
            return None

    milliwatts = ask("nvmlDeviceGetPowerUsage")
    use = ask("nvmlDeviceGetUtilizationRates")
    reasons = ask("nvmlDeviceGetCurrentClocksEventReasons")
    if reasons is None:  # drivers before 535 know the older name only
        reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons")
    running = ask("nvmlDeviceGetComputeRunningProcesses")
    return GpuState(
        at=clock(),
        sm_mhz=ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
        sm_max_mhz=ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
        memory_mhz=ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
        temperature_c=ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
        power_w=None if milliwatts is None else milliwatts / 1e3,
        busy_share=None if use is None else use.gpu / 100.0,
        throttle=None if reasons is None else tuple(reason for bit, reason in _THROTTLES if reasons & bit),
        others=None if running is None else _others([process.pid for process in running], engine),
    )


def _others(pids: list[int], engine: int) -> tuple[str, ...]:
    """Processes that don't descend from the engine.

    In a container the driver may name processes by the host's numbers, which mean nothing here. One of those may be
    the benchmark process; only what is left beyond it counts.
    """
    known = [(pid, _parent_and_name(pid)) for pid in pids]
    seen = [(pid, found) for pid, found in known if found is not None]
    ours = [pid for pid, _ in seen if _descends(pid, engine)]
    hidden = len(known) - len(seen) - (0 if ours else 1)
    named = [f"{pid} {name}".strip() for pid, (_, name) in seen if pid not in ours]
    return (*named, *([""] * max(0, hidden)))


def _descends(pid: int, engine: int) -> bool:
    """Whether it is the engine or a child's child of it: a benchmark process may branch off a child."""
    for _ in range(_GENERATIONS):
        if pid == engine:
            return True
        found = _parent_and_name(pid)
        if found is None:
            return False
        pid = found[0]
    return False


def _parent_and_name(pid: int) -> tuple[int, str] | None:
    """From /proc; None for a process that this system doesn't show."""
    try:
        text = (Path("/proc") / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    head, _, tail = text.rpartition(")")
    return int(tail.split()[1]), os.path.basename(head.partition("(")[2])
