"""Looks at this machine for `emmy doctor`: GPUs, driver, torch, Triton, ptxas. Prints one JSON object.

It runs as a script of its own in a child process, so that a library which hangs, aborts or takes seconds to load
costs the parent nothing. It depends on the standard library alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import subprocess
import sys
from importlib import import_module, util
from pathlib import Path
from typing import Any

PTXAS_LIMIT_S = 10
NO_DEVICE = 100
"""CUDA_ERROR_NO_DEVICE (cuda.h)."""


def driver_version(text: str) -> str | None:
    """The version in the text of /proc/driver/nvidia/version, if it has one."""
    found = re.search(r"(?:Module|x86_64|aarch64)\s+(\d+(?:\.\d+)+)", text)
    return found.group(1) if found else None


def ptxas_version(text: str) -> str | None:
    """The version in what `ptxas --version` prints, if it has one."""
    found = re.search(r"release [\d.]+, V(\d+(?:\.\d+)+)", text)
    return found.group(1) if found else None


def _visible() -> list[bytes] | None:
    """Where on the bus each GPU is that CUDA sees, in CUDA's order: NVML counts all GPUs, in an order of its own.

    None where the driver can't be asked; [] where CUDA_VISIBLE_DEVICES hides every GPU.
    """
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    status, count, found = cuda.cuInit(0), ctypes.c_int(), []
    if status == NO_DEVICE:
        return []
    if status or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return None
    for index in range(count.value):
        device, place = ctypes.c_int(), ctypes.create_string_buffer(32)
        if cuda.cuDeviceGet(ctypes.byref(device), index) or cuda.cuDeviceGetPCIBusId(place, 32, device):
            return None
        found.append(place.value)
    return found


def _gpus() -> dict[str, Any]:
    """What NVML says: driver, and name, capability, memory in bytes and number of processes of each GPU that CUDA sees.

    Where CUDA can't be asked, of every GPU.
    """
    try:
        nvml = import_module("pynvml")
    except ImportError:
        return {"error": "not installed"}
    try:
        nvml.nvmlInit()
        places = _visible()
        if places is None:
            handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        else:
            handles = [nvml.nvmlDeviceGetHandleByPciBusId(place) for place in places]
        gpus = [_nvml_gpu(nvml, handle) for handle in handles]
        return {"driver": _text(nvml.nvmlSystemGetDriverVersion()), "gpus": gpus}
    except Exception as error:
        return {"error": str(error)}


def _nvml_gpu(nvml: Any, handle: Any) -> dict[str, Any]:
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    processes = None
    with contextlib.suppress(Exception):
        processes = len(nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    return {
        "name": _text(nvml.nvmlDeviceGetName(handle)),
        "capability": f"{major}.{minor}",
        "memory": nvml.nvmlDeviceGetMemoryInfo(handle).total,
        "processes": processes,
    }


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _torch() -> dict[str, Any]:
    try:
        torch = import_module("torch")
    except ImportError as error:
        return {"error": _import_fault("torch", error)}
    found: dict[str, Any] = {"version": str(torch.__version__), "cuda": torch.version.cuda, "gpus": []}
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(index)
            found["gpus"].append(
                {
                    "name": properties.name,
                    "capability": f"{properties.major}.{properties.minor}",
                    "memory": properties.total_memory,
                    "processes": None,
                }
            )
    return found


def _triton() -> dict[str, Any]:
    try:
        return {"version": str(import_module("triton").__version__)}
    except ImportError as error:
        return {"error": _import_fault("triton", error)}


def _import_fault(name: str, error: ImportError) -> str:
    return "not installed" if error.name == name else f"can't be imported: {error}"


def _ptxas() -> dict[str, Any]:
    """The assembler that Triton will call: TRITON_PTXAS_PATH if it is set, else the one in Triton's package."""
    chosen = os.environ.get("TRITON_PTXAS_PATH")
    package = util.find_spec("triton")
    if chosen:
        path = Path(chosen)
    elif package is not None and package.origin is not None:
        path = Path(package.origin).parent / "backends" / "nvidia" / "bin" / "ptxas"
    else:
        return {"error": "not installed"}
    try:
        said = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            timeout=PTXAS_LIMIT_S,
            check=True,
            env=dict(os.environ),
        )
    except (OSError, subprocess.SubprocessError) as error:
        return {"error": f"{path} does not run: {error}"}
    return {"version": ptxas_version(said.stdout), "path": str(path)}


def _driver() -> str | None:
    with contextlib.suppress(OSError):
        return driver_version(Path("/proc/driver/nvidia/version").read_text())
    return None


def probe() -> dict[str, Any]:
    """Everything found, by part; a part that is missing or broken has an `error` in words."""
    return {"nvml": _gpus(), "driver": _driver(), "torch": _torch(), "triton": _triton(), "ptxas": _ptxas()}


if __name__ == "__main__":
    answer = json.dumps(probe())
    sys.stdout.write(f"\n{answer}\n")
