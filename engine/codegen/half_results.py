"""Activations whose results are rounded to 16 bits at once, as text that computes as many digits as they keep.

An exact erf takes 30 instructions an element, and it is computed in the epilogue of a matmul, where the tensor cores
wait for it. Of a result that becomes bfloat16 or float16 only 8 or 11 bits stay, so these texts spend one exponential,
and never a division that is right to the last bit.

gelu(x) = max(x, 0) - |x| h(|x|), where h(t) = erfc(t / sqrt 2) / 2 = 2^-p(t). The polynomial p is the minimax one of
degree 7 with p(0) = 1 on [0, 6.5] (tests/codegen/gelu_fit.py computes it anew): h is off by less than 5e-6 of itself
there, a fiftieth of what float16 rounds away, and also where x is very negative and 1 + erf(x / sqrt 2) has no digits.
Left of -6.5, where |x| h is below 3e-10, p grows faster than it should: the result goes to zero too early, and later
than eager's. Right of 6.5 |x| is cut off, so that gelu(inf) = inf; left it isn't, and gelu(-inf) = -inf * 0 = NaN.

silu, sigmoid and the tanh form of gelu are quotients of the hardware's own exponential and reciprocal (2 units in the
last place of float32); a result of less than 2e-36 may be zero. tanh stays exact: the hardware's own has 11 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from engine.codegen.expressions import Operand, compute_dtype
from engine.codegen.spelled_gelu import spelled_gelu
from engine.ir.graph import Graph

HALVES = ("float16", "bfloat16")

LOG2_OF_TAIL = (
    -1.0,
    -1.1511941071893959,
    -0.4585978919185054,
    -0.0538355260126679,
    0.008451071563639917,
    -0.000917043848661656,
    6.000195019846654e-05,
    -1.760322139172771e-06,
)
"""-p, from the constant on: log2(erfc(t / sqrt 2) / 2) for t in [0, 6.5]."""
TAIL_END = 6.5

_GELU, _GELU_TANH, _SILU, _SIGMOID = "gelu_to_half", "gelu_tanh_to_half", "silu_to_half", "sigmoid_to_half"
_KINDS = {"gelu": _GELU, "gelu_tanh": _GELU_TANH, "silu": _SILU, "sigmoid": _SIGMOID}
_PASSING = frozenset({"view", "copy", "cast", "neg", "mul"})


def _polynomial_lines(coefficients: tuple[float, ...], argument: str, name: str) -> tuple[str, ...]:
    """Horner's scheme: one fused multiply-add a degree."""
    *others, last = map(repr, coefficients)
    steps = [last, *[name] * (len(others) - 1)]
    return tuple(f"{name} = {step} * {argument} + {c}" for step, c in zip(steps, reversed(others), strict=True))


HALF_HELPERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        _GELU: (
            "x",
            f"size = tl.abs(tl.minimum(x, {TAIL_END!r}))",
            *_polynomial_lines(LOG2_OF_TAIL, "size", "power"),
            # -max(x, 0), so that of both zeros each keeps its sign; the products by -1 are free.
            "below = tl.minimum(0.0, x * -1.0, propagate_nan=tl.PropagateNan.ALL)",
            "return below * -1.0 - size * tl.exp2(power)",
        ),
        _GELU_TANH: (
            "x",
            "power = tl.exp2(x * (-2.302208198144325 - 0.1029432395800235 * x * x))",
            "return libdevice.fast_dividef(x, 1.0 + power)",
        ),
        _SILU: ("x", "return libdevice.fast_dividef(x, 1.0 + tl.exp2(x * -1.4426950408889634))"),
        _SIGMOID: (
            "x",
            "one = tl.full([], 1.0, tl.float32)",
            "return libdevice.fast_dividef(one, 1.0 + tl.exp2(x * -1.4426950408889634))",
        ),
    }
)
"""Functions that a module defines where its text calls them: parameters, then lines."""


@dataclass(frozen=True, slots=True)
class HalfFunction:
    """A call of one of the helpers in place of an op: of which ops' values, in float32."""

    name: str
    inputs: tuple[int, ...]

    def text(self, operands: Sequence[Operand]) -> str:
        return f"{self.name}({', '.join(operand.scalar('float32') for operand in operands)})"


def half_functions(body: Graph) -> dict[int, HalfFunction]:
    """By op, what computes it well enough for a result of 16 bits; without those whose own text does."""
    found = {index: _half_function(body, index) for index in half_results(body)}
    return {index: function for index, function in found.items() if function is not None}


def _half_function(body: Graph, index: int) -> HalfFunction | None:
    op = body.ops[index]
    if compute_dtype(op.out.dtype) != "float32":
        return None
    if op.kind in _KINDS:
        return HalfFunction(_KINDS[op.kind], op.inputs)
    argument = spelled_gelu(body, index)
    return None if argument is None else HalfFunction(_GELU, (argument,))


def half_results(body: Graph) -> frozenset[int]:
    """The ops of `body` of which nothing is seen but what is left of them in 16 bits.

    They are stored in such a dtype, cast to it or multiplied as matrices of it; or they are factors of a product of
    which that holds, since a product is off by no larger share than its factors.
    """
    seen = {index for index in body.outputs if body.ops[index].out.dtype not in HALVES}
    for index in range(len(body.ops) - 1, -1, -1):
        op = body.ops[index]
        if op.kind == "cast" and op.out.dtype in HALVES:
            continue
        if op.kind == "matmul":
            seen.update(i for i in op.inputs if body.ops[i].out.dtype not in HALVES)
        elif op.kind not in _PASSING or index in seen or compute_dtype(op.out.dtype) != "float32":
            seen.update(op.inputs)
    return frozenset(range(len(body.ops))) - seen
