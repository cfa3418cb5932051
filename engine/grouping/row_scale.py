"""Scales of rows, one number a row: that of an RMS norm, whatever casts stand between, and those of products."""

from __future__ import annotations

from dataclasses import dataclass

from engine.grouping.partition import Facts
from engine.ir.ops import OpClass


@dataclass(frozen=True, slots=True)
class RowScale:
    """rsqrt(mean(x * x) + eps) over the last axis: the rows, the mean, and every op from the rows to the scale."""

    x: int
    mean: int
    ops: frozenset[int]


def row_scale(facts: Facts, index: int) -> RowScale | None:
    """What op `index` is the scale of, in float32 or wider; None when it is no such scale."""
    ops = facts.graph.ops
    if ops[index].kind != "rsqrt" or ops[index].out.element_bytes < 4:
        return None
    total = ops[index].inputs[0]
    if ops[total].kind != "add":
        return None
    for mean, eps in (ops[total].inputs, ops[total].inputs[::-1]):
        if ops[eps].kind != "constant" or ops[mean].kind != "mean":
            continue
        square = ops[mean].inputs[0]
        if ops[square].kind != "mul" or ops[mean].attribute("axes") != (len(facts.shape(square)) - 1,):
            continue
        (first, casts), (second, more) = (uncast(facts, i) for i in ops[square].inputs)
        if first == second:
            return RowScale(first, mean, casts | more | {square, mean, total, index})
    return None


def uncast(facts: Facts, index: int) -> tuple[int, frozenset[int]]:
    """The value below the casts that end in op `index`, and those casts."""
    casts = []
    while facts.graph.ops[index].kind == "cast":
        casts.append(index)
        index = facts.graph.ops[index].inputs[0]
    return index, frozenset(casts)


def row_scalings(facts: Facts) -> tuple[int, ...]:
    """Ops that multiply each row of a product by a number of its own, and round what was wider than its operands."""
    ops = facts.graph.ops
    found = []
    for index, op in enumerate(ops):
        if op.kind != "mul" or not facts.is_pointwise(index):
            continue
        product, scale = op.inputs
        if facts.classes[product] is not OpClass.CONTRACTION or not facts.computes(facts.root[scale]):
            continue
        wide, operand = ops[product].out.element_bytes, ops[ops[product].inputs[0]].out.element_bytes
        if facts.shape(scale)[-1:] == (1,) and op.out.element_bytes < wide > operand:
            found.append(index)
    return tuple(found)
