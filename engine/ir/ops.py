"""The fixed list of op kinds: what a graph may say, and how each kind computes its shape.

Reductions keep their reduced axes with extent 1; dropping them is a view. Pointwise ops broadcast as numpy does.
A `view` re-reads its input's storage with the strides and offset of its own `out`, and moves no data.
`matmul` follows torch.matmul for a right operand of rank 2, or for two operands of equal rank and equal batch extents.
`iota` counts 0, 1, ... along `axis` (the only axis longer than 1): positions, causal masks and sliding windows are
computed from it, never held in memory. `roll` reads `shift` places further along `axis`, around the end:
out[i] = in[(i + shift) mod extent]. `cat` joins its inputs along `axis`. `gather` reads rows of a table:
out[i..., ...] = table[index[i...] mod rows, ...], where mod is never negative, so that no index reads past the table
and -1 is the last row. `extern` calls the ATen op `op` of `engine.ir.extern`'s fixed list.
"""

from __future__ import annotations

from enum import StrEnum


class OpClass(StrEnum):
    INPUT = "input"
    CONSTANT = "constant"
    POINTWISE = "pointwise"
    REDUCTION = "reduction"
    CONTRACTION = "contraction"
    VIEW = "view"
    GENERATOR = "generator"
    REINDEX = "reindex"
    EXTERN = "extern"


UNARY = frozenset(
    {
        *("neg", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "reciprocal", "sigmoid", "tanh", "relu", "silu"),
        *("gelu", "gelu_tanh", "erf", "sin", "cos", "abs", "sign", "floor", "ceil", "logical_not", "isnan"),
        *("cast", "copy"),
    }
)
BINARY = frozenset(
    {
        *("add", "sub", "mul", "div", "pow", "maximum", "minimum"),
        *("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or"),
    }
)
TERNARY = frozenset({"where"})
REDUCTIONS = frozenset({"sum", "mean", "amax", "amin"})

OP_CLASS: dict[str, OpClass] = {
    "input": OpClass.INPUT,
    "constant": OpClass.CONSTANT,  # attribute `value`; shape ()
    "matmul": OpClass.CONTRACTION,  # attribute `allow_tf32`
    "view": OpClass.VIEW,
    "iota": OpClass.GENERATOR,  # attribute `axis`; int64 or int32
    "roll": OpClass.REINDEX,  # attributes `axis`, `shift`: 0 <= shift < extent
    "cat": OpClass.REINDEX,  # attribute `axis`
    "gather": OpClass.REINDEX,
    "extern": OpClass.EXTERN,  # attributes `arguments`, `op`, and `result` where the op has several
    **dict.fromkeys(sorted(UNARY | BINARY | TERNARY), OpClass.POINTWISE),
    **dict.fromkeys(sorted(REDUCTIONS), OpClass.REDUCTION),  # attribute `axes`: sorted, non-negative
}

ARITY: dict[str, int] = {
    "input": 0,
    "constant": 0,
    "matmul": 2,
    "view": 1,
    "iota": 0,
    "roll": 1,
    "gather": 2,
    **dict.fromkeys(UNARY | REDUCTIONS, 1),
    **dict.fromkeys(BINARY, 2),
    **dict.fromkeys(TERNARY, 3),
}

FEWEST_INPUTS: dict[str, int] = {"cat": 2, "extern": 0}
"""Kinds that take any number of inputs from this one on; every other kind is in ARITY."""

COMMUTATIVE = frozenset({"add", "mul", "maximum", "minimum", "eq", "ne", "logical_and", "logical_or"})
"""Kinds whose two inputs may be swapped without changing a bit of the result."""

_TRANSCENDENTAL = frozenset(
    {"exp", "exp2", "log", "log2", "tanh", "gelu", "gelu_tanh", "erf", "silu", "sigmoid", "pow", "sin", "cos"}
)
FLOPS_PER_ELEMENT = {
    kind: 4 if kind in _TRANSCENDENTAL else 1
    for kind, op_class in OP_CLASS.items()
    if op_class in (OpClass.POINTWISE, OpClass.REDUCTION)
}
"""A rough weight of each kind for rooflines: transcendental functions count as four operations."""
