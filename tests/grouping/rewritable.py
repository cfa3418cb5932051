"""Small graphs that a rewrite applies to, with what a module calls its weights marked."""

from __future__ import annotations

from collections.abc import Callable

from engine.ir import Graph, GraphBuilder, TensorSpec
from tests.codegen.attention_bodies import attention
from tests.ir.graphs import add_rms_norm

contiguous = TensorSpec.contiguous


def linear(b: GraphBuilder, x: int, columns: int, weight: bool = True) -> int:
    """x @ w^T, as a linear layer stores its weight."""
    spec = b.spec(x)
    depth = spec.shape[-1]
    w = b.input(contiguous((columns, depth), spec.dtype), weight=weight)
    return b.add("matmul", x, b.view(w, (depth, columns), (1, depth)))


def norm_and_linears(
    rows: int = 5,
    depth: int = 48,
    columns: int = 24,
    dtype: str = "bfloat16",
    *,
    batch: int = 1,
    scaled: bool = True,
    fixed: bool = True,
    shown: bool = False,
) -> Graph:
    """A residual, an RMS norm and a gated pair of linear layers; `shown` returns the normed rows too."""
    b = GraphBuilder()
    x, y = (b.input(contiguous((batch, rows, depth), dtype), label) for label in "xy")
    w = b.input(contiguous((depth,), dtype), "norm", weight=fixed)
    h = b.add("add", x, y)
    normed = add_rms_norm(b, h, w) if scaled else _plain_norm(b, h)
    flat = b.view(normed, (batch * rows, depth), (depth, 1))
    gate, up = linear(b, flat, columns), linear(b, flat, columns)
    done = b.view(b.add("mul", b.add("silu", gate), up), (batch, rows, columns), (rows * columns, columns, 1))
    return b.build(done, h, *([normed] if shown else []))


def _plain_norm(b: GraphBuilder, x: int) -> int:
    wide = b.add("cast", x, dtype="float32")
    mean = b.add("mean", b.add("mul", wide, wide), axes=(len(b.spec(x).shape) - 1,))
    scale = b.add("rsqrt", b.add("add", mean, b.constant(1e-6)))
    return b.add("cast", b.add("mul", wide, scale), dtype=b.spec(x).dtype)


def deep_matmul(rows: int = 7, depth: int = 1024, columns: int = 24, dtype: str = "bfloat16") -> Graph:
    """A linear layer of few output tiles, and a residual."""
    b = GraphBuilder()
    x, r = b.input(contiguous((1, rows, depth), dtype), "x"), b.input(contiguous((1, rows, columns), dtype), "residual")
    return b.build(b.add("add", linear(b, x, columns), r))


def stored_weights(dtype: str = "bfloat16") -> Graph:
    """One weight stored by rows, one by columns."""
    b = GraphBuilder()
    x = b.input(contiguous((9, 40), dtype), "x")
    w = b.input(contiguous((40, 24), dtype), "w", weight=True)
    return b.build(linear(b, b.add("relu", b.add("matmul", x, w)), 17))


def stacked(layers: int) -> Graph:
    """Equal layers, each with a norm whose rows two matmuls read."""
    b = GraphBuilder()
    h = b.input(contiguous((6, 32), "bfloat16"), "x")
    for _ in range(layers):
        normed = add_rms_norm(b, h, b.input(contiguous((32,), "bfloat16"), weight=True))
        inner = b.add("mul", b.add("silu", linear(b, normed, 40)), linear(b, normed, 40))
        h = b.add("add", linear(b, inner, 32), h)
    return b.build(h)


def norm_of_product(rows: int = 5, depth: int = 64, dtype: str = "bfloat16", *, shown: bool = False) -> Graph:
    """A linear layer and a residual make the rows that a norm and two linear layers read; `shown` returns them too."""
    b = GraphBuilder()
    x = b.input(contiguous((1, rows, depth), dtype), "x")
    h = b.add("add", linear(b, x, depth), x)
    normed = add_rms_norm(b, h, b.input(contiguous((depth,), dtype), "norm", weight=True))
    done = b.add("mul", b.add("silu", linear(b, normed, 24)), linear(b, normed, 24))
    return b.build(done, *([h] if shown else []))


REWRITABLE: dict[str, Callable[[], Graph]] = {
    "norm": norm_and_linears,
    "norm of a batch, without a weight": lambda: norm_and_linears(batch=2, scaled=False, fixed=False),
    "norm in float32": lambda: norm_and_linears(3, 20, 9, "float32"),
    "norm in float16": lambda: norm_and_linears(1, 40, 17, "float16"),
    "norm of a product": norm_of_product,
    "norm of a product that is returned": lambda: norm_of_product(3, 96, "float16", shown=True),
    "norm of a product in float32": lambda: norm_of_product(2, 64, "float32"),
    "deep": deep_matmul,
    "deep in float32": lambda: deep_matmul(3, 1152, 9, "float32"),
    "stored": stored_weights,
    "one token": lambda: attention(8, 1, 1024, 16, "bfloat16", batch=2, group=2),
    "one token, heads first": lambda: attention(4, 1, 2048, 16, "float16", tokens_first=False, joined=False),
    "few tokens in float32": lambda: attention(4, 3, 1024, 16, "float32", width=24, joined=False),
}
