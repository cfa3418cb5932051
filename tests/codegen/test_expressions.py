from __future__ import annotations

import math

import pytest

from engine.codegen.expressions import Operand, Unrenderable, cast_text, full, literal, pointwise_text
from engine.ir.graph import Op, TensorSpec


def op(kind: str, dtype: str) -> Op:
    return Op(kind, (), TensorSpec((), dtype, ()))


def text(kind: str, dtype: str, *operands: Operand) -> str:
    return pointwise_text(op(kind, dtype), operands)


X = Operand("x", "float32")
Y = Operand("y", "float32")
N = Operand("n", "int32")
T = Operand("t", "bool")


def number(value: int | float | bool, dtype: str) -> Operand:
    return Operand("", dtype, value)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (2, "float32", "2.0"),
        (2.9, "int32", "2"),
        (1, "bool", "True"),
        (float("-inf"), "float32", 'float("-inf")'),
        (float("nan"), "float16", 'float("nan")'),
    ],
)
def test_literal_has_the_kind_of_its_dtype(value: float, dtype: str, expected: str) -> None:
    assert literal(value, dtype) == expected


def test_number_beside_a_value_stays_plain_and_alone_is_typed() -> None:
    assert text("add", "float32", X, number(-2, "int64")) == "x + (-2.0)"
    assert text("add", "float32", number(1, "int64"), number(2, "int64")) == (
        "tl.full([], 1.0, tl.float32) + tl.full([], 2.0, tl.float32)"
    )
    assert full(True, "bool") == "tl.full([], True, tl.int1)"


@pytest.mark.parametrize(
    ("dtype", "value", "shown"),
    [
        ("uint8", -1, "255"),
        ("uint8", 260, "4"),
        ("int8", 300, "44"),
        ("int8", -1, "(-1)"),
        ("int32", 2**31, f"({-(2**31)})"),
    ],
)
def test_a_number_beyond_its_integer_dtype_wraps(dtype: str, value: int, shown: str) -> None:
    assert text("mul", dtype, Operand("u", dtype), number(value, "int64")) == f"u * {shown}"


def test_integers_divide_into_floats() -> None:
    assert text("div", "float32", N, N) == "n.to(tl.float32) / n.to(tl.float32)"


def test_comparison_happens_in_the_promoted_dtype() -> None:
    assert text("lt", "bool", N, X) == "n.to(tl.float32) < x"
    assert text("eq", "bool", Operand("a", "uint8"), Operand("b", "int8")) == "a.to(tl.int16) == b.to(tl.int16)"


def test_extremes_carry_nan() -> None:
    assert "propagate_nan" in text("maximum", "float32", X, Y)
    assert "propagate_nan" not in text("minimum", "int32", N, N)


def test_truth_values_use_logic() -> None:
    assert text("add", "bool", T, T) == "t | t"
    assert text("logical_and", "bool", X, T) == "(x != 0) & t"
    assert cast_text("a + b", "float32", "bool") == "((a + b) != 0)"


def test_cast_to_16_bits_rounds_at_once() -> None:
    assert text("cast", "bfloat16", X) == "x.to(tl.bfloat16).to(tl.float32)"
    assert text("cast", "int8", X) == "x.to(tl.int8)"
    assert text("cast", "float16", N) == "n.to(tl.float32).to(tl.float16).to(tl.float32)"


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [
        (2, "x * x"),
        (3.0, "x * x * x"),
        (0.5, "tl.sqrt_rn(x)"),
        (-0.5, "tl.rsqrt(x)"),
        (-1, "1.0 / x"),
        (1.7, "libdevice.pow(x, tl.full([], 1.7, tl.float32))"),
    ],
)
def test_powers(exponent: float, expected: str) -> None:
    assert text("pow", "float32", X, number(exponent, "float32")) == expected


@pytest.mark.parametrize(
    ("kind", "dtype", "operands"),
    [("pow", "int32", (N, N)), ("div", "int32", (N, N)), ("sub", "bool", (T, T)), ("neg", "bool", (T,))],
)
def test_what_has_no_form_is_refused_in_words(kind: str, dtype: str, operands: tuple[Operand, ...]) -> None:
    with pytest.raises(Unrenderable, match="no Triton form"):
        text(kind, dtype, *operands)


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.1, "x >= tl.full([], 0.1, tl.float64)"), (0.5, "x >= 0.5"), (math.inf, 'x >= float("inf")')],
)
def test_beside_float64_a_number_keeps_its_digits(value: float, written: str) -> None:
    assert text("ge", "bool", Operand("x", "float64"), number(value, "float64")) == written
