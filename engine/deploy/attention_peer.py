"""A kernel's attention as anybody would write it in torch: one call of its scaled_dot_product_attention.

Op by op the scores are written to memory and read again several times, which no user of torch puts up with; a kernel
that is compared with that looks many times faster than it is. What comes before the scores, and what moves the result,
stays as it is. Which backend runs is torch's own choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F

from engine.deploy.peers import OP_BY_OP, TORCH_ATTENTION, Function, eager_body, traced
from engine.ir.attention import AttentionChain, attention_chain, steps_to_scores
from engine.ir.attention_mask import FAR_BELOW, read_masking
from engine.ir.builder import GraphBuilder
from engine.ir.graph import Graph, TensorSpec
from engine.ir.positions import position_values
from engine.ir.views import view_axes
from engine.measure import less_exact_than_eager
from engine.runtime import Case, compare, evaluate

Tensors = Sequence[torch.Tensor]


@dataclass(frozen=True, slots=True)
class _Mask:
    """Op `index` of the body is added to the scores or, as a truth value, says which are kept (`negated`: hidden)."""

    index: int
    added: bool = False
    negated: bool = False


@dataclass(frozen=True, slots=True)
class _Form:
    """`front` gives queries [..., R, D], keys [..., D, K] and values [..., K, W], `hiding` the values of `masks`, which
    are `fixed` where positions alone decide them. `grouped`: keys and values repeat along the last leading axis."""

    front: Graph
    back: Graph
    hiding: Graph
    scale: float
    causal: bool
    grouped: bool
    masks: tuple[_Mask, ...]
    fixed: bool


def body_of_peers(body: Graph, case: Case) -> tuple[Function, str]:
    """What peers of a kernel are given, and how it is written: TORCH_ATTENTION where the body is one and that call's
    result is right, else OP_BY_OP."""
    try:
        attention = attention_body(body, case.inputs)
        if attention is not None:
            with torch.no_grad():
                found = compare(attention(*case.inputs), case.references)
            dtypes = [str(output.dtype) for output in case.outputs]
            if less_exact_than_eager(found, case.eager, dtypes, case.rounding) is None:
                return attention, TORCH_ATTENTION
    except RuntimeError:
        torch.cuda.empty_cache()  # torch has no backend for its shapes, or none that fits into the memory
    return eager_body(body, case.inputs), OP_BY_OP


def attention_body(body: Graph, inputs: Tensors) -> Function | None:
    """The body with its attention as one call, a graph of torch calls without Python between them; None where it holds
    none, or none that the call can say. Its result is to be checked: a query without keys gets zeros from torch."""
    form = _read_form(body)
    if form is None:
        return None
    fixed = _joined_mask(form, inputs) if form.fixed else None

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        mask = fixed if form.fixed else _joined_mask(form, tensors)
        return _finished(form.back, tensors, _attend(form, evaluate(form.front, tensors, None), mask))

    return traced(run, inputs)


def _read_form(body: Graph) -> _Form | None:
    found = [chain for index in range(len(body.ops)) if (chain := attention_chain(body, index)) is not None]
    if len(found) != 1:
        return None
    (chain,) = found
    scores, values = body.ops[chain.scores], body.ops[chain.values]
    operands = (*scores.inputs, values.inputs[1])
    path = _read_path(body, chain)
    front, back = _part(body, operands), _part(body, body.outputs, chain.values)
    if path is None or any(op.kind == "matmul" for op in back.ops):
        return None
    if len({body.ops[i].out.dtype for i in operands}) != 1:
        return None
    masks, scale = path
    rows, keys = scores.out.shape[-2:]
    bounds = read_masking(body, chain).bounds
    causal = bounds.exact and bounds.low == 0 and (bounds.high is None or bounds.high >= rows - 1)
    if bounds.exact and (causal or bounds.pairs(rows, keys) == rows * keys):
        masks = ()
    hiding = _part(body, tuple(mask.index for mask in masks))
    fixed = all(position_values(body, mask.index) is not None for mask in masks)
    group = [body.ops[i].out for i in operands[1:]]
    grouped = len(scores.out.shape) > 3 and all(spec.strides[-3] == 0 and spec.shape[-3] > 1 for spec in group)
    return _Form(front, back, hiding, scale, causal, grouped, masks, fixed)


def _read_path(body: Graph, chain: AttentionChain) -> tuple[tuple[_Mask, ...], float] | None:
    """What hides scores, and what they are multiplied by before; None where anything else becomes of them."""
    found: list[_Mask] = []
    for step in steps_to_scores(body, chain):
        op, position = step.op, step.position
        if position is None:
            return None
        if op.kind in ("mul", "div") and step.below == chain.scores:
            scale = _number(body, step.other) if op.kind == "mul" or position == 0 else None
            return (tuple(found), scale if op.kind == "mul" else 1 / scale) if scale else None
        if op.kind == "add":
            found.append(_Mask(step.other, added=True))
        elif op.kind == "where":
            fill = _number(body, op.inputs[3 - position]) if position else None
            if fill is None or fill > FAR_BELOW:
                return None
            found.append(_Mask(op.inputs[0], negated=position == 2))
        elif op.kind not in ("cast", "copy"):
            return None
    return tuple(found), 1.0


def _number(body: Graph, index: int) -> float | None:
    op = body.ops[index]
    return float(op.attribute("value")) if op.kind == "constant" else None


def _part(body: Graph, outputs: tuple[int, ...], given: int | None = None) -> Graph:
    """The body up to these outputs; from the op `given` on, which becomes the last input."""
    build = GraphBuilder()
    where = {index: build.input(body.ops[index].out) for index in body.inputs}
    if given is not None:
        where[given] = build.input(TensorSpec.contiguous(body.ops[given].out.shape, body.ops[given].out.dtype))
    stack = list(outputs)
    needed: set[int] = set()
    while stack:
        index = stack.pop()
        if index not in needed and index not in where:
            needed.add(index)
            stack.extend(body.ops[index].inputs)
    for index in sorted(needed):
        op = body.ops[index]
        where[index] = build.append(replace(op, inputs=tuple(where[i] for i in op.inputs)))
    return build.built(*(where[index] for index in outputs))


def _joined_mask(form: _Form, tensors: Tensors) -> torch.Tensor | None:
    """All masks as one of four axes: a truth value, or in the dtype of the queries where one is added. One that is made
    only once is added too, as torch would make such a one of a truth value in each call."""
    if not form.masks:
        return None
    query = form.front.ops[form.front.outputs[0]].out
    kept: torch.Tensor | None = None
    total: torch.Tensor | None = None
    for mask, value in zip(form.masks, evaluate(form.hiding, tensors, None), strict=True):
        if mask.added:
            total = value if total is None else total + value
        else:
            seen = ~value if mask.negated else value
            kept = seen if kept is None else kept & seen
    if total is None and form.fixed:
        total = torch.zeros((), device=tensors[0].device)
    if total is None:
        assert kept is not None
        return _of_four_axes(kept, query.shape[:-2], form.grouped)
    if kept is not None:
        total = torch.where(kept, total, -math.inf)
    return _of_four_axes(total.to(getattr(torch, query.dtype)), query.shape[:-2], form.grouped)


def _of_four_axes(mask: torch.Tensor, lead: tuple[int, ...], grouped: bool) -> torch.Tensor:
    """The mask [batch, heads, R, K], 1 in place of an axis that it is the same along where that is all of it."""
    mask = mask.reshape((1,) * (len(lead) + 2 - mask.dim()) + tuple(mask.shape))
    if all(extent == 1 for extent in mask.shape[:-2]):
        return mask.reshape(1, 1, *mask.shape[-2:])
    return _four_axes(mask.expand(*lead, -1, -1), 2 if grouped else 1)


def _four_axes(tensor: torch.Tensor, heads: int = 1) -> torch.Tensor:
    """[batch, heads, rows, columns] of a tensor whose last `heads` leading axes are those of the heads."""
    lead = tensor.shape[:-2]
    batch, rest = lead[: len(lead) - heads], lead[len(lead) - heads :]
    return tensor.reshape(math.prod(batch), math.prod(rest), *tensor.shape[-2:])


def _attend(form: _Form, operands: Tensors, mask: torch.Tensor | None) -> torch.Tensor:
    """[batch, heads, R, W]."""
    query, key, value = operands
    key = key.transpose(-1, -2)
    if form.grouped:
        key, value = key.select(-3, 0), value.select(-3, 0)
    heads = 2 if form.grouped else 1
    return F.scaled_dot_product_attention(
        _four_axes(query, heads),
        _four_axes(key),
        _four_axes(value),
        attn_mask=mask,
        is_causal=form.causal,
        scale=form.scale,
        enable_gqa=form.grouped,
    )


def _finished(back: Graph, tensors: Tensors, result: torch.Tensor) -> list[torch.Tensor]:
    """What the body does with the result. torch's attention gives it as the queries lie in memory, and turning its axes
    and copying it there is free, as in a user's program; where more is done it is, op by op."""
    moved = _moved(back, result)
    if moved is not None:
        return [moved]
    spec = back.ops[back.inputs[-1]].out
    whole = result.to(getattr(torch, spec.dtype)).contiguous().view(spec.shape)
    return evaluate(back, [*tensors, whole], None)


