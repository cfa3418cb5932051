"""Contraction bodies whose products lie side by side, whose epilogues reduce or turn groups of columns, or sum rows."""

from __future__ import annotations

from engine.ir import Graph, GraphBuilder, TensorSpec
from engine.ir.graph import contiguous_strides


def tensor(b: GraphBuilder, shape: tuple[int, ...], dtype: str) -> int:
    return b.input(TensorSpec.contiguous(shape, dtype))


def linear(b: GraphBuilder, x: int, width: int) -> int:
    """The product of x with a weight that is stored as torch's linear has it."""
    spec = b.spec(x)
    depth = spec.shape[-1]
    return b.add("matmul", x, b.view(tensor(b, (width, depth), spec.dtype), (depth, width), (1, depth)))


def reshaped(b: GraphBuilder, value: int, *shape: int) -> int:
    return b.view(value, shape, contiguous_strides(shape))


def head_norm(b: GraphBuilder, product: int, heads: int, size: int, weight: int) -> int:
    """The RMS norm of each head, as Qwen3 has it: squares are computed before the heads are an axis."""
    spec = b.spec(product)
    split = (*spec.shape[:-1], heads, size)
    wide = b.add("cast", product, dtype="float32")
    squares = reshaped(b, b.add("mul", wide, wide), *split)
    mean = b.add("mean", squares, axes=(len(split) - 1,))
    scale = b.add("rsqrt", b.add("add", mean, b.constant(1e-6)))
    return b.add("mul", weight, b.add("cast", b.add("mul", reshaped(b, wide, *split), scale), dtype=spec.dtype))


def rotated(b: GraphBuilder, heads: int, cos: int, sin: int) -> int:
    """The rotary embedding of heads [..., heads, size]."""
    shape = b.spec(heads).shape
    axis, size = len(shape) - 1, shape[-1]
    turned = b.add("roll", heads, axis=axis, shift=size // 2)
    low = b.add("lt", b.iota(size, axis, len(shape), "int32"), b.constant(size // 2, "int32"))
    half = b.add("where", low, b.add("neg", turned), turned)
    return b.add("add", b.add("mul", heads, cos), b.add("mul", half, sin))


def projections(tokens: int, depth: int, size: int, heads: tuple[int, ...], dtype: str) -> Graph:
    """Queries and keys with norm and rotary embedding, and what `heads` has more of as plain products."""
    b = GraphBuilder()
    x = tensor(b, (1, tokens, depth), dtype)
    cos, sin = (reshaped(b, tensor(b, (1, tokens, size), dtype), 1, tokens, 1, size) for _ in range(2))
    results = []
    for number, count in enumerate(heads):
        product = linear(b, x, count * size)
        if number < 2:
            product = rotated(b, head_norm(b, product, count, size, tensor(b, (size,), dtype)), cos, sin)
        results.append(product)
    return b.build(*results)


def batched_groups() -> Graph:
    """The largest and the sum of groups of a batched product, each a result, and the product less the largest."""
    b = GraphBuilder()
    product = b.add("matmul", tensor(b, (2, 20, 24), "float32"), tensor(b, (2, 24, 64), "float32"))
    groups = reshaped(b, product, 2, 20, 8, 8)
    largest, total = b.add("amax", groups, axes=(3,)), b.add("sum", groups, axes=(3,))
    return b.build(b.add("sub", groups, largest), largest, b.add("exp", total))


def partial_sums(rows: int = 20, columns: int = 96, group: int = 32, depth: int = 40) -> Graph:
    """A product with its residual, and the sums of its squares in groups."""
    b = GraphBuilder()
    x = b.add("add", tensor(b, (rows, columns), "bfloat16"), linear(b, tensor(b, (rows, depth), "bfloat16"), columns))
    wide = b.add("cast", x, dtype="float32")
    squares = reshaped(b, b.add("mul", wide, wide), rows, columns // group, group)
    return b.build(x, b.add("sum", squares, axes=(2,)))


def scale_of(b: GraphBuilder, rows: int, parts: int, lead: tuple[int, ...] = ()) -> int:
    """1 / root of the mean of each row's squares, from `parts` partial sums of 32 each."""
    total = b.add("sum", tensor(b, (*lead, rows, parts), "float32"), axes=(len(lead) + 1,))
    mean = b.add("mul", b.add("abs", total), b.constant(1 / (32 * parts)))
    return b.add("rsqrt", b.add("add", mean, b.constant(1e-6)))


def scaled_rows(rows: int, parts: int, dtype: str = "bfloat16") -> Graph:
    b = GraphBuilder()
    scale = scale_of(b, rows, parts)
    return b.build(b.add("silu", b.add("mul", linear(b, tensor(b, (rows, 40), dtype), 48), scale)))


def scaled_heads() -> Graph:
    """Rows that are scaled from partial sums, then heads that are normed, beside a plain product of another width."""
    b = GraphBuilder()
    x, scale = tensor(b, (1, 20, 40), "bfloat16"), scale_of(b, 20, 3, (1,))
    scaled = [b.add("cast", b.add("mul", linear(b, x, n), scale), dtype="bfloat16") for n in (64, 24)]
    return b.build(head_norm(b, scaled[0], 4, 16, tensor(b, (16,), "bfloat16")), scaled[1])


def gate_beside_a_third() -> Graph:
    """Two products that one value needs, beside one of another width; the left operand is computed."""
    b = GraphBuilder()
    x = b.add("mul", tensor(b, (20, 40), "float16"), b.constant(0.5))
    gate, up, third = (linear(b, x, n) for n in (48, 48, 20))
    return b.build(b.add("relu", third), b.add("mul", b.add("silu", gate), up))


def batched_widths() -> Graph:
    b = GraphBuilder()
    x = tensor(b, (3, 20, 32), "bfloat16")
    return b.build(*(b.add("matmul", x, tensor(b, (3, 32, n), "bfloat16")) for n in (40, 16)))


EPILOGUES = {
    "queries": lambda: projections(20, 40, 32, (4,), "bfloat16"),
    "queries_keys_values": lambda: projections(20, 40, 32, (4, 2, 2), "bfloat16"),
    "queries_keys_values_fp32": lambda: projections(33, 37, 16, (5, 3, 2), "float32"),
    "queries_keys_of_one_token": lambda: projections(1, 40, 64, (3, 2, 2), "float16"),
    "batched_groups": batched_groups,
    "partial_sums": partial_sums,
    "partial_sums_of_pairs": lambda: partial_sums(17, 20, 2),
    "scaled_rows": lambda: scaled_rows(20, 5),
    "scaled_rows_of_one": lambda: scaled_rows(1, 8, "float32"),
    "scaled_heads": scaled_heads,
    "gate_beside_a_third": gate_beside_a_third,
    "batched_widths": batched_widths,
}
