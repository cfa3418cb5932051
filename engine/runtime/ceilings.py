"""What a GPU reaches at its best: a large copy and a large sum, both within the L2 too, and large matmuls of each kind.

The fastest window counts: a ceiling is what can be reached. A rate is that between two sizes: their difference holds
neither the launch, a good part of either within the L2, nor what the L2 keeps of either beyond it. A sum within the L2
takes hardly longer for thrice the bytes, as it waits for its partial sums at either size, so its rate is that of all
its bytes in all its time but for the launch. Matmuls are those of the vendor's library on random data, since data of
zeros draws less power and runs at clocks that no program sees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from engine.ir.roofline import Ceilings
from engine.runtime.cuda_graph import TimingPlan, probe_us, time_launches
from engine.runtime.memory import free_memory
from engine.runtime.tf32 import tf32

FAR_BYTES, STREAM_BYTES = (512 << 20, 1536 << 20), 128 << 20
NEAR_EIGHTHS = (1, 3)
"""Within the L2 so many eighths of it are moved, read and written bytes together."""
SHORT_BYTES = 1 << 10
EXTENT, SMALL_EXTENT, MATMULS = 8192, 4096, 16
ROOM_BYTES = 4 << 30
"""With less free memory than this, copies, sums and matmuls are smaller."""
PLAN = TimingPlan(window_ms=2.0, windows=5, warmup_ms=20.0)
ROW = 4096
"""Elements of each row that a sum of rows adds up: the sum of everything is split otherwise, and may be slower."""

_KINDS = (
    ("bf16", torch.bfloat16, False),
    ("fp16", torch.float16, False),
    ("tf32", torch.float32, True),
    ("fp32", torch.float32, False),
)


def measure_ceilings(device: torch.device, *, cold_l2: bool = False) -> Ceilings:
    """Some 400 ms of work on an H200 and up to 1.5 GiB, freed again. With `cold_l2` nothing counts as in the L2."""
    roomy = torch.cuda.mem_get_info(device)[0] >= ROOM_BYTES
    less, more = (size if roomy else size // 8 for size in FAR_BYTES)
    try:
        copy_gbs, read_gbs = _copy_and_read_gbs(less, more, device)
        near = 0 if cold_l2 else _near_bytes(device)
        near_gbs = near_read_gbs = 0.0
        if near:
            less, more = (near * eighths // 8 for eighths in NEAR_EIGHTHS)
            near_gbs, near_read_gbs = _rate(_scaling, less, more, device), _near_read_gbs(more, device)
        extent = EXTENT if roomy else SMALL_EXTENT
        tflops = tuple((kind, _matmul(extent, dtype, device, rounded=rounded)) for kind, dtype, rounded in _KINDS)
    finally:
        free_memory()
    l2_gbs = max(near_gbs, copy_gbs) if near else 0.0
    return Ceilings(copy_gbs, tuple(sorted(tflops)), l2_gbs, near, read_gbs, max(near_read_gbs, l2_gbs))


def stream_launch(device: torch.device) -> Callable[[], None]:
    """A launch of some 30 us on a fast GPU, far above what launching costs: 64 MiB are read and as many written.

    It has run once.
    """
    return _scaling(STREAM_BYTES, device)


def _copy_and_read_gbs(less: int, more: int, device: torch.device) -> tuple[float, float]:
    """GB/s of a copy, read and written bytes together, and of the fastest sum: between `less` and `more` bytes."""
    sums = (_rate(partial(_summing, rows=rows), less, more, device) for rows in (False, True))
    return _rate(_scaling, less, more, device), max(sums)


def _rate(make: Callable[[int, torch.device], Callable[[], None]], less: int, more: int, device: torch.device) -> float:
    """GB/s of what moves bytes, between moving `less` and moving `more` of them. More first: it warms the GPU up."""
    more_us, less_us = (_best_us(make(size, device)) for size in (more, less))
    if more_us <= less_us:  # on a GPU that somebody else uses, say
        return more / (more_us * 1e3)
    return (more - less) / ((more_us - less_us) * 1e3)


def _near_read_gbs(moved: int, device: torch.device) -> float:
    """GB/s of the fastest sum of so many bytes in the L2, without the time of a launch that moves next to nothing."""
    launch_us = _best_us(_scaling(SHORT_BYTES, device))
    sum_us = min(_best_us(_summing(moved, device, rows=rows)) for rows in (False, True))
    return moved / ((sum_us - launch_us if sum_us > launch_us else sum_us) * 1e3)


def _near_bytes(device: torch.device) -> int:
    """How many bytes the L2 holds; 0 where a GPU tells none worth the name."""
    size = int(torch.cuda.get_device_properties(device).L2_cache_size)
    return size if size * NEAR_EIGHTHS[0] // 8 >= 1 << 20 else 0


def _best_us(launch: Callable[[], None]) -> float:
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


def _summing(moved: int, device: torch.device, *, rows: bool) -> Callable[[], None]:
    """Reads and writes next to nothing: the sum of everything, or of each of its `rows`."""
    source = torch.randn(moved // 4 // ROW, ROW, device=device)
    axes = (1,) if rows else (0, 1)
    out = torch.empty(source.shape[0] if rows else (), device=device)

    def launch() -> None:
        torch.sum(source, axes, out=out)

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
