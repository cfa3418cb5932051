"""One pointwise op as a Triton expression: dtypes as torch promotes them, NaN and infinity as torch treats them.

16-bit floats are computed in float32, as eager does inside one op, and are rounded only where the body says `cast`
or a result is stored. tanh and pow come from libdevice, the library that torch's own CUDA kernels call; what Triton
offers itself for them loses digits near zero. A sign is changed by a product, which ptxas makes one flipped bit of:
Triton's own minus is a subtraction from 0, which makes 0 of both zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from engine.ir.graph import DTYPE_BYTES, Op
from engine.ir.rounding import as_float32
from engine.ir.shapes import FLOATS, promote

TRITON_TYPE = {
    "float64": "tl.float64",
    "float32": "tl.float32",
    "float16": "tl.float16",
    "bfloat16": "tl.bfloat16",
    "int64": "tl.int64",
    "int32": "tl.int32",
    "int16": "tl.int16",
    "int8": "tl.int8",
    "uint8": "tl.uint8",
    "bool": "tl.int1",
}
POINTER_TYPE = {
    "float64": "*fp64",
    "float32": "*fp32",
    "float16": "*fp16",
    "bfloat16": "*bf16",
    "int64": "*i64",
    "int32": "*i32",
    "int16": "*i16",
    "int8": "*i8",
    "uint8": "*u8",
    "bool": "*i1",
}

_FLOAT_UNARY: dict[str, str] = {
    "neg": "{0} * -1.0",
    "exp": "tl.exp({0})",
    "exp2": "tl.exp2({0})",
    "log": "tl.log({0})",
    "log2": "tl.log2({0})",
    "rsqrt": "tl.rsqrt({0})",
    "reciprocal": "1.0 / {0}",
    "sigmoid": "tl.sigmoid({0})",
    "tanh": "libdevice.tanh({0})",
    "silu": "{0} / (1.0 + tl.exp(-{0}))",
    "gelu": "0.5 * {0} * (1.0 + tl.erf({0} * 0.7071067811865476))",
    "gelu_tanh": "{0} * tl.sigmoid({0} * (1.5957691216057308 + 0.07135481627260025 * {0} * {0}))",
    "erf": "tl.erf({0})",
    "sin": "tl.sin({0})",
    "cos": "tl.cos({0})",
}
_SAME_UNARY: dict[str, str] = {
    "neg": "-{0}",
    "abs": "tl.abs({0})",
    "relu": "tl.where({0} < 0, 0, {0})",
    "copy": "{0}",
    "cast": "{0}",
}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


class Unrenderable(ValueError):
    """An op that no family can write; the text says which."""


def compute_dtype(dtype: str) -> str:
    """The dtype in which a value of `dtype` lives in registers."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def literal(value: int | float | bool, dtype: str) -> str:
    """A number as Triton text, of the kind (float, integer, truth) that `dtype` has."""
    if dtype in FLOATS:
        number = float(value)
        return repr(number) if math.isfinite(number) else f'float("{number}")'
    return repr(bool(value)) if dtype == "bool" else repr(int(value))


def full(value: int | float | bool, dtype: str) -> str:
    """A number as a Triton scalar of exactly `dtype`."""
    return f"tl.full([], {literal(value, dtype)}, {TRITON_TYPE[dtype]})"


def cast_text(text: str, source: str, target: str) -> str:
    """`text` of register dtype `source` converted to `target`, unchanged when they agree."""
    if source == target:
        return text
    operand = text if text.isidentifier() or text.endswith(")") else f"({text})"
    return f"({operand} != 0)" if target == "bool" else f"{operand}.to({TRITON_TYPE[target]})"


class Operand:
    """An input of an op: the text of its value, its register dtype, and its number when it is a constant."""

    def __init__(self, text: str, dtype: str, number: int | float | bool | None = None) -> None:
        self.text = text
        self.dtype = dtype
        self.number = number

    def scalar(self, dtype: str) -> str:
        """As a value of `dtype`; a constant becomes a typed scalar."""
        return cast_text(self.text, self.dtype, dtype) if self.number is None else full(self.number, dtype)

    def inline(self, dtype: str) -> str:
        """As an operand beside another value of `dtype`; a constant stays a plain number."""
        if self.number is None:
            return cast_text(self.text, self.dtype, dtype)
        text = literal(self.number, dtype)
        return f"({text})" if text.startswith("-") else text


def pointwise_text(op: Op, operands: Sequence[Operand]) -> str:
    """The expression of one pointwise op in its register dtype. Raises Unrenderable for what Triton can't say."""
    dtype = compute_dtype(op.out.dtype)
    if op.kind == "pow":
        return _pow_text(operands[0], operands[1], dtype)
    if op.kind in _INFIX:
        return _infix_text(op.kind, operands, dtype)
    if op.kind in _COMPARISONS:
        shared = _shared_dtype(operands)
        left, right = _compared(operands, shared)
        return f"{left} {_COMPARISONS[op.kind]} {right}"
    special = _SPECIAL.get(op.kind)
    if special:
        return special(operands, dtype)
    template = (_FLOAT_UNARY if dtype in FLOATS else {}).get(op.kind) or _SAME_UNARY.get(op.kind)
    if template is None or (dtype == "bool" and op.kind in ("neg", "abs", "relu")):
        raise Unrenderable(f"{op.kind} of dtype {op.out.dtype} has no Triton form")
    text = operands[0].scalar(dtype)
    if op.kind == "cast" and compute_dtype(op.out.dtype) != op.out.dtype:
        return f"{cast_text(text, dtype, op.out.dtype)}.to({TRITON_TYPE[dtype]})"
    return template.format(text if text.isidentifier() or template == "{0}" else f"({text})")


