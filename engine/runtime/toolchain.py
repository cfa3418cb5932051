"""Which GPU and which versions a time depends on: the context and the target, and the tools that are there.

Nothing here loads torch, so all of it answers at once. `describe_toolchain` answers on any machine; the other two
need the GPU.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

import triton

from engine.runtime.driver import read_gpu, torch_version
from engine.vocabulary import Context, Target

_PTXAS_VERSION = re.compile(r"release [\d.]+, V([\d.]+)")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Versions as text; "" for what is missing. `c_compiler` builds Triton's launcher when a kernel first runs."""

    torch: str
    triton: str
    ptxas: str
    ptxas_path: str
    c_compiler: str


def describe_toolchain(capability: int = 90) -> Toolchain:
    """The tools that a compile for this capability would use; ptxas is the one that Triton itself chooses for it."""
    path = ptxas_path(capability)
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang") or ""
    return Toolchain(torch_version(), str(triton.__version__), _ptxas_version(path), path, compiler)


def ptxas_path(capability: int) -> str:
    """The ptxas that Triton would run for this capability (its bundled one, or what TRITON_PTXAS_PATH names)."""
    try:
        from triton.backends.nvidia.compiler import get_ptxas

        return str(get_ptxas(capability).path)
    except (ImportError, RuntimeError):
        return ""


def read_context(index: int = 0) -> Context:
    """The context of times taken on CUDA device `index`. Loads no torch; raises DriverError without a usable GPU."""
    gpu = read_gpu(index)
    return Context(
        gpu=gpu.name,
        capability=f"{gpu.capability // 10}.{gpu.capability % 10}",
        driver=gpu.driver or _nvml_driver_version(),
        torch=torch_version(),
        triton=str(triton.__version__),
        ptxas=_ptxas_version(ptxas_path(gpu.capability)),
    )


def read_target(index: int = 0) -> Target:
    """The chip's sizes as its driver reports them; peaks and bandwidth keep the defaults of `Target`, scaled by SMs.

    Bandwidth and peaks can't be asked for: for a capability other than 9.0 they are rough. Raises DriverError.
    """
    gpu = read_gpu(index)
    default = Target()
    share = gpu.multiprocessors / default.multiprocessors
    return Target(
        capability=gpu.capability,
        multiprocessors=gpu.multiprocessors,
        shared_bytes=gpu.shared_bytes,
        shared_bytes_per_multiprocessor=gpu.shared_bytes_per_multiprocessor,
        registers_per_multiprocessor=gpu.registers_per_multiprocessor,
        threads_per_multiprocessor=gpu.threads_per_multiprocessor,
        memory_bandwidth=default.memory_bandwidth * share,
        peak_bf16=default.peak_bf16 * share,
        peak_tf32=default.peak_tf32 * share,
        peak_fp32=default.peak_fp32 * share,
    )


def _ptxas_version(path: str) -> str:
    if not path:
        return ""
    try:
        text = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _PTXAS_VERSION.search(text)
    return found.group(1) if found else ""


def _nvml_driver_version() -> str:
    try:
        import pynvml

        pynvml.nvmlInit()
        try:
            version = pynvml.nvmlSystemGetDriverVersion()
        finally:
            pynvml.nvmlShutdown()
    except Exception:
        return ""
    return version.decode() if isinstance(version, bytes) else str(version)
