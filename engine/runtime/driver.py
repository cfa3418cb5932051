"""What the CUDA driver says of a GPU, asked directly, without torch: loading torch takes longer than a whole re-run.

Attribute numbers are those of CUdevice_attribute in the CUDA driver API, which never change.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

_MULTIPROCESSORS = 16
_THREADS_PER_MULTIPROCESSOR = 39
_CAPABILITY_MAJOR = 75
_CAPABILITY_MINOR = 76
_SHARED_PER_MULTIPROCESSOR = 81
_REGISTERS_PER_MULTIPROCESSOR = 82
_SHARED_PER_BLOCK_OPTIN = 97
_TORCH_VERSION = re.compile(r"^__version__\s*(?::[^=]*)?=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)


class DriverError(Exception):
    """The driver can't be asked; the text is one sentence for a person."""


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """Sizes in bytes; `capability` is major * 10 + minor; `driver` is "" where the system doesn't say."""

    name: str
    capability: int
    driver: str
    multiprocessors: int
    threads_per_multiprocessor: int
    registers_per_multiprocessor: int
    shared_bytes_per_multiprocessor: int
    shared_bytes: int


def read_gpu(index: int = 0) -> GpuFacts:
    """Facts of the `index`-th GPU as CUDA numbers them (CUDA_VISIBLE_DEVICES counts). Raises DriverError."""
    cuda, device = _open(index)
    name = ctypes.create_string_buffer(256)
    _call(cuda.cuDeviceGetName(name, 256, device), f"GPU {index} does not say its name")

    def attribute(number: int) -> int:
        value = ctypes.c_int()
        _call(cuda.cuDeviceGetAttribute(ctypes.byref(value), number, device), f"GPU {index} hides attribute {number}")
        return value.value

    return GpuFacts(
        name=name.value.decode(errors="replace"),
        capability=attribute(_CAPABILITY_MAJOR) * 10 + attribute(_CAPABILITY_MINOR),
        driver=driver_version(),
        multiprocessors=attribute(_MULTIPROCESSORS),
        threads_per_multiprocessor=attribute(_THREADS_PER_MULTIPROCESSOR),
        registers_per_multiprocessor=attribute(_REGISTERS_PER_MULTIPROCESSOR),
        shared_bytes_per_multiprocessor=attribute(_SHARED_PER_MULTIPROCESSOR),
        shared_bytes=attribute(_SHARED_PER_BLOCK_OPTIN),
    )


def pci_bus_id(index: int = 0) -> str:
    """Where the `index`-th GPU is on the bus: "0000:1b:00.0". NVML counts all GPUs, CUDA the visible ones.

    Raises DriverError.
    """
    cuda, device = _open(index)
    text = ctypes.create_string_buffer(32)
    _call(cuda.cuDeviceGetPCIBusId(text, 32, device), f"GPU {index} does not say where it is on the bus")
    return text.value.decode(errors="replace")


def driver_version() -> str:
    """As the kernel module reports it; "" where /proc does not say."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.search(r"Kernel Module.*?(\d+\.\d+(?:\.\d+)?)", text)
    return found.group(1) if found else ""


def torch_version() -> str:
    """torch.__version__, read from its version file without importing it; "" when torch is not installed."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return ""
    try:
        text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = _TORCH_VERSION.search(text)
    return found.group(1) if found else ""


def _open(index: int) -> tuple[ctypes.CDLL, ctypes.c_int]:
    """The driver and the handle of a GPU. Raises DriverError."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise DriverError("there is no NVIDIA driver here (libcuda.so.1 is missing)") from None
    _call(cuda.cuInit(0), "the driver does not start")
    count = ctypes.c_int()
    _call(cuda.cuDeviceGetCount(ctypes.byref(count)), "the driver does not count its GPUs")
    if index >= count.value:
        raise DriverError(f"there is no GPU {index}; CUDA sees {count.value}")
    device = ctypes.c_int()
    _call(cuda.cuDeviceGet(ctypes.byref(device), index), f"GPU {index} does not answer")
    return cuda, device


def _call(status: int, trouble: str) -> None:
    if status != 0:
        raise DriverError(f"{trouble} (CUDA error {status})")
