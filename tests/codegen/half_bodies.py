"""Contraction bodies whose groups of columns are turned by half, which a tile of one group computes as two halves."""

from __future__ import annotations

from functools import partial

from engine.ir import Graph, GraphBuilder
from tests.codegen.epilogue_bodies import head_norm, linear, projections, reshaped, rotated, scale_of, tensor


def rotated_only(tokens: int, size: int, dtype: str) -> Graph:
    """Heads without a norm: nothing but the accumulator is there before the turn."""
    b = GraphBuilder()
    x = tensor(b, (1, tokens, 40), dtype)
    cos, sin = (reshaped(b, tensor(b, (1, tokens, size), dtype), 1, tokens, 1, size) for _ in range(2))
    return b.build(rotated(b, reshaped(b, linear(b, x, 3 * size), 1, tokens, 3, size), cos, sin))


def layer(tokens: int, depth: int, size: int, heads: tuple[int, ...], parts: int, dtype: str = "bfloat16") -> Graph:
    """Queries, keys and values as a layer has them: rows scaled from partial sums, then each head's norm and turn."""
    b = GraphBuilder()
    x = tensor(b, (1, tokens, depth), dtype)
    cos, sin = (reshaped(b, tensor(b, (1, tokens, size), dtype), 1, tokens, 1, size) for _ in range(2))
    scale, results = scale_of(b, tokens, parts, (1,)), []
    for number, count in enumerate(heads):
        product = b.add("cast", b.add("mul", linear(b, x, count * size), scale), dtype=dtype)
        if number < 2:
            product = rotated(b, head_norm(b, product, count, size, tensor(b, (size,), dtype)), cos, sin)
        results.append(product)
    return b.build(*results)


def reduced_and_turned(kind: str, dtype: str) -> Graph:
    """A batch whose groups are weighted, reduced, turned and reduced again; the product is a result too, and so are
    both reductions."""
    b = GraphBuilder()
    product = b.add("matmul", tensor(b, (2, 20, 24), dtype), tensor(b, (2, 24, 64), dtype))
    groups = b.add("mul", reshaped(b, product, 2, 20, 2, 32), tensor(b, (32,), dtype))
    first = b.add(kind, groups, axes=(3,))
    turned = b.add("roll", b.add("sub", groups, first), axis=3, shift=16)
    weighted = b.add("mul", turned, tensor(b, (20, 1, 32), dtype))
    return b.build(product, weighted, first, b.add(kind, weighted, axes=(3,)))


def masked(size: int) -> Graph:
    """Masks that a half decides, some it doesn't, and one that all columns pass."""
    b = GraphBuilder()
    heads = reshaped(b, linear(b, tensor(b, (20, 40), "float32"), 2 * size), 20, 2, size)
    turned = b.add("roll", heads, axis=2, shift=size // 2)
    lane = b.iota(size, 2, 3, "int64")
    low, high = b.add("lt", lane, b.constant(size // 2)), b.add("le", b.constant(size // 2), lane)
    quarter = b.add("gt", b.constant(size // 4), lane)
    apart = b.add("logical_or", b.add("logical_not", low), b.add("logical_and", low, quarter))
    everywhere = b.add("ge", lane, b.constant(0))
    one = b.add("where", low, b.constant(0.5), turned)
    two = b.add("where", apart, b.add("neg", turned), b.add("where", high, b.constant(1.0), heads))
    three = b.add("mul", b.add("where", everywhere, heads, turned), b.add("cast", high, dtype="float32"))
    return b.build(b.add("add", one, two), b.add("amax", one, axes=(2,)), three, b.add("where", low, heads, turned))


def turned_gate() -> Graph:
    """Two products of one tile, one of which is turned."""
    b = GraphBuilder()
    x = tensor(b, (20, 40), "float16")
    gate, up = (reshaped(b, linear(b, x, 96), 20, 3, 32) for _ in range(2))
    turned = b.add("roll", b.add("cast", b.add("silu", gate), dtype="float16"), axis=2, shift=16)
    return b.build(b.add("mul", turned, up))


HALVES = {
    **{
        f"halves_of_{size}_{dtype}": partial(projections, 20, 40, size, (2, 2, 1), dtype)
        for size, dtype in ((32, "bfloat16"), (64, "float16"), (128, "float32"), (128, "bfloat16"))
    },
    "halves_without_norm": lambda: rotated_only(33, 64, "float16"),
    "halves_of_one_row": lambda: rotated_only(1, 32, "bfloat16"),
    "halves_of_three_rows": lambda: projections(3, 40, 64, (2, 2), "bfloat16"),
    "halves_of_a_layer": lambda: layer(20, 40, 32, (3, 2, 2), 5),
    "halves_of_a_layer_in_fp32": lambda: layer(16, 24, 64, (2, 2, 2), 4, "float32"),
    "halves_with_sums": lambda: reduced_and_turned("sum", "float32"),
    "halves_with_means": lambda: reduced_and_turned("mean", "bfloat16"),
    "halves_with_largest": lambda: reduced_and_turned("amax", "float32"),
    "halves_with_masks": lambda: masked(32),
    "halves_of_two_products": turned_gate,
}
