"""Whether torch's own matmuls of fp32 round their operands to TF32, for the time of a block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from engine.ir.graph import Graph


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Inside, as `allowed` says; afterwards as before."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def allows_tf32(bodies: Sequence[Graph]) -> bool:
    """Whether a graph says that the user allows it."""
    return any(bool(op.attribute("allow_tf32")) for body in bodies for op in body.ops if op.kind == "matmul")
