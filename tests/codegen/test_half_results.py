from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.codegen import render
from engine.codegen.half_results import LOG2_OF_TAIL, half_functions
from engine.ir import Graph, GraphBuilder, Kernel
from engine.ir.graph import TensorSpec
from engine.vocabulary import Schedule
from tests.codegen import gelu_fit, half_instructions

ROOT = Path(__file__).parents[2]
SCHEDULE = Schedule.of({"BLOCK": 128, "EVICTION": "", "NUM_WARPS": 1})
HALVES = ("bfloat16", "float16")


def vector(builder: GraphBuilder, dtype: str, rows: int = 64) -> int:
    return builder.input(TensorSpec.contiguous((rows, 64), dtype))


def called(body: Graph) -> dict[int, str]:
    """The function that is called for each op that has one."""
    return {index: function.name for index, function in half_functions(body).items()}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("kind", ["gelu", "gelu_tanh", "silu", "sigmoid"])
def test_what_is_stored_in_16_bits_is_computed_for_them(kind: str, dtype: str) -> None:
    builder = GraphBuilder()
    body = builder.build(builder.add(kind, vector(builder, dtype)))
    text = render(Kernel("pointwise", body), SCHEDULE).text
    assert f"def {kind}_to_half(x):" in text
    assert f"= {kind}_to_half(x0)" in text
    assert text.count("import libdevice") == (kind != "gelu")


def test_what_is_stored_in_32_bits_is_exact() -> None:
    builder = GraphBuilder()
    x = vector(builder, "float32")
    body = builder.build(*(builder.add(kind, x) for kind in ("gelu", "gelu_tanh", "silu", "sigmoid")))
    assert not called(body)
    assert "_to_half" not in render(Kernel("pointwise", body), SCHEDULE).text


def test_a_cast_rounds_and_a_wide_reader_forbids() -> None:
    builder = GraphBuilder()
    x = vector(builder, "float32")
    rounded, both, summed = (builder.add("gelu", builder.add("mul", x, builder.constant(n))) for n in (2.0, 3.0, 4.0))
    ends = [builder.add("cast", value, dtype="bfloat16") for value in (rounded, both, summed)]
    body = builder.build(*ends, both, builder.add("sum", summed, axes=(1,)))
    assert called(body) == {rounded: "gelu_to_half"}


def test_a_factor_of_what_is_rounded_is_too_and_a_summand_is_not() -> None:
    builder = GraphBuilder()
    x, y, z = (vector(builder, "bfloat16") for _ in range(3))
    gate, other = builder.add("silu", x), builder.add("silu", z)
    body = builder.build(builder.add("mul", builder.add("neg", gate), y), builder.add("add", other, y))
    assert called(body) == {gate: "silu_to_half"}


@pytest.mark.parametrize("dtype", [*HALVES, "float32", "float64"])
def test_operands_of_a_matmul_are_what_their_dtype_says(dtype: str) -> None:
    builder = GraphBuilder()
    left = builder.add("gelu", vector(builder, dtype))
    product = builder.add("matmul", left, vector(builder, dtype))
    body = builder.build(builder.add("cast", product, dtype="bfloat16"))
    assert bool(called(body)) == (dtype in HALVES)


def test_doubles_stay_exact_where_they_are_rounded() -> None:
    builder = GraphBuilder()
    body = builder.build(builder.add("cast", builder.add("gelu", vector(builder, "float64")), dtype="float16"))
    assert not called(body)


def test_a_product_of_doubles_is_no_end_of_a_factor() -> None:
    builder = GraphBuilder()
    factor = builder.add("gelu", vector(builder, "float32"))
    wide = builder.add("mul", factor, vector(builder, "float64"))
    body = builder.build(builder.add("cast", wide, dtype="bfloat16"))
    assert not called(body)


def test_the_polynomial_is_the_fitted_one() -> None:
    found, error = gelu_fit.fitted()
    assert error < 1e-5
    assert list(LOG2_OF_TAIL) == pytest.approx(found, rel=1e-7)


def test_results_are_as_right_as_those_of_eager() -> None:
    """No result is farther than one place from the right one and than eager's, and no more of them are wrong."""
    command = [sys.executable, "-m", "tests.codegen.half_numerics"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 8
    for line in lines:
        assert line["calls"], line
        assert line["wrong"] <= line["eager_wrong"], line
        assert line["farthest"] <= 1, line
        assert line["too_far_from_eager"] == 0, line
        assert line["beyond"] < 3e-10, line
        assert all(line[same] for same in ("same_nan", "same_infinities", "same_signs")), line


@pytest.mark.parametrize("kind", half_instructions.KINDS)
def test_the_text_for_16_bits_has_fewer_instructions(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    forms = half_instructions.an_element(kind, tmp_path)
    print(f"\n{kind}: {forms}")
    (exact, exact_mufu), (half, half_mufu) = forms["exact"], forms["half"]
    assert half <= exact - 5
    assert half_mufu <= exact_mufu
