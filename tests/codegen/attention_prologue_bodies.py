"""Attention bodies that compute their queries and keys: a norm of each head, a rotation, other ops."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass

from engine.ir import Graph, GraphBuilder, TensorSpec
from tests.codegen.attention_bodies import add_causal, add_softmax


@dataclass(frozen=True)
class Heads:
    """`heads` query heads of `head` elements, `group` of which share keys and values."""

    heads: int
    rows: int
    keys: int
    head: int
    dtype: str
    batch: int = 1
    group: int = 1
    norm: str = "rms"
    rotary: bool = True
    flat: bool = True
    gap: int = 0
    queries: bool = True
    also_keys: bool = True
    causal: bool = True
    window: int = 0
    added: bool = False
    hidden: bool = False
    joined: bool = True

    def body(self) -> Graph:
        return attention_of(self)


def attention_of(made: Heads) -> Graph:
    """The body as a layer has it: projections in, [B, S, H, D] out (or heads first, where it isn't `joined`)."""
    b = GraphBuilder()
    batch, shared, head = made.batch, made.heads // made.group, made.head
    waves = [b.input(TensorSpec.contiguous((batch, max(made.rows, made.keys), head), made.dtype)) for _ in range(2)]
    query = _computed(b, made, made.heads, made.rows, waves if made.queries else None)
    key = _computed(b, made, shared, made.keys, waves if made.also_keys else None)
    value = _projected(b, made, shared, made.keys)
    lead = (batch, shared, made.group)
    rows, keys = made.rows, made.keys
    query = b.view(query, (*lead, rows, head), _strides(b, query, rows, made.heads, head, made.group))
    steps = _strides(b, key, keys, shared, head, 1)
    turned = (steps[0], steps[1], 0, 1, steps[3])
    scores = b.add("matmul", query, b.view(key, (*lead, head, keys), turned, b.spec(key).offset), dtype="float32")
    scores = b.add("mul", scores, b.constant(head**-0.5))
    if made.causal:
        scores = add_causal(b, scores, offset=max(keys - rows, 0), window=made.window)
    if made.added:
        mask = b.input(TensorSpec.contiguous((batch, 1, 1, rows, keys), made.dtype))
        scores = b.add("add", scores, mask, dtype="float32")
    if made.hidden:
        seen = b.input(TensorSpec.contiguous((batch, 1, 1, rows, keys), "bool"))
        scores = b.add("where", seen, scores, b.constant(float("-inf")), dtype="float32")
    steps = _strides(b, value, keys, shared, head, 1)
    repeated = b.view(value, (*lead, keys, head), (steps[0], steps[1], 0, steps[3], 1), b.spec(value).offset)
    out = b.add("matmul", add_softmax(b, scores, made.dtype, safe=made.hidden), repeated)
    if made.joined:
        order = (made.heads * rows * head, head, rows * head, 1)
        out = b.add("copy", b.view(out, (batch, rows, made.heads, head), order))
    return b.build(out)


def _projected(b: GraphBuilder, made: Heads, heads: int, tokens: int) -> int:
    """[B, S, H * D] or [B, S, H, D], the rows `gap` elements apart (parts of one wide projection)."""
    wide = heads * made.head + made.gap
    if made.flat:
        shape, strides = (made.batch, tokens, heads * made.head), (tokens * wide, wide, 1)
    else:
        shape, strides = (made.batch, tokens, heads, made.head), (tokens * wide, wide, made.head, 1)
    return b.input(TensorSpec(shape, made.dtype, strides, made.gap))


def _strides(b: GraphBuilder, value: int, tokens: int, heads: int, head: int, group: int) -> tuple[int, ...]:
    """Strides of [B, heads / group, group, S, D] over a value of [B, S, H, D]."""
    spec = b.spec(value)
    row = spec.strides[1] if tokens > 1 else heads * head
    return (tokens * row, group * head, head, row, 1)


def _computed(b: GraphBuilder, made: Heads, heads: int, tokens: int, waves: list[int] | None) -> int:
    projected = _projected(b, made, heads, tokens)
    if waves is None:
        return projected
    shape = (made.batch, tokens, heads, made.head)
    value = _normed(b, made, projected, shape) if made.norm else b.add("mul", projected, b.constant(1.25))
    if b.spec(value).shape != shape:
        value = b.view(value, shape, TensorSpec.contiguous(shape, made.dtype).strides)
    return _turned(b, value, waves, made.head, tokens) if made.rotary else value


def _normed(b: GraphBuilder, made: Heads, projected: int, shape: tuple[int, ...]) -> int:
    """As HF's RMSNorm in float32, or as a norm by the largest element."""
    strides = TensorSpec.contiguous(shape, "float32").strides
    wide = b.add("cast", projected, dtype="float32")
    if made.norm == "largest":
        sizes = b.view(b.add("abs", wide), shape, strides)
        scaled = b.add(
            "div", b.view(wide, shape, strides), b.add("add", b.add("amax", sizes, axes=(3,)), b.constant(0.5))
        )
        return b.add("cast", scaled, dtype=made.dtype)
    squares = b.view(b.add("mul", wide, wide), shape, strides)
    root = b.add("rsqrt", b.add("add", b.add("mean", squares, axes=(3,)), b.constant(1e-6)))
    normed = b.add("cast", b.add("mul", b.view(wide, shape, strides), root), dtype=made.dtype)
    return b.add("mul", b.input(TensorSpec.contiguous((made.head,), made.dtype)), normed)


def _turned(b: GraphBuilder, value: int, waves: list[int], head: int, tokens: int) -> int:
    """x * cos + rotate_half(x) * sin, the angles by token."""
    batch, longest, _ = b.spec(waves[0]).shape
    cos, sin = (b.view(w, (batch, tokens, 1, head), (longest * head, head, 0, 1)) for w in waves)
    rolled = b.add("roll", value, axis=3, shift=head // 2)
    low = b.add("lt", b.iota(head, 3, 4, "int32"), b.constant(head // 2, "int32"))
    half = b.add("where", low, b.add("neg", rolled), rolled)
    return b.add("add", b.add("mul", value, cos), b.add("mul", half, sin))


def drawn(seed: int) -> Heads:
    """Heads of shapes that nobody chose."""
    draw = random.Random(seed)
    group, shared = draw.choice((1, 2, 8)), draw.choice((1, 2))
    rows, keys = draw.choice((1, draw.randint(2, 50))), draw.randint(1, 50)
    rows = min(rows, keys)
    flat = draw.random() < 0.5
    return Heads(
        group * shared,
        rows,
        keys,
        2 * draw.randint(1, 40),
        draw.choice(("float16", "bfloat16", "float32")),
        batch=draw.randint(1, 2),
        group=group,
        norm=draw.choice(("", "rms", "largest")),
        rotary=draw.random() < 0.6,
        flat=flat,
        gap=draw.choice((0, 8, 24)),
        queries=draw.random() < 0.8,
        also_keys=draw.random() < 0.8,
        causal=draw.random() < 0.6,
        window=draw.choice((0, keys)),
        added=draw.random() < 0.3,
        joined=draw.random() < 0.5,
    )


QWEN3_LAYER = Heads(16, 32, 32, 128, "bfloat16", group=2)
PROLOGUES: dict[str, Callable[[], Graph]] = {
    "norm_and_rotary_bf16": Heads(4, 24, 24, 32, "bfloat16", group=2, batch=2).body,
    "norm_and_rotary_fp16": Heads(2, 20, 36, 64, "float16").body,
    "norm_and_rotary_fp32": Heads(2, 33, 33, 16, "float32", group=2).body,
    "norm_by_eight": Heads(8, 17, 17, 16, "bfloat16", group=8).body,
    "norm_of_one_token": Heads(4, 1, 40, 64, "bfloat16", group=2).body,
    "norm_of_one_key": Heads(2, 1, 1, 16, "float32", joined=False).body,
    "norm_of_odd_heads": Heads(3, 19, 19, 24, "bfloat16", norm="largest").body,
    "norm_of_wide_heads": Heads(1, 16, 20, 200, "bfloat16").body,
    "norm_of_widest_heads": Heads(1, 16, 16, 256, "float16").body,
    "norm_window": Heads(2, 40, 40, 16, "float32", window=9).body,
    "norm_added": Heads(4, 20, 24, 16, "float32", group=2, causal=False, added=True).body,
    "norm_hidden": Heads(4, 20, 24, 16, "float32", group=2, batch=2, hidden=True).body,
    "norm_of_parts": Heads(4, 20, 20, 32, "bfloat16", group=2, flat=False, gap=64).body,
    "norm_of_queries": Heads(2, 20, 20, 32, "float16", also_keys=False, rotary=False).body,
    "parts_as_they_are": Heads(8, 21, 30, 40, "float16", group=8, gap=48, queries=False, also_keys=False).body,
    "odd_heads_as_they_are": Heads(
        2, 1, 35, 200, "bfloat16", group=2, flat=False, queries=False, also_keys=False, causal=False, added=True
    ).body,
    "rotary_of_keys": Heads(2, 20, 20, 32, "float32", queries=False, norm="").body,
}
PROLOGUES |= {f"drawn_prologue_{seed}": functools.partial(attention_of, drawn(seed)) for seed in (1, 2, 3, 4, 6, 7)}
