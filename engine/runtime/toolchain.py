"""Which GPU and which versions a time depends on: the context and the target, and the tools that are there.

`describe_toolchain` loads neither torch nor a driver, so it answers on any machine; the other two need the GPU.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import triton

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
    return Toolchain(_installed("torch"), str(triton.__version__), _ptxas_version(path), path, compiler)


def ptxas_path(capability: int) -> str:
    """The ptxas that Triton would run for this capability (its bundled one, or what TRITON_PTXAS_PATH names)."""
    try:
        from triton.backends.nvidia.compiler import get_ptxas

        return str(get_ptxas(capability).path)
    except (ImportError, RuntimeError):
        return ""


def read_context(index: int = 0) -> Context:
    """The context of times taken on CUDA device `index`. Needs torch and a GPU (RuntimeError from torch otherwise)."""
    import torch

    properties: Any = torch.cuda.get_device_properties(index)
    capability = properties.major * 10 + properties.minor
    return Context(
        gpu=str(properties.name),
        capability=f"{properties.major}.{properties.minor}",
        driver=_driver_version(),
        torch=str(torch.__version__),
        triton=str(triton.__version__),
        ptxas=_ptxas_version(ptxas_path(capability)),
    )


def read_target(index: int = 0) -> Target:
    """The chip's sizes as its driver reports them; peaks and bandwidth keep the defaults of `Target`, scaled by SMs.

    Bandwidth and peaks can't be asked for: for a capability other than 9.0 they are rough.
    """
    import torch

    properties: Any = torch.cuda.get_device_properties(index)
    default = Target()
    share = properties.multi_processor_count / default.multiprocessors
    return Target(
        capability=properties.major * 10 + properties.minor,
        multiprocessors=properties.multi_processor_count,
        shared_bytes=getattr(properties, "shared_memory_per_block_optin", default.shared_bytes),
        shared_bytes_per_multiprocessor=getattr(
            properties, "shared_memory_per_multiprocessor", default.shared_bytes_per_multiprocessor
        ),
        registers_per_multiprocessor=getattr(
            properties, "regs_per_multiprocessor", default.registers_per_multiprocessor
        ),
        threads_per_multiprocessor=properties.max_threads_per_multi_processor,
        memory_bandwidth=default.memory_bandwidth * share,
        peak_bf16=default.peak_bf16 * share,
        peak_tf32=default.peak_tf32 * share,
        peak_fp32=default.peak_fp32 * share,
    )


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _ptxas_version(path: str) -> str:
    if not path:
        return ""
    try:
        text = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _PTXAS_VERSION.search(text)
    return found.group(1) if found else ""


def _driver_version() -> str:
    try:
        import pynvml

        pynvml.nvmlInit()
        try:
            version = pynvml.nvmlSystemGetDriverVersion()
        finally:
            pynvml.nvmlShutdown()
    except Exception:
        return _kernel_module_version()
    return version.decode() if isinstance(version, bytes) else str(version)


def _kernel_module_version() -> str:
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return ""
    found = re.search(r"Kernel Module.*?(\d+\.\d+(?:\.\d+)?)", text)
    return found.group(1) if found else ""
