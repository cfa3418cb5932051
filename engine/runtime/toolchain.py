"""Which GPU and which versions a time depends on: the context, and the target that code is generated for.

Nothing here loads torch, so all of it answers at once.
"""

from __future__ import annotations

import os
import re
import subprocess

import triton

from engine.runtime._triton_compat import has_gluon, hash_files
from engine.runtime.driver import read_gpu, torch_version
from engine.vocabulary import Context, Target

_PTXAS_VERSION = re.compile(r"release [\d.]+, V([\d.]+)")


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
        gluon=has_gluon(),
    )


def load_ahead() -> None:
    """Do now what a process does at its first kernel, whichever that is; what forks off later has it done."""
    has_gluon()
    hash_files()


def _ptxas_version(path: str) -> str:
    if not path:
        return ""
    try:
        asked = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=30, check=False, env=dict(os.environ)
        )
        text = asked.stdout
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
