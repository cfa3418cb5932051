"""Rewrite: the scale of an RMS norm moves behind the matmuls that read the normed rows.

(x * r * w) @ W = r * (x @ (w * W)) with r = 1 / sqrt(mean(x^2) + eps), one number a row, and w * W prepared once.
What is left of the norm is a small kernel of r; nobody writes or reads the normed rows. The product stays float32 until
it is scaled, so that it rounds once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from engine.grouping.partition import Facts
from engine.grouping.prepared import fixed_values
from engine.grouping.rebuilding import Replacement, rebuilt
from engine.grouping.rewriting import Chosen, RewriteSite
from engine.grouping.row_scale import row_scale, uncast
from engine.grouping.site import APART, context_of
from engine.ir.builder import GraphBuilder
from engine.ir.graph import Graph, TensorSpec, contiguous_strides

SCALED = "scaled"


@dataclass(frozen=True, slots=True)
class _Norm:
    """The rows `x`, their scales, the weight or None, every op of the norm, and the matmuls that read its result."""

    x: int
    scale: int
    weight: int | None
    ops: frozenset[int]
    matmuls: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NormScale:
    knob: str = "NORM_SCALE"

    def sites(self, graph: Graph) -> tuple[RewriteSite, ...]:
        facts, fixed = Facts.of(graph), fixed_values(graph)
        found = []
        for index in range(len(graph.ops)):
            norm = _norm_at(facts, fixed, index)
            if norm is not None:
                context = context_of(facts, norm.ops.union(norm.matmuls))
                found.append(RewriteSite(index, context, (APART, SCALED)))
        return tuple(found)

    def rewritten(self, graph: Graph, chosen: Sequence[Chosen]) -> Graph:
        facts, fixed = Facts.of(graph), fixed_values(graph)
        norms = [_norm_at(facts, fixed, c.site.at) for c in chosen]
        return rebuilt(graph, {m: _scaled(graph, norm, m) for norm in norms if norm for m in norm.matmuls})


def _norm_at(facts: Facts, fixed: frozenset[int], index: int) -> _Norm | None:
    """The norm whose result is op `index`, if only matmuls read it and all of them can be scaled afterwards."""
    readers = facts.readers[index]
    if index in fixed or index in facts.returned or not readers:
        return None
    matched = _weighted(facts, fixed, index) or _unweighted(facts, index)
    if matched is None:
        return None
    x, scale, weight, ops = matched
    if any(facts.readers[i] != (j,) for i, j in zip(sorted(ops)[:-1], sorted(ops)[1:], strict=True)):
        return None
    behind = row_scale(facts, scale)
    norm = _Norm(x, scale, weight, ops | (behind.ops if behind else frozenset()), readers)
    return norm if all(_can_scale(facts, fixed, norm, index, m) for m in readers) else None


_Matched = tuple[int, int, int | None, frozenset[int]]
"""Rows, scale, weight, and the ops from the scaling to the result, which read each other in a line."""


def _weighted(facts: Facts, fixed: frozenset[int], index: int) -> _Matched | None:
    value, casts = uncast(facts, index)
    op = facts.graph.ops[value]
    if op.kind != "mul":
        return None
    for inner, weight in (op.inputs, op.inputs[::-1]):
        extents = facts.shape(weight)
        if weight in fixed and extents and prod(extents) == extents[-1] == facts.shape(index)[-1]:
            below = _unweighted(facts, inner)
            if below is not None:
                x, scale, _, ops = below
                return x, scale, weight, ops | casts | {value}
    return None


def _unweighted(facts: Facts, index: int) -> _Matched | None:
    """x * rsqrt(mean(x * x) + eps), with casts."""
    value, casts = uncast(facts, index)
    op = facts.graph.ops[value]
    if op.kind != "mul":
        return None
    for wide, scale in (op.inputs, op.inputs[::-1]):
        x, _ = uncast(facts, wide)
        found = row_scale(facts, scale)
        if found is not None and found.x == x:
            return x, scale, None, casts | {value}
    return None


def _can_scale(facts: Facts, fixed: frozenset[int], norm: _Norm, result: int, matmul: int) -> bool:
    """Whether a reader multiplies whole normed rows from the left by a matrix that the weight can be folded into."""
    graph = facts.graph
    op = graph.ops[matmul]
    if op.kind != "matmul" or facts.root[op.inputs[0]] != result or facts.root[op.inputs[1]] == result:
        return False
    x, left, right = (graph.ops[i].out for i in (norm.x, *op.inputs))
    rows = facts.shape(result)
    if x.shape != rows or x.dtype != left.dtype or not x.is_contiguous or not left.is_contiguous:
        return False
    if left.shape[-1] != rows[-1] or left.numel != x.numel:
        return False
    if norm.weight is None:
        return True
    return op.inputs[1] in fixed and len(right.shape) == 2 and 1 in right.strides


def _scaled(graph: Graph, norm: _Norm, index: int) -> Replacement:
    """scale * (x @ (weight * right)), of the dtype of the matmul that it stands for."""
    op = graph.ops[index]
    spec, right = (graph.ops[i].out for i in op.inputs)

    def write(b: GraphBuilder, where: Mapping[int, int]) -> int:
        left = b.view(where[norm.x], spec.shape, spec.strides)
        other = where[op.inputs[1]]
        if norm.weight is not None:
            other = _folded(b, where[norm.weight], graph.ops[norm.weight].out, other, right)
        wide = "float64" if op.out.dtype == "float64" else "float32"
        product = b.add("matmul", left, other, dtype=wide, allow_tf32=bool(op.attribute("allow_tf32")))
        shape = (*spec.shape[:-1], 1)
        scale = b.view(where[norm.scale], shape, contiguous_strides(shape))
        return b.add("mul", product, scale, dtype=op.out.dtype)

    return write


def _folded(b: GraphBuilder, weight: int, vector: TensorSpec, right: int, matrix: TensorSpec) -> int:
    """weight[k] * right[k, n], lying in memory as `right` does, rounded to its dtype."""
    depth, columns = matrix.shape
    step = vector.strides[-1]
    if matrix.strides[1] == 1:
        return b.add("mul", right, b.view(weight, (depth, 1), (step, 1)), dtype=matrix.dtype)
    turned = b.view(right, (columns, depth), (matrix.strides[1], matrix.strides[0]))
    folded = b.add("mul", turned, b.view(weight, (depth,), (step,)), dtype=matrix.dtype)
    return b.view(folded, (depth, columns), (1, depth))
