"""A gelu that a model writes by hand, from erf: 0.5 * x * (1 + erf(x / sqrt 2)), its factors in any order.

Recognised where the text is written, not in the graph: the kernel stays the one that its operations say.
"""

from __future__ import annotations

import math

from engine.codegen.expressions import compute_dtype
from engine.ir.graph import Graph

_DIGITS = 1e-6
"""So exactly the numbers of the formula must be met, as a share; those of float32 are, those of 16 bits aren't."""


def spelled_gelu(body: Graph, index: int) -> int | None:
    """The op whose gelu op `index` is, where products and erf say so; else None. No value of it is rounded between."""
    if body.ops[index].kind not in ("mul", "div"):
        return None
    for x in _arguments(body, index):
        number, factors = _product(body, index, x)
        others = [factor for factor in factors if factor != x]
        if len(factors) != 2 or len(others) != 1 or not _is(number, 0.5):
            continue
        inner = _beside(body, others[0], "add", 1.0)
        if inner is not None and body.ops[inner].kind == "erf" and body.ops[x].out.shape == body.ops[index].out.shape:
            scale, inside = _product(body, body.ops[inner].inputs[0], x)
            if inside == [x] and _is(scale, math.sqrt(0.5)):
                return x
    return None


def _arguments(body: Graph, index: int) -> list[int]:
    """The ops that a gelu at `index` may be of: those from which a sum with an erf is made."""
    erfs = [_beside(body, factor, "add", 1.0) for factor in _factors(body, index)]
    scaled = [body.ops[i].inputs[0] for i in erfs if i is not None and body.ops[i].kind == "erf"]
    return [i for s in scaled if body.ops[s].kind in ("mul", "div") for i in body.ops[s].inputs]


def _factors(body: Graph, index: int) -> list[int]:
    """What products are made of, opened as far as they are products: each op once, however often it is a factor."""
    found: dict[int, None] = {}
    stack = [index]
    while stack:
        one = stack.pop()
        if one not in found:
            found[one] = None
            op = body.ops[one]
            stack.extend(reversed(op.inputs) if op.kind in ("mul", "div") and _is_float(body, one) else ())
    return list(found)


def _product(body: Graph, index: int, whole: int) -> tuple[float, list[int]]:
    """An op as a number times other ops: products are opened as far as they are products, except op `whole`.

    Where that are more than two, some are left out, as no gelu is one of them: a power by squaring has very many.
    """
    op = body.ops[index]
    if op.kind == "constant":
        return float(op.attribute("value")), []
    if index == whole or op.kind not in ("mul", "div") or not _is_float(body, index):
        return 1.0, [index]
    right = _product(body, op.inputs[1], whole)
    if op.kind == "div" and (right[1] or not right[0]):
        return 1.0, [index]
    if len(right[1]) > 2:
        return right
    left = _product(body, op.inputs[0], whole)
    return (left[0] * right[0] if op.kind == "mul" else left[0] / right[0]), left[1] + right[1]


def _beside(body: Graph, index: int, kind: str, number: float) -> int | None:
    """The operand beside `number` of an op of this kind."""
    op = body.ops[index]
    if op.kind != kind or not _is_float(body, index):
        return None
    for this, other in (op.inputs, op.inputs[::-1]):
        constant = body.ops[this]
        if constant.kind == "constant" and _is(float(constant.attribute("value")), number):
            return other
    return None


def _is_float(body: Graph, index: int) -> bool:
    return compute_dtype(body.ops[index].out.dtype) == "float32"


def _is(number: float, expected: float) -> bool:
    return math.isclose(number, expected, rel_tol=_DIGITS)
