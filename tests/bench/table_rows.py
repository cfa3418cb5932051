"""The programs that are compared with their peers, as code that `emmy tune` takes, and what each ratio has to reach."""

from __future__ import annotations

from dataclasses import dataclass

EAGER, COMPILED, LIMIT = "eager", "compile", "limit"


@dataclass(frozen=True, slots=True)
class Soon:
    """What another tuner's quick search reaches, in us or as a ratio to eager, and half of the seconds it takes."""

    seconds: float
    us: float = 0.0
    to_eager: float = 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """A program. `peer` is whose time ours is divided by; `reach` is the largest ratio that holds.

    A LIMIT is no program of torch but `limit_us`, which a kernel that moves the same bytes is known to take.
    `soon` is what tuning should have reached early, from the start of its process.
    """

    name: str
    code: str
    peer: str
    reach: float
    limit_us: float = 0.0
    soon: Soon | None = None


def drawn(*shape: int, dtype: str = "bfloat16") -> str:
    """The text that draws a tensor on the GPU."""
    extents = ", ".join(map(str, shape))
    return f"torch.randn({extents}, dtype=torch.{dtype}, device='cuda')"


def product(m: int, k: int, n: int, dtype: str = "bfloat16") -> str:
    return f"torch.matmul({drawn(m, k, dtype=dtype)}, {drawn(k, n, dtype=dtype)})"


def attention(heads: int, shared: int, rows: int, keys: int, head: int, how: str, batch: int = 1) -> str:
    query, key = drawn(batch, heads, rows, head), drawn(batch, shared, keys, head)
    return f"F.scaled_dot_product_attention({query}, {key}, {key}, {how})"


ROWS = (
    Row("matmul-4096", product(4096, 4096, 4096), EAGER, 1.01, soon=Soon(15.0, to_eager=1.01)),
    Row("matmul-512x1024x4096", product(512, 1024, 4096), EAGER, 1.00, soon=Soon(26.0, us=9.3)),
    Row("matmul-512-fp32", product(512, 512, 512, "float32"), EAGER, 0.72),
    Row(
        "rms_norm",
        f"F.rms_norm({drawn(16384, 4096)}, (4096,), {drawn(4096)})",
        *(LIMIT, 1.0, 65.5, Soon(14.5, us=65.0)),
    ),
    Row("softmax", f"F.softmax({drawn(16384, 4096)}, dim=-1)", LIMIT, 1.0, 65.5, Soon(17.5, us=64.6)),
    Row("attention-causal", attention(16, 16, 2048, 2048, 128, "is_causal=True", 4), EAGER, 1.05),
    Row(
        "linear-gelu",
        f"F.gelu(F.linear({drawn(4096, 1024)}, {drawn(4096, 1024)}, {drawn(4096)}))",
        *(COMPILED, 0.90),
    ),
    Row("decode-matmul", product(1, 1024, 4096), COMPILED, 0.90),
    Row("decode-linear", f"F.linear({drawn(1, 1024)}, {drawn(4096, 1024)})", COMPILED, 0.90),
    Row("decode-attention", attention(16, 8, 1, 4096, 128, "enable_gqa=True"), COMPILED, 0.90),
)
