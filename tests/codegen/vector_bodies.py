"""Matmuls of few rows, which have schedules without tl.dot: layouts, ragged depths, prologues, siblings, slices."""

from __future__ import annotations

from collections.abc import Callable

from engine.ir import Graph, GraphBuilder, TensorSpec

contiguous = TensorSpec.contiguous


def _linear(b: GraphBuilder, x: int, columns: int) -> int:
    depth = b.spec(x).shape[-1]
    w = b.input(contiguous((columns, depth), b.spec(x).dtype))
    return b.add("matmul", x, b.view(w, (depth, columns), (1, depth)))


def token(rows: int, depth: int, columns: int, dtype: str) -> Graph:
    """[rows, depth] @ [depth, columns], with a bias."""
    b = GraphBuilder()
    x, w = b.input(contiguous((rows, depth), dtype)), b.input(contiguous((depth, columns), dtype))
    return b.build(b.add("add", b.add("matmul", x, w), b.input(contiguous((columns,), dtype))))


def scaled_token(rows: int) -> Graph:
    """Rows that are computed before they are multiplied, with what isn't zero at the ragged end of the depth."""
    b = GraphBuilder()
    x = b.add("exp", b.input(contiguous((rows, 75), "bfloat16")))
    return b.build(b.add("silu", _linear(b, x, 40)))


def gated_token(rows: int) -> Graph:
    """Two products of the same rows, held at once."""
    b = GraphBuilder()
    x = b.input(contiguous((rows, 96), "bfloat16"))
    return b.build(b.add("mul", b.add("silu", _linear(b, x, 48)), _linear(b, x, 48)))


def tokens_beside(rows: int) -> Graph:
    """Products of different widths side by side."""
    b = GraphBuilder()
    x = b.input(contiguous((rows, 64), "bfloat16"))
    return b.build(_linear(b, x, 64), _linear(b, x, 32), b.add("relu", _linear(b, x, 32)))


def sliced_token() -> Graph:
    """Slices of a depth as a batch, with a float32 result each."""
    b = GraphBuilder()
    x = b.input(TensorSpec((4, 1, 64), "bfloat16", (64, 256, 1)))
    w = b.input(TensorSpec((4, 64, 40), "bfloat16", (64 * 40, 40, 1)))
    return b.build(b.add("matmul", x, w, dtype="float32"))


VECTORS: dict[str, Callable[[], Graph]] = {
    "token": lambda: token(1, 96, 48, "bfloat16"),
    "token_ragged": lambda: token(1, 77, 50, "float16"),
    "tokens_of_three": lambda: token(3, 64, 40, "float32"),
    "tokens_of_eight": lambda: token(8, 40, 33, "bfloat16"),
    "scaled_token": lambda: scaled_token(1),
    "scaled_tokens": lambda: scaled_token(5),
    "gated_tokens": lambda: gated_token(2),
    "tokens_beside": lambda: tokens_beside(2),
    "sliced_token": sliced_token,
}
