"""From a device's name to a device, or to one sentence that says what is missing and what to do about it."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec

from engine.codegen import illegal_because, render
from engine.extras import install_text
from engine.measure.controls import Controls
from engine.measure.cuda import CudaDevice, CudaSettings
from engine.measure.device import Device, DeviceError
from engine.measure.process import entry_command

_CUDA_NAME = re.compile(r"cuda(?::(\d+))?")
_WITHOUT_GPU = "without one, browse a database with `emmy-tui DB`, or watch the demo with `emmy-tui --demo`"


def open_device(
    name: str,
    *,
    jobs: int | None = None,
    beside: Device | None = None,
    controls: Controls | None = None,
    cold_l2: bool = False,
) -> Device:
    """Open "cuda" or "cuda:N" with `jobs` compile processes (default: one a CPU that this process may use).

    The benchmark process starts beside. With `beside`, another GPU that is open, it shares the compile processes of
    that one. With `controls` their ptxas assembles every candidate, and their files may be asked for.
    With `cold_l2` the GPU's L2 is flushed before each launch.
    Raises DeviceError for an unknown name, for missing packages and for a GPU that can't be used.
    """
    found = _CUDA_NAME.fullmatch(name)
    if found is None:
        raise DeviceError(f"{name!r} is no device to tune on; it is cuda:0, cuda:1, …")
    missing = [package for package in ("torch", "triton") if find_spec(package) is None]
    if missing:
        raise DeviceError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed; "
            f"{install_text('tune')} adds what tuning needs; {_WITHOUT_GPU}"
        )
    settings = CudaSettings(
        index=int(found.group(1) or 0),
        compilers=jobs or len(os.sched_getaffinity(0)),
        probe_command=entry_command("engine.measure.probe"),
        sampler_command=entry_command("engine.measure.sampler"),
        controls=controls,
        cold_l2=cold_l2,
    )
    try:
        return CudaDevice(settings, render, illegal_because, beside if isinstance(beside, CudaDevice) else None)
    except DeviceError as error:
        raise DeviceError(f"{name} can't be used: {error}; tuning needs a GPU; {_WITHOUT_GPU}") from None
