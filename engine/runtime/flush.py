"""What turns the L2's contents out, so that the next launch finds it cold.

It writes twice the L2's size, since what stays longest there is not what is oldest. What a kernel loaded as evict_last
stays while there is anything of lower priority to evict (PTX ISA, cache eviction priority hints), so that an ordinary
write passes it by: this one writes as evict_last itself, and then writes what the L2 now holds again as evict_first,
so that the launch it makes way for evicts the flush's own data before anything else.
"""

from __future__ import annotations

from pathlib import Path

import torch

from engine.codegen import Argument, KernelSource
from engine.runtime.compile import compile_source
from engine.runtime.launch import Launch, bind_launch
from engine.vocabulary import Target

BLOCK = 2048
"""Elements that one program writes: 16 bytes a thread, four times."""
_TEXT = """import triton
import triton.language as tl


@triton.jit
def flush(out0):
    index = tl.program_id(0) * {block} + tl.arange(0, {block})
    tl.store(out0 + {first} + index, tl.full(({block},), 0.0, tl.float32), eviction_policy="{priority}")
"""


class Flush:
    """Raises what `compile_source` does: its kernels are compiled into `folder`, like any candidate."""

    def __init__(self, device: torch.device, target: Target, folder: Path) -> None:
        size = max(int(torch.cuda.get_device_properties(device).L2_cache_size), 1 << 20)
        blocks = -(-size // (4 * BLOCK))
        buffer = torch.empty(2 * blocks * BLOCK, dtype=torch.float32, device=device)
        self._launches: tuple[Launch, ...] = tuple(
            bind_launch(compile_source(source, target, folder), (), (buffer,)) for source in flush_sources(blocks)
        )

    def __call__(self) -> None:
        for launch in self._launches:
            launch()


def flush_sources(blocks: int) -> tuple[KernelSource, KernelSource]:
    """For an L2 of so many blocks: the write over twice as many, and the one over the latter half again."""
    return _source(0, 2 * blocks, "evict_last"), _source(blocks, blocks, "evict_first")


def _source(first_block: int, blocks: int, priority: str) -> KernelSource:
    text = _TEXT.format(block=BLOCK, first=first_block * BLOCK, priority=priority)
    return KernelSource(text, "flush", (Argument("out0", "output", 0, "*fp32"),), (blocks, 1, 1), 4, 1)
