"""Scaled dot product attention as the matmuls, the mask and the softmax that it is made of.

Scores are float32 from the first product to the softmax, as torch's fused kernels keep them. Heads that share
keys and values stand on an axis of their own: queries are [..., Hkv, G, S, D], keys and values [..., Hkv, G, S, D]
with stride 0 along G, and nothing is repeated in memory. The causal mask is a comparison of positions.

A query whose keys are all hidden gets zeros, where a softmax has NaN. Only a mask that may hide all of them needs that
said: one that compares positions and shows each query a key leaves the plain softmax.
"""

from __future__ import annotations

import math

from engine.capture import norms
from engine.capture.errors import UnsupportedOpError
from engine.capture.lowering import Lowering, Value
from engine.ir.attention import attention_chain
from engine.ir.attention_mask import read_masking
from engine.ir.views import expanded, permuted, with_axis


def attention(
    low: Lowering,
    dtype: str,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """torch.nn.functional.scaled_dot_product_attention. Raises UnsupportedOpError for dropout or unequal batches."""
    if dropout_p:
        raise UnsupportedOpError("Attention with dropout is not supported: call .eval() on the module first.")
    asked, shape = query.shape, (*query.shape[:-1], value.shape[-1])
    key, value = low.before_repeating(key), low.before_repeating(value)
    group = _group_size(query, key, value)
    wide = norms.inside(dtype)
    query, key, value = _grouped(low, query, group), _shared(low, key, group), _shared(low, value, group)
    scores = low.matmul(query, low.view(key, permuted(low.spec(key), _swap_last(key))), wide)
    factor = 1 / math.sqrt(asked[-1]) if scale is None else scale
    if factor != 1:
        scores = low.pointwise("mul", scores, float(factor), dtype=wide)
    if is_causal:
        scores = _masked(low, scores, _causal_mask(low, scores), wide)
    if attn_mask is not None:
        scores = _masked(low, scores, _mask_of_groups(low, attn_mask, asked, group), wide)
    weights = norms.softmax(low, scores, len(scores.shape) - 1, dtype, log=False)
    done = low.matmul(weights, value, dtype)
    if attn_mask is not None and not _every_row_sees(low, done):
        done = low.matmul(_zero_where_hidden(low, scores, weights, wide), value, dtype)
    return low.reshape(done, shape)


def _every_row_sees(low: Lowering, values: Value) -> bool:
    """Whether the mask of the attention that ends in `values` certainly leaves each query a key."""
    graph = low.builder.built(values.index)
    chain = attention_chain(graph, graph.outputs[0])
    if chain is None:
        return False
    masking = read_masking(graph, chain)
    rows, keys = graph.ops[chain.logits].out.shape[-2:]
    return masking.bounds.every_row_sees(rows, keys)


def _zero_where_hidden(low: Lowering, scores: Value, weights: Value, wide: str) -> Value:
    """The weights, with zeros in the rows whose largest score is -inf."""
    peak = low.reduce("amax", scores, (len(scores.shape) - 1,), True, wide)
    hidden = low.pointwise("eq", peak, -math.inf, dtype="bool")
    return low.pointwise("where", hidden, 0.0, weights, dtype=low.dtype(weights))


def _group_size(query: Value, key: Value, value: Value) -> int:
    """How many heads of the query share one of the keys."""
    if len(query.shape) < 3 and query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        return 1
    heads, shared = query.shape[-3], key.shape[-3]
    alike = key.shape[:-1] == value.shape[:-1] and query.shape[:-3] == key.shape[:-3]
    if not alike or heads % shared:
        raise UnsupportedOpError(
            f"Attention of shapes {query.shape}, {key.shape} and {value.shape} is not supported: "
            "batches must be equal, and the heads of the query a multiple of the others'."
        )
    return heads // shared


def _grouped(low: Lowering, query: Value, group: int) -> Value:
    if group == 1:
        return query
    *lead, heads, length, depth = query.shape
    return low.reshape(query, (*lead, heads // group, group, length, depth))


def _shared(low: Lowering, value: Value, group: int) -> Value:
    value = Value(low.stored(value), value.shape)
    if group == 1:
        return value
    spec = with_axis(low.spec(value), len(value.shape) - 2)
    return low.view(value, expanded(spec, (*spec.shape[:-3], group, *spec.shape[-2:])))


def _swap_last(value: Value) -> tuple[int, ...]:
    rank = len(value.shape)
    return (*range(rank - 2), rank - 1, rank - 2)


def _causal_mask(low: Lowering, scores: Value) -> Value:
    """Keys up to the query's own position, counted from the first of both."""
    rank = len(scores.shape)
    rows = low.iota(scores.shape[-2], rank - 2, rank, "int32")
    columns = low.iota(scores.shape[-1], rank - 1, rank, "int32")
    return low.pointwise("le", columns, rows, dtype="bool")


def _mask_of_groups(low: Lowering, mask: Value, asked: tuple[int, ...], group: int) -> Value:
    """The mask with an axis for the heads that share a key."""
    if group == 1 or len(mask.shape) < 3:
        return mask
    *lead, heads, rows, columns = mask.shape
    return low.reshape(mask, (*lead, *((heads // group, group) if heads > 1 else (1, 1)), rows, columns))


def _masked(low: Lowering, scores: Value, mask: Value, wide: str) -> Value:
    if low.dtype(mask) == "bool":
        return low.pointwise("where", mask, scores, -math.inf, dtype=wide)
    return low.pointwise("add", scores, mask, dtype=wide)
