"""One kernel for a profiler to look at: launched once to settle, then once inside a range that the profiler knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from engine.codegen import KernelSource
from engine.ir.kernel import Kernel
from engine.runtime.cases import prepare_case
from engine.runtime.compile import compile_source
from engine.runtime.launch import allow_scratch_memory, bind_launch, load_launcher
from engine.vocabulary import Target

RANGE = "emmy"
SEED = 0


def launch_profiled(
    kernel: Kernel | None, source: KernelSource | None, target: Target, folder: Path, index: int
) -> None:
    """Build and launch the kernel on CUDA device `index`; without one, something small that any GPU can run.

    Raises BuildError, and torch's errors where the GPU can't be used.
    """
    device = torch.device("cuda", index)
    torch.cuda.set_device(device)
    if kernel is None or source is None:
        small = torch.zeros(1024, device=device)
        _in_range(lambda: small.add_(1.0))
        return
    allow_scratch_memory(device)
    load_launcher()
    case = prepare_case(kernel, SEED, device)
    launch = bind_launch(compile_source(source, target, folder), case.inputs, case.outputs)
    launch()
    _in_range(launch)


def _in_range(launch: Any) -> None:
    nvtx: Any = torch.cuda.nvtx
    torch.cuda.synchronize()
    nvtx.range_push(RANGE)
    launch()
    torch.cuda.synchronize()
    nvtx.range_pop()