def _pair(operands: Sequence[Operand], dtype: str) -> tuple[str, str]:
    """Two operands of an infix operator: at most one of them stays a plain number."""
    left, right = operands
    if left.number is not None and right.number is not None:
        return left.scalar(dtype), right.scalar(dtype)
    return left.inline(dtype), right.inline(dtype)


def _compared(operands: Sequence[Operand], dtype: str) -> tuple[str, str]:
    """Two operands of a comparison. Triton reads a plain number there as float32, whatever it is compared with, so
    that one which float32 doesn't hold is a typed scalar beside float64."""
    numbers = [float(o.number) for o in operands if o.number is not None] if dtype == "float64" else []
    if all(math.isnan(number) or as_float32(number) == number for number in numbers):
        return _pair(operands, dtype)
    return operands[0].scalar(dtype), operands[1].scalar(dtype)


def _infix_text(kind: str, operands: Sequence[Operand], dtype: str) -> str:
    if dtype == "bool":
        if kind not in ("add", "mul"):
            raise Unrenderable(f"{kind} of truth values has no Triton form")
        return f"{operands[0].scalar(dtype)} {'|' if kind == 'add' else '&'} {operands[1].scalar(dtype)}"
    if dtype not in FLOATS and kind == "div":
        raise Unrenderable("a division into an integer dtype has no Triton form")
    left, right = _pair([_wrapped(operand, dtype) for operand in operands], dtype)
    return f"{left} {_INFIX[kind]} {right}"


def _wrapped(operand: Operand, dtype: str) -> Operand:
    """A number of an integer computation within its dtype, as torch wraps it: Triton takes no other one there."""
    if operand.number is None or dtype in FLOATS:
        return operand
    span = 1 << 8 * DTYPE_BYTES[dtype]
    low = 0 if dtype.startswith("u") else -span // 2
    return Operand(operand.text, operand.dtype, (int(operand.number) - low) % span + low)


def _shared_dtype(operands: Sequence[Operand]) -> str:
    values = [o.dtype for o in operands if o.number is None]
    return promote(values, [o.dtype for o in operands if o.number is not None])


def _truth(operand: Operand) -> str:
    return full(bool(operand.number), "bool") if operand.number is not None else operand.scalar("bool")


def _where(operands: Sequence[Operand], dtype: str) -> str:
    return f"tl.where({_truth(operands[0])}, {operands[1].scalar(dtype)}, {operands[2].scalar(dtype)})"


def _extreme(name: str) -> Callable[[Sequence[Operand], str], str]:
    def text(operands: Sequence[Operand], dtype: str) -> str:
        if dtype == "bool":
            return f"{_truth(operands[0])} {'|' if name == 'maximum' else '&'} {_truth(operands[1])}"
        nan = ", propagate_nan=tl.PropagateNan.ALL" if dtype in FLOATS else ""
        return f"tl.{name}({operands[0].scalar(dtype)}, {operands[1].scalar(dtype)}{nan})"

    return text


def _sqrt(operands: Sequence[Operand], dtype: str) -> str:
    return f"tl.sqrt{'_rn' if dtype == 'float32' else ''}({operands[0].scalar(dtype)})"


def _round(name: str) -> Callable[[Sequence[Operand], str], str]:
    def text(operands: Sequence[Operand], dtype: str) -> str:
        return f"tl.{name}({operands[0].scalar(dtype)})" if dtype in FLOATS else operands[0].scalar(dtype)

    return text


def _sign(operands: Sequence[Operand], dtype: str) -> str:
    value = operands[0].scalar(dtype)
    value = value if value.isidentifier() else f"({value})"
    return f"({value} > 0).to({TRITON_TYPE[dtype]}) - ({value} < 0).to({TRITON_TYPE[dtype]})"


def _isnan(operands: Sequence[Operand], dtype: str) -> str:
    text = operands[0].scalar(operands[0].dtype)
    return f"{text} != {text}"


_SPECIAL: dict[str, Callable[[Sequence[Operand], str], str]] = {
    "where": _where,
    "maximum": _extreme("maximum"),
    "minimum": _extreme("minimum"),
    "sqrt": _sqrt,
    "floor": _round("floor"),
    "ceil": _round("ceil"),
    "sign": _sign,
    "isnan": _isnan,
    "logical_not": lambda operands, _: f"{_truth(operands[0])} == 0",
    "logical_and": lambda operands, _: f"{_truth(operands[0])} & {_truth(operands[1])}",
    "logical_or": lambda operands, _: f"{_truth(operands[0])} | {_truth(operands[1])}",
}

_LONGEST_PRODUCT = 8


def _pow_text(base: Operand, exponent: Operand, dtype: str) -> str:
    """Small whole exponents are products (torch squares and cubes so too); roots and the rest are functions."""
    value = base.scalar(dtype)
    if not value.isidentifier():
        value = f"({value})"
    number = exponent.number
    if number is not None and float(number).is_integer() and 1 <= number <= _LONGEST_PRODUCT:
        return " * ".join([value] * int(number))
    if dtype not in FLOATS:
        raise Unrenderable("an integer power with this exponent has no Triton form")
    if number == 0.5:
        return f"tl.sqrt{'_rn' if dtype == 'float32' else ''}({value})"
    if number == -0.5:
        return f"tl.rsqrt({value})"
    if number in (-1, -2):
        return f"1.0 / {value}" if number == -1 else f"1.0 / ({value} * {value})"
    return f"libdevice.pow({value}, {exponent.scalar(dtype)})"
