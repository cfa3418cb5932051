"""Bodies that compute from positions or re-read their inputs in other places: iota, roll, cat and gather."""

from __future__ import annotations

from engine.ir import Graph, GraphBuilder, TensorSpec


def tensor(b: GraphBuilder, shape: tuple[int, ...], dtype: str = "float32") -> int:
    return b.input(TensorSpec.contiguous(shape, dtype))


def rotated(b: GraphBuilder, x: int) -> int:
    """rotate_half: the second half negated and before the first."""
    axis = len(b.spec(x).shape) - 1
    half = b.spec(x).shape[-1] // 2
    turned = b.add("roll", x, axis=axis, shift=half)
    first = b.add("lt", b.iota(2 * half, axis, axis + 1, "int32"), b.constant(half, "int64"))
    return b.add("where", first, b.add("neg", turned), turned)


def add_rotary(b: GraphBuilder, x: int, cos: int, sin: int) -> int:
    return b.add("add", b.add("mul", x, cos), b.add("mul", rotated(b, x), sin))


def rotary(dtype: str = "bfloat16", *, tokens_first: bool = True) -> Graph:
    """Heads of [B, H, S, D] that lie in memory as [B, S, H, D], and tables of [S, D]."""
    b = GraphBuilder()
    strides = (240, 8, 40, 1) if tokens_first else (240, 48, 8, 1)
    x = b.input(TensorSpec((2, 5, 6, 8), dtype, strides))
    return b.build(add_rotary(b, x, tensor(b, (6, 8), dtype), tensor(b, (6, 8), dtype)))


def embedding() -> Graph:
    """Rows of two tables: by tokens, and by positions that are counted."""
    b = GraphBuilder()
    words = b.add("gather", tensor(b, (11, 20), "float16"), b.input(TensorSpec.contiguous((3, 7), "int64")))
    places = b.add("gather", tensor(b, (9, 20), "float16"), b.iota(7))
    return b.build(b.add("add", words, places))


def gather_turned() -> Graph:
    """An index and a table that both lie turned in memory."""
    b = GraphBuilder()
    index, table = b.input(TensorSpec((4, 6), "int32", (1, 4))), b.input(TensorSpec((5, 3), "float32", (1, 5)))
    return b.build(b.add("gather", table, index))


def gather_scalars() -> Graph:
    """Rows without axes, by a computed index."""
    b = GraphBuilder()
    index = b.add("add", b.input(TensorSpec.contiguous((4, 6), "int32")), b.constant(2, "int64"), dtype="int32")
    return b.build(b.add("gather", tensor(b, (13,)), index))


def joined(axis: int) -> Graph:
    """Three pieces, one of them computed, one expanded; the result is scaled."""
    b = GraphBuilder()
    shapes = [tuple(3 + i if a == axis else 4 for a in range(3)) for i in range(3)]
    first = b.add("exp", tensor(b, shapes[0]))
    second = b.input(TensorSpec(shapes[1], "float32", tuple(0 if a == 0 else 8 - a for a in range(3))))
    third = b.add("neg", tensor(b, shapes[2]))
    whole = b.add("cat", first, second, third, axis=axis)
    return b.build(b.add("mul", whole, b.constant(0.5)))


def rolls() -> Graph:
    """Along each axis, of an input that lies turned in memory, one rolled again."""
    b = GraphBuilder()
    x = b.input(TensorSpec((4, 6), "float32", (1, 4)))
    once = b.add("roll", x, axis=0, shift=3)
    return b.build(b.add("sub", b.add("roll", once, axis=1, shift=1), b.add("roll", x, axis=1, shift=5)))


def counted() -> Graph:
    """Positions as numbers, alone and mixed with an input, beside a mask of them."""
    b = GraphBuilder()
    row, column = b.iota(5, 0, 2), b.iota(7, 1, 2, "int32")
    seen = b.add("ge", row, column)
    x = tensor(b, (5, 7))
    kept = b.add("where", seen, b.add("mul", x, row), b.constant(float("-inf")))
    return b.build(kept, b.add("add", b.add("mul", row, b.constant(7, "int64")), column))


