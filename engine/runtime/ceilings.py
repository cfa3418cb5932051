"""What a GPU reaches at its best: a large copy, a copy within the L2, and large matmuls of each kind.

The fastest window counts: a ceiling is what can be reached. Matmuls are those of the vendor's library on random data,
since data of zeros draws less power and runs at clocks that no program sees.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from engine.ir.roofline import Ceilings
from engine.runtime.cuda_graph import TimingPlan, probe_us, time_launches
from engine.runtime.memory import free_memory
from engine.runtime.tf32 import tf32

COPY_BYTES, STREAM_BYTES = 512 << 20, 128 << 20
NEAR_BYTES = (1, 3)
"""Copies within the L2 of so many eighths of it, read and written bytes together: the difference of their times holds
no launch, which would be a good part of either."""
EXTENT, SMALL_EXTENT, MATMULS = 8192, 4096, 16
ROOM_BYTES = 4 << 30
"""With less free memory than this, copies and matmuls are smaller."""
PLAN = TimingPlan(window_ms=2.0, windows=3, warmup_ms=20.0)

_KINDS = (
    ("bf16", torch.bfloat16, False),
    ("fp16", torch.float16, False),
    ("tf32", torch.float32, True),
    ("fp32", torch.float32, False),
)


def measure_ceilings(device: torch.device, *, cold_l2: bool = False) -> Ceilings:
    """Some 200 ms of work on an H200 and up to 1 GiB, freed again. With `cold_l2` no copy counts as one in the L2."""
    roomy = torch.cuda.mem_get_info(device)[0] >= ROOM_BYTES
    try:
        copy_gbs = _rate(COPY_BYTES if roomy else COPY_BYTES // 8, device)
        near_gbs, near_bytes = (0.0, 0) if cold_l2 else _near_copy(device)
        extent = EXTENT if roomy else SMALL_EXTENT
        tflops = tuple((kind, _matmul(extent, dtype, device, rounded=rounded)) for kind, dtype, rounded in _KINDS)
    finally:
        free_memory()
    return Ceilings(copy_gbs, tuple(sorted(tflops)), max(near_gbs, copy_gbs) if near_bytes else 0.0, near_bytes)


def stream_launch(device: torch.device) -> Callable[[], None]:
    """A launch of some 30 us on a fast GPU, far above what launching costs: 64 MiB are read and as many written.

    It has run once.
    """
    return _scaling(STREAM_BYTES, device)


def _rate(moved: int, device: torch.device) -> float:
    """GB/s of a copy that reads and writes `moved` bytes together."""
    return moved / (_copy_us(moved, device) * 1e3)


def _near_copy(device: torch.device) -> tuple[float, int]:
    """GB/s between two copies within the L2, and up to how many bytes that holds; 0 where a GPU tells no L2."""
    size = int(torch.cuda.get_device_properties(device).L2_cache_size)
    less, more = (size * eighths // 8 for eighths in NEAR_BYTES)
    if less < 1 << 20:
        return 0.0, 0
    apart_us = _copy_us(more, device) - _copy_us(less, device)
    return ((more - less) / (apart_us * 1e3), size) if apart_us > 0 else (0.0, 0)


def _copy_us(moved: int, device: torch.device) -> float:
    launch = _scaling(moved, device)
    return min(time_launches(launch, PLAN, probe_us(launch)))


def _scaling(moved: int, device: torch.device) -> Callable[[], None]:
    """A kernel's copy, as a program makes one: the copy engine of a driver is another road."""
    source = torch.randn(moved // 8, device=device)
    out = torch.empty_like(source)

    def launch() -> None:
        torch.mul(source, 1.5, out=out)

    launch()
    torch.cuda.synchronize()
    return launch


def _matmul(extent: int, dtype: torch.dtype, device: torch.device, *, rounded: bool) -> float:
    """TFLOP/s of a square matmul; fp32 operands are `rounded` to TF32."""
    extent = extent if dtype != torch.float32 else extent // 2
    left, right = (torch.randn(extent, extent, device=device).to(dtype) for _ in range(2))
    out = torch.empty_like(left)

    def launch() -> None:
        torch.mm(left, right, out=out)

    with tf32(rounded):
        launch()
        torch.cuda.synchronize()
        us = min(probe_us(launch) for _ in range(MATMULS))  # each so long that starting it is nothing
    return 2.0 * extent**3 / (us * 1e6)
