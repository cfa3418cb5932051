"""Kernel sources written by hand: the runtime is tested without the code generator."""

from __future__ import annotations

from engine.codegen import Argument, KernelSource

HEAD = "import triton\nimport triton.language as tl\n\n\n"

ADD = """@triton.jit
def add(x, y, out):
    at = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    tl.store(out + at, tl.load(x + at) + tl.load(y + at))
"""

MATMUL = """@triton.jit
def matmul(a, b, c):
    row = tl.program_id(0) * {m}
    column = tl.program_id(1) * {n}
    acc = tl.zeros(({m}, {n}), tl.float32)
    for k in range(0, 512, {k}):
        acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
    rows = row + tl.arange(0, {m})
    columns = column + tl.arange(0, {n})
    tl.store(c + rows[:, None] * 512 + columns[None, :], acc.to(tl.bfloat16))
"""


def add_source(text: str = ADD, warps: int = 4) -> KernelSource:
    """out = x + y over 4096 float32."""
    arguments = tuple(
        Argument(name, kind, index, "*fp32")  # type: ignore[arg-type]
        for name, kind, index in (("x", "input", 0), ("y", "input", 1), ("out", "output", 0))
    )
    return KernelSource(HEAD + text, "add", arguments, (4, 1, 1), warps, 1)


def matmul_source(m: int = 64, n: int = 64, k: int = 64, stages: int = 3) -> KernelSource:
    """A 512^3 bf16 product with tensor descriptors."""
    arguments = (
        Argument("a", "input", 0, f"tensordesc<bf16[{m},{k}]>", (m, k), (512, 512), (512, 1)),
        Argument("b", "input", 1, f"tensordesc<bf16[{k},{n}]>", (k, n), (512, 512), (512, 1)),
        Argument("c", "output", 0, "*bf16"),
    )
    return KernelSource(HEAD + MATMUL.format(m=m, n=n, k=k), "matmul", arguments, (512 // m, 512 // n, 1), 4, stages)