def view_of_a_count() -> Graph:
    b = GraphBuilder()
    grid = b.add("add", b.add("mul", b.iota(4, 0, 2), b.constant(10, "int64")), b.iota(6, 1, 2))
    return b.build(b.add("add", b.view(grid, (6, 4), (1, 6)), tensor(b, (6, 4))))


def norm_of_embedding() -> Graph:
    b = GraphBuilder()
    x = b.add("gather", tensor(b, (6, 40), "bfloat16"), b.input(TensorSpec.contiguous((9,), "int64")))
    wide = b.add("cast", x, dtype="float32")
    scale = b.add("rsqrt", b.add("mean", b.add("mul", wide, wide), axes=(1,)))
    return b.build(b.add("cast", b.add("mul", wide, scale), dtype="bfloat16"))


def norm_and_rotary() -> Graph:
    """A norm of each head, turned: the roll reads what the row's own kernel computes."""
    b = GraphBuilder()
    x = b.add("cast", tensor(b, (3, 4, 5, 24), "bfloat16"), dtype="float32")
    scale = b.add("rsqrt", b.add("mean", b.add("mul", x, x), axes=(3,)))
    y = b.add("mul", b.add("mul", x, scale), tensor(b, (24,)))
    return b.build(b.add("cast", add_rotary(b, y, tensor(b, (4, 1, 24)), tensor(b, (4, 1, 24))), dtype="bfloat16"))


def causal_softmax() -> Graph:
    b = GraphBuilder()
    x = tensor(b, (2, 9, 300), "float16")
    seen = b.add("le", b.iota(300, 2, 3, "int32"), b.iota(9, 1, 3, "int32"))
    logits = b.add("where", seen, b.add("cast", x, dtype="float32"), b.constant(float("-inf")))
    powers = b.add("exp", b.add("sub", logits, b.add("amax", logits, axes=(2,))))
    return b.build(b.add("div", powers, b.add("sum", powers, axes=(2,)), dtype="float16"))


def joined_rows() -> Graph:
    b = GraphBuilder()
    whole = b.add("cat", tensor(b, (5, 60)), b.add("neg", tensor(b, (5, 240))), axis=1)
    return b.build(b.add("sub", whole, b.add("amax", whole, axes=(1,))))


def masked_product() -> Graph:
    """Scores with a causal mask and a table row added, behind a matmul of two roped operands."""
    b = GraphBuilder()
    y = b.add("matmul", tensor(b, (2, 20, 16)), tensor(b, (2, 16, 24)))
    seen = b.add("le", b.iota(24, 2, 3, "int32"), b.iota(20, 1, 3, "int32"))
    added = b.add("gather", tensor(b, (7, 24)), b.input(TensorSpec.contiguous((20,), "int32")))
    return b.build(b.add("where", seen, b.add("add", y, added), b.constant(-1e9), dtype="float32"))


POINTWISE_MOVES = {
    "rotary": rotary,
    "rotary_heads_first": lambda: rotary("float32", tokens_first=False),
    "embedding": embedding,
    "gather_turned": gather_turned,
    "gather_scalars": gather_scalars,
    "joined_first": lambda: joined(0),
    "joined_middle": lambda: joined(1),
    "joined_last": lambda: joined(2),
    "rolls": rolls,
    "counted": counted,
    "view_of_a_count": view_of_a_count,
}
ROWWISE_MOVES = {
    "norm_of_embedding": norm_of_embedding,
    "norm_and_rotary": norm_and_rotary,
    "causal_softmax": causal_softmax,
    "joined_rows": joined_rows,
}
CONTRACTION_MOVES = {"masked_product": masked_product}
