"""Attention in a graph: scores, a softmax of what becomes of them, and the values that it weighs.

The chain is found by what the ops compute, from its last matmul backwards, so it means the same in a program's
graph, where a rule asks whether it may be one kernel, and in a kernel's body, which is written from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from engine.ir.graph import Graph, Op
from engine.ir.measures import matmul_extents
from engine.ir.ops import OP_CLASS, OpClass
from engine.ir.shapes import FLOATS

ATTENTION = "attention"
"""The family of kernels that hold one such chain."""

MAX_HEAD = 256
DTYPES = ("float16", "bfloat16", "float32")
_CASTS = ("cast", "copy")


@dataclass(frozen=True, slots=True)
class AttentionChain:
    """Indices of ops: `scores` = q @ k^T, `logits` what the softmax is taken of, `weights` @ v = `values`; `peak` and
    `total` are the largest logit of a row and its sum of powers.

    `path` are the pointwise ops from the scores (left out) to the logits (included where they are another op), and
    `ops` everything from the scores to the values. A row without any visible key (its peak is -inf) is NaN, as a
    softmax is, or zero where the chain is `safe`, as torch's attention is.
    """

    scores: int
    logits: int
    weights: int
    values: int
    peak: int
    total: int
    path: frozenset[int]
    ops: frozenset[int]
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """Op `index` between logits and scores. The scores come by its input `position`, None where by several or none."""

    index: int
    op: Op
    position: int | None

    @property
    def below(self) -> int | None:
        """The op that the scores come from."""
        return None if self.position is None else self.op.inputs[self.position]

    @property
    def other(self) -> int:
        """The other input of an op with two."""
        return self.op.inputs[0 if self.position else 1]


def steps_to_scores(graph: Graph, chain: AttentionChain) -> Iterator[Step]:
    """What the logits are made of, from the last op down to the scores, which are no step; the last one that is told
    is the one that they come by in no single way."""
    on_path = chain.path | {chain.scores}
    index: int | None = chain.logits
    while index is not None and index != chain.scores:
        op = graph.ops[index]
        positions = [position for position, source in enumerate(op.inputs) if source in on_path]
        step = Step(index, op, positions[0] if len(positions) == 1 else None)
        yield step
        index = step.below


def attention_chain(graph: Graph, values: int) -> AttentionChain | None:
    """The chain that ends in the matmul `values`, or None when its left operand is no softmax of scores."""
    op = graph.ops[values]
    if op.kind != "matmul":
        return None
    found: set[int] = set()
    guarded = _guarded(graph, op.inputs[0], found)
    softmax = _softmax(graph, op.inputs[0] if guarded is None else guarded[0])
    if softmax is None or (guarded is not None and guarded[1] != softmax[1]):
        return None
    logits, peak, total, inner = softmax
    if guarded is not None:
        inner |= found
    if graph.ops[logits].out.shape != graph.ops[op.inputs[0]].out.shape:
        return None
    path: set[int] = set()
    scores = _reached_scores(graph, logits, path)
    if scores is None or matmul_extents(graph, graph.ops[scores])[:2] != matmul_extents(graph, op)[:2]:
        return None
    ops = frozenset({scores, values, *path, *inner})
    return AttentionChain(scores, logits, op.inputs[0], values, peak, total, frozenset(path), ops, guarded is not None)


def unfit_because(graph: Graph, chain: AttentionChain) -> str | None:
    """A sentence why a chain is too large or of a dtype that no attention kernel takes, or None."""
    scores, values = graph.ops[chain.scores], graph.ops[chain.values]
    dtypes = {graph.ops[i].out.dtype for i in (*scores.inputs, *values.inputs)}
    if len(dtypes) != 1 or not dtypes <= set(DTYPES):
        return f"Attention multiplies tensors of one dtype out of {', '.join(DTYPES)}, not {', '.join(sorted(dtypes))}."
    head = max(matmul_extents(graph, scores)[3], matmul_extents(graph, values)[2])
    if head > MAX_HEAD:
        return f"Attention holds heads of at most {MAX_HEAD} elements, not {head}."
    if 0 in (*scores.out.shape, *values.out.shape, head):
        return "Attention over an empty tensor has nothing to weigh."
    return None


def _guarded(graph: Graph, index: int, seen: set[int]) -> tuple[int, int] | None:
    """(the weights, the peak) of a `where` that gives zero for rows whose peak is -inf, and the weights elsewhere.
    The ops in between are added to `seen`."""
    index = _through_casts(graph, index, seen)
    op = graph.ops[index]
    if op.kind != "where" or graph.ops[op.inputs[0]].kind != "eq" or _number(graph, op.inputs[1]) != 0.0:
        return None
    peak, lowest = graph.ops[op.inputs[0]].inputs
    if _number(graph, lowest) != -math.inf:
        return None
    seen.update((index, op.inputs[0]))
    return op.inputs[2], _through_casts(graph, peak, seen)


def _number(graph: Graph, index: int) -> float | None:
    op = graph.ops[index]
    return float(op.attribute("value")) if op.kind == "constant" else None


def _softmax(graph: Graph, index: int) -> tuple[int, int, int, set[int]] | None:
    """(what the softmax is taken of, its maximum, its sum, the ops of the softmax), for the op with its result."""
    ops = graph.ops
    inner: set[int] = set()
    index = _through_casts(graph, index, inner)
    if ops[index].kind != "div":
        return None
    power, total = ops[index].inputs
    inner.add(index)
    total = _through_casts(graph, total, inner)
    power = _through_casts(graph, power, inner)
    if ops[total].kind != "sum" or not _over_last_axis(graph, total):
        return None
    inner.add(total)
    if _through_casts(graph, ops[total].inputs[0], inner) != power or ops[power].kind != "exp":
        return None
    inner.add(power)
    shifted = _through_casts(graph, ops[power].inputs[0], inner)
    if ops[shifted].kind != "sub":
        return None
    inner.add(shifted)
    logits, peak = ops[shifted].inputs
    peak = _through_casts(graph, peak, inner)
    if ops[peak].kind != "amax" or not _over_last_axis(graph, peak) or ops[peak].inputs[0] != logits:
        return None
    inner.add(peak)
    return logits, peak, total, inner


def _through_casts(graph: Graph, index: int, seen: set[int]) -> int:
    """The op below casts between floats, which only say where eager rounds; they are added to `seen`."""
    op = graph.ops[index]
    while op.kind in _CASTS and op.out.dtype in FLOATS and graph.ops[op.inputs[0]].out.dtype in FLOATS:
        seen.add(index)
        index = op.inputs[0]
        op = graph.ops[index]
    return index


def _over_last_axis(graph: Graph, index: int) -> bool:
    op = graph.ops[index]
    return tuple(op.attribute("axes")) == (len(op.out.shape) - 1,)


def _reached_scores(graph: Graph, logits: int, path: set[int]) -> int | None:
    """The one matmul of the logits' shape that they are computed from through pointwise ops, which `path` collects."""
    shape = graph.ops[logits].out.shape
    below: dict[int, frozenset[int]] = {}
    stack = [logits]
    while stack:
        index = stack[-1]
        op = graph.ops[index]
        inner = op.inputs if OP_CLASS[op.kind] is OpClass.POINTWISE and op.out.shape == shape else ()
        waiting = [i for i in inner if i not in below]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        own = frozenset({index}) if op.kind == "matmul" and op.out.shape == shape else frozenset()
        below[index] = own.union(*(below[i] for i in inner))
    if len(below[logits]) != 1:
        return None
    (scores,) = below[logits]
    path.update(index for index, found in below.items() if found and index != scores)
    return scores