def _moved(back: Graph, result: torch.Tensor) -> torch.Tensor | None:
    """The only output where nothing but views, copies and casts lead to it."""
    path: list[int] = []
    index = back.outputs[0]
    while len(back.outputs) == 1 and back.ops[index].kind in ("view", "copy", "cast"):
        path.insert(0, index)
        index = back.ops[index].inputs[0]
    if len(back.outputs) != 1 or index != back.inputs[-1]:
        return None
    spec = back.ops[index].out
    value, stored = result.to(getattr(torch, spec.dtype)), TensorSpec.contiguous(tuple(result.shape), spec.dtype)
    whole = value
    for index in path:
        op = back.ops[index]
        if op.kind != "view":
            value = value.to(getattr(torch, op.out.dtype)).contiguous()
            whole, stored = value, TensorSpec.contiguous(op.out.shape, op.out.dtype)
            continue
        seen = _view_of(whole, stored, op.out)
        if seen is None:
            return None
        value = seen
    return value.reshape(back.ops[back.outputs[0]].out.shape)


def _view_of(tensor: torch.Tensor, stored: TensorSpec, view: TensorSpec) -> torch.Tensor | None:
    """The view of a tensor that stands for one stored contiguously: its axes turned, or all of it in another shape."""
    if view.is_contiguous and view.numel == stored.numel:
        return tensor.reshape(view.shape)
    axes = view_axes(view, stored)
    if axes is None or view.numel != stored.numel:
        return None
    long = [axis for axis, extent in enumerate(stored.shape) if extent > 1]
    order = [long.index(axis) for axis in axes if axis is not None]
    return tensor.reshape([stored.shape[axis] for axis in long]).permute(order).reshape(view.shape)
