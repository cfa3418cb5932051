from __future__ import annotations

import math
from itertools import product

import pytest

from engine.codegen import render
from engine.codegen.spelled_gelu import spelled_gelu
from engine.ir import GraphBuilder, Kernel
from engine.ir.graph import TensorSpec
from engine.vocabulary import Schedule

SCHEDULE = Schedule.of({"BLOCK": 128, "EVICTION": "", "NUM_WARPS": 1})


class Writer:
    """Writes gelus by hand."""

    def __init__(self, dtype: str = "bfloat16") -> None:
        self.builder = GraphBuilder()
        self.dtype = dtype
        self.x = self.builder.add("mul", self.vector(), self.vector())

    def vector(self, *shape: int) -> int:
        return self.builder.input(TensorSpec.contiguous(shape or (64,), self.dtype))

    def number(self, value: float) -> int:
        return self.builder.constant(value, self.dtype)

    def both(self, kind: str, left: int, right: int, swapped: bool = False) -> int:
        return self.builder.add(kind, *((right, left) if swapped else (left, right)))

    def bracket(self, *, divided: bool = False, swapped: bool = False, one: float = 1.0, scale: float = 0.5) -> int:
        root = math.sqrt(scale)
        kind, number = ("div", 1 / root) if divided else ("mul", root)
        scaled = self.both(kind, self.x, self.number(number), swapped and not divided)
        return self.both("add", self.builder.add("erf", scaled), self.number(one), swapped)

    def found(self, index: int) -> int | None:
        return spelled_gelu(self.builder.build(index), index)


@pytest.mark.parametrize(("order", "swapped", "divided"), product(range(5), (False, True), (False, True)))
def test_factors_come_in_any_order(order: int, swapped: bool, divided: bool) -> None:
    w = Writer()
    x, bracket = w.x, w.bracket(divided=divided, swapped=swapped)
    half = w.number(0.5) if order < 3 else w.number(2.0)
    if order == 0:
        end = w.both("mul", w.both("mul", x, half, swapped), bracket, swapped)
    elif order == 1:
        end = w.both("mul", w.both("mul", bracket, half, swapped), x, swapped)
    elif order == 2:
        end = w.both("mul", w.both("mul", x, bracket, swapped), half, swapped)
    elif order == 3:
        end = w.both("div", w.both("mul", x, bracket, swapped), half)
    else:
        end = w.both("mul", w.both("div", x, half), bracket, swapped)
    assert w.found(end) == x


def test_other_formulas_stay() -> None:
    for changes in ({"one": 2.0}, {"scale": 0.25}, {"one": -1.0}):
        w = Writer()
        end = w.both("mul", w.both("mul", w.x, w.number(0.5)), w.bracket(**changes))
        assert w.found(end) is None
    w = Writer()
    assert w.found(w.both("mul", w.x, w.bracket())) is None
    w = Writer()
    other = w.both("mul", w.vector(), w.number(0.5))
    assert w.found(w.both("mul", other, w.bracket())) is None
    w = Writer()
    halves = w.both("mul", w.both("mul", w.x, w.x), w.number(0.5))
    assert w.found(w.both("mul", halves, w.bracket())) is None


def test_a_number_rounded_to_16_bits_is_another_formula() -> None:
    w = Writer()
    scaled = w.both("mul", w.x, w.number(0.70703125))
    bracket = w.both("add", w.builder.add("erf", scaled), w.number(1.0))
    assert w.found(w.both("mul", w.both("mul", w.x, w.number(0.5)), bracket)) is None


def test_a_rounding_between_is_kept() -> None:
    w = Writer("float32")
    rounded = w.builder.add("cast", w.bracket(), dtype="bfloat16")
    end = w.both("mul", w.both("mul", w.x, w.number(0.5)), w.builder.add("cast", rounded, dtype="float32"))
    assert w.found(end) is None


def test_a_power_by_squaring_is_no_gelu_and_not_multiplied_out() -> None:
    w = Writer()
    power = w.x
    for _ in range(60):
        power = w.both("mul", power, power)
    assert w.found(w.both("mul", power, w.bracket())) is None


def test_one_call_is_all_that_is_written() -> None:
    w = Writer()
    body = w.builder.build(w.both("mul", w.both("mul", w.x, w.number(0.5)), w.bracket()))
    text = render(Kernel("pointwise", body), SCHEDULE).text
    assert "= gelu_to_half(v2)" in text
    assert "erf" not in text


def test_results_of_32_bits_keep_erf() -> None:
    w = Writer("float32")
    body = w.builder.build(w.both("mul", w.both("mul", w.x, w.number(0.5)), w.bracket()))
    assert "tl.erf(" in render(Kernel("pointwise", body), SCHEDULE).text
