"""Attention bodies as capture writes them: scores, scale, masks, softmax, values; heads grouped by stride-0 views."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable

from engine.ir import Graph, GraphBuilder, TensorSpec
from engine.ir.graph import contiguous_strides

MINUS_INFINITY = float("-inf")


def add_softmax(b: GraphBuilder, x: int, dtype: str, *, safe: bool = False) -> int:
    """A softmax over the last axis; a `safe` one is zero in rows of -inf."""
    axes = (len(b.spec(x).shape) - 1,)
    peak = b.add("amax", x, axes=axes)
    powers = b.add("exp", b.add("sub", x, peak))
    weights = b.add("div", powers, b.add("sum", powers, axes=axes), dtype=dtype)
    if not safe:
        return weights
    return b.add("where", b.add("eq", peak, b.constant(MINUS_INFINITY)), b.constant(0.0, dtype), weights, dtype=dtype)


def add_causal(b: GraphBuilder, scores: int, *, offset: int = 0, window: int = 0, fill: float = MINUS_INFINITY) -> int:
    """Keys at most `offset` places after the query, and (with a window) fewer than `window` places before that."""
    *lead, rows, keys = b.spec(scores).shape
    rank = len(lead) + 2
    row, column = b.iota(rows, rank - 2, rank, "int32"), b.iota(keys, rank - 1, rank, "int32")
    if offset:
        row = b.add("add", row, b.constant(offset, "int64"), dtype="int32")
    seen = b.add("le", column, row)
    if window:
        near = b.add("lt", b.add("sub", row, column), b.constant(window, "int64"))
        seen = b.add("logical_and", seen, near)
    return b.add("where", seen, scores, b.constant(fill), dtype="float32")


def attention(
    heads: int,
    rows: int,
    keys: int,
    head: int,
    dtype: str,
    *,
    batch: int = 1,
    group: int = 1,
    width: int = 0,
    scale: float = 0.125,
    cap: float = 0.0,
    causal: bool = False,
    offset: int = 0,
    window: int = 0,
    fill: float = MINUS_INFINITY,
    added: tuple[int, ...] = (),
    hidden: tuple[int, ...] = (),
    tokens_first: bool = True,
    joined: bool = True,
    safe: bool = False,
) -> Graph:
    """`heads` query heads, `group` of which share keys and values. `added` is the shape of an additive mask, `hidden`
    of a truth mask of what to leave out. `tokens_first` stores queries, keys and values as [B, S, H, D];
    `joined` returns the result as a copy in [B, S, H, D]. `cap` caps scores softly before they are masked. `safe` gives
    zeros for queries without keys."""
    b = GraphBuilder()
    width = width or head
    shared = heads // group
    lead = (batch, shared, group) if group > 1 else (batch, heads)
    query = _heads(b, (batch, heads, rows, head), dtype, tokens_first, 1, heads)
    key = _heads(b, (batch, shared, keys, head), dtype, tokens_first, group, shared)
    value = _heads(b, (batch, shared, keys, width), dtype, tokens_first, group, shared)
    if group > 1:
        spec = b.spec(query)
        strides = (spec.strides[0], spec.strides[1] * group, *spec.strides[1:])
        query = b.view(query, (*lead, rows, head), strides)
    spec = b.spec(key)
    turned = b.view(key, (*lead, head, keys), (*spec.strides[:-2], spec.strides[-1], spec.strides[-2]))
    scores = b.add("matmul", query, turned, dtype="float32")
    if scale != 1:
        scores = b.add("mul", scores, b.constant(scale))
    if cap:
        scores = b.add("mul", b.add("tanh", b.add("div", scores, b.constant(cap))), b.constant(cap))
    if causal:
        scores = add_causal(b, scores, offset=offset, window=window, fill=fill)
    if added:
        scores = b.add("add", scores, b.input(TensorSpec.contiguous(added, dtype)), dtype="float32")
    if hidden:
        mask = b.input(TensorSpec.contiguous(hidden, "bool"))
        scores = b.add("where", mask, b.constant(fill), scores, dtype="float32")
    out = b.add("matmul", add_softmax(b, scores, dtype, safe=safe), value)
    if joined:
        order = (batch, rows, heads, width)
        out = b.add("copy", b.view(out, order, (heads * rows * width, width, rows * width, 1)))
    return b.build(out)


def slices_of_keys(heads: int, slices: int, rows: int, keys: int, head: int, dtype: str) -> Graph:
    """Attention over slices of the keys, each with its result, its largest logits and its sums of powers."""
    b = GraphBuilder()
    stored = (slices * keys * head, keys * head, head, 1)
    query = b.input(TensorSpec((heads, slices, rows, head), dtype, (rows * head, 0, head, 1)))
    key = b.input(TensorSpec((heads, slices, head, keys), dtype, (*stored[:2], 1, head)))
    value = b.input(TensorSpec((heads, slices, keys, head), dtype, stored))
    logits = b.add("mul", b.add("matmul", query, key, dtype="float32"), b.constant(0.125))
    peak = b.add("amax", logits, axes=(3,))
    powers = b.add("exp", b.add("sub", logits, peak))
    total = b.add("sum", powers, axes=(3,))
    weights = b.add("div", powers, total, dtype=dtype)
    return b.build(b.add("matmul", weights, value, dtype="float32"), peak, total)


def _heads(b: GraphBuilder, shape: tuple[int, ...], dtype: str, tokens_first: bool, group: int, heads: int) -> int:
    """An input of [B, H, S, D], stored so or as [B, S, H, D]; with a group, H is split and repeated by stride 0."""
    batch, count, rows, head = shape
    strides = contiguous_strides(shape)
    if tokens_first:
        strides = (rows * count * head, head, count * head, 1)
    if group == 1:
        return b.input(TensorSpec(shape, dtype, strides))
    return b.input(TensorSpec((batch, count, group, rows, head), dtype, (*strides[:2], 0, *strides[2:])))


def two_masks() -> Graph:
    """Half precision scores cast before the softmax, a mask a head, and a sliding window."""
    return attention(4, 40, 40, 32, "float16", batch=2, causal=True, window=9, added=(1, 4, 1, 40))


ATTENTION: dict[str, Callable[[], Graph]] = {
    "plain_bf16": lambda: attention(2, 64, 64, 64, "bfloat16"),
    "causal_fp16": lambda: attention(2, 64, 64, 32, "float16", causal=True, batch=2),
    "causal_ragged": lambda: attention(3, 50, 50, 24, "bfloat16", causal=True),
    "causal_fp32": lambda: attention(2, 33, 33, 16, "float32", causal=True),
    "grouped": lambda: attention(4, 48, 48, 64, "bfloat16", group=2, causal=True, batch=2),
    "grouped_by_eight": lambda: attention(8, 20, 36, 16, "float16", group=8, causal=True, offset=16),
    "grouped_added": lambda: attention(4, 32, 40, 16, "float32", group=2, added=(1, 1, 1, 32, 40)),
    "heads_first": lambda: attention(3, 32, 64, 32, "bfloat16", tokens_first=False, joined=False, batch=2),
    "one_query": lambda: attention(4, 1, 70, 64, "bfloat16", group=2),
    "one_query_causal": lambda: attention(2, 1, 30, 32, "float32", causal=True, offset=29),
    "one_key": lambda: attention(2, 20, 1, 16, "float32"),
    "window": lambda: attention(2, 70, 70, 16, "float32", causal=True, window=20),
    "window_only_far": lambda: attention(1, 64, 64, 16, "bfloat16", causal=True, window=5, joined=False),
    "finite_fill": lambda: attention(2, 40, 40, 16, "float32", causal=True, fill=-3.4e38),
    "rows_without_keys": lambda: attention(2, 40, 30, 16, "float32", causal=True, offset=-5),
    "rows_without_keys_finite": lambda: attention(1, 40, 30, 16, "float32", causal=True, offset=-5, fill=-3e38),
    "hidden": lambda: attention(2, 24, 40, 16, "float32", hidden=(1, 1, 24, 40)),
    "safe_rows_without_keys": lambda: attention(2, 40, 30, 16, "float32", causal=True, offset=-5, safe=True),
    "safe_hidden": lambda: attention(4, 24, 40, 16, "float16", group=2, hidden=(1, 1, 24, 1), safe=True),
    "safe_hidden_ragged": lambda: attention(2, 24, 39, 16, "bfloat16", batch=2, hidden=(2, 1, 1, 1), safe=True),
    "safe_added": lambda: attention(2, 24, 40, 16, "float32", added=(24, 40), safe=True),
    "hidden_finite": lambda: attention(2, 24, 40, 16, "float16", hidden=(1, 1, 24, 40), fill=-1e4),
    "two_masks": two_masks,
    "narrow_values": lambda: attention(2, 32, 32, 48, "bfloat16", width=20, causal=True),
    "large_head": lambda: attention(1, 32, 48, 256, "bfloat16"),
    "no_scale": lambda: attention(1, 17, 19, 20, "float32", scale=1.0, joined=False),
    "slices_of_keys": lambda: slices_of_keys(2, 3, 2, 40, 32, "bfloat16"),
    "slices_of_keys_fp32": lambda: slices_of_keys(1, 2, 5, 64, 24, "float32"),
    "long_causal": lambda: attention(2, 40, 1024, 16, "bfloat16", causal=True, offset=984),
    "long_causal_ragged": lambda: attention(2, 50, 1024, 24, "float32", causal=True, offset=1000, group=2),
    "long_causal_rows_without_keys": lambda: attention(1, 40, 1024, 16, "float16", causal=True, offset=-5),
    "roles_full": lambda: attention(2, 128, 256, 128, "bfloat16", group=2),
    "roles_causal": lambda: attention(3, 256, 256, 64, "float16", causal=True),
    "roles_grouped": lambda: attention(8, 128, 256, 64, "bfloat16", group=8, causal=True, offset=128),
    "roles_heads_first": lambda: attention(
        *(2, 256, 384, 128, "float16"), group=2, batch=2, causal=True, tokens_first=False, joined=False
    ),
    "soft_capped": lambda: attention(2, 40, 40, 16, "bfloat16", cap=0.5),
    "soft_capped_causal": lambda: attention(2, 50, 50, 24, "float32", cap=0.5, causal=True),
    "soft_capped_causal_long": lambda: attention(2, 40, 1024, 16, "float32", cap=0.5, causal=True, offset=984, group=2),
    "soft_capped_rows_without_keys": lambda: attention(1, 40, 1024, 16, "float16", cap=2.0, causal=True, offset=-5),
    "soft_capped_window": lambda: attention(2, 70, 70, 16, "float32", cap=0.5, causal=True, window=20),
    "soft_capped_finite_fill": lambda: attention(2, 40, 40, 16, "float32", cap=0.5, causal=True, fill=-3.4e38),
    "soft_capped_added": lambda: attention(2, 24, 40, 16, "float32", cap=0.5, added=(1, 1, 24, 40)),
    "soft_capped_added_causal": lambda: attention(
        *(2, 40, 40, 32, "bfloat16"), cap=0.5, causal=True, added=(1, 2, 1, 40)
    ),
    "negative_scale": lambda: attention(1, 32, 32, 16, "float32", scale=-0.5, causal=True),
}


def grouped_scores(dtype: str) -> Graph:
    """Scores apart, of heads that share keys by stride 0, masked and scaled in the epilogue."""
    b = GraphBuilder()
    query = _heads(b, (2, 4, 20, 32), dtype, True, 1, 4)
    query = b.view(query, (2, 2, 2, 20, 32), (20 * 128, 64, 32, 128, 1))
    key = b.input(TensorSpec((2, 2, 2, 32, 24), dtype, (24 * 64, 32, 0, 1, 64)))
    scores = b.add("mul", b.add("matmul", query, key, dtype="float32"), b.constant(0.2))
    return b.build(add_causal(b, scores, offset=4))


def grouped_values(dtype: str) -> Graph:
    """Weights times values apart, the values shared by stride 0."""
    b = GraphBuilder()
    weights = b.input(TensorSpec.contiguous((2, 2, 3, 20, 24), dtype))
    value = b.input(TensorSpec((2, 2, 3, 24, 16), dtype, (24 * 32, 16, 0, 32, 1)))
    return b.build(b.add("matmul", weights, value))


def drawn(seed: int) -> Graph:
    """Attention of shapes that nobody chose."""
    draw = random.Random(seed)
    group, shared = draw.choice((1, 2, 8)), draw.choice((1, 2))
    rows, keys, head = draw.randint(1, 90), draw.randint(1, 90), draw.randint(1, 70)
    masked = draw.random() < 0.4
    return attention(
        group * shared,
        rows,
        keys,
        head,
        draw.choice(("float16", "bfloat16", "float32")),
        batch=draw.randint(1, 2),
        group=group,
        width=draw.choice((0, draw.randint(1, 70))),
        causal=draw.random() < 0.7,
        offset=max(keys - rows, 0) + draw.randint(0, 3),
        window=draw.choice((0, rows + keys, draw.randint(keys, keys + rows + 3))),
        hidden=(1, *((1,) if group > 1 else ()), 1, 1, keys) if masked else (),
        tokens_first=draw.random() < 0.5,
        joined=draw.random() < 0.5,
    )


ATTENTION |= {f"drawn_{seed}": functools.partial(drawn, seed) for seed in range(10)}
APART = {
    "grouped_scores": lambda: grouped_scores("bfloat16"),
    "grouped_scores_fp32": lambda: grouped_scores("float32"),
    "grouped_values": lambda: grouped_values("float16"),
}
