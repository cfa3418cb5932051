from __future__ import annotations

from engine.grouping.labels import kernel_label
from engine.ir import GraphBuilder
from tests.ir.graphs import add_rms_norm, contiguous, linear_gelu, softmax


def test_a_contraction_is_named_prologue_first() -> None:
    assert kernel_label("contraction", linear_gelu()) == "matmul+add+gelu"
    b = GraphBuilder()
    x, w = b.input(contiguous((8, 8), "float32")), b.input(contiguous((8, 8), "float32"))
    bent = b.add("relu", b.input(contiguous((8, 8), "float32")))
    body = b.build(b.add("mul", b.add("matmul", b.add("exp", x), w), bent))
    assert kernel_label("contraction", body) == "exp+matmul+relu+mul"


def test_softmax_and_norms_are_recognized() -> None:
    assert kernel_label("rowwise", softmax()) == "softmax"
    b = GraphBuilder()
    x, w = b.input(contiguous((8, 16), "bfloat16")), b.input(contiguous((16,), "bfloat16"))
    assert kernel_label("rowwise", b.build(add_rms_norm(b, x, w))) == "rms_norm"


def test_a_long_chain_is_cut_and_a_cast_alone_has_a_name() -> None:
    b = GraphBuilder()
    value = b.input(contiguous((8,), "float32"))
    narrow = b.build(b.add("cast", value, dtype="bfloat16"))
    assert kernel_label("pointwise", narrow) == "cast"
    for kind in ("exp", "neg", "relu", "tanh", "abs", "sin"):
        value = b.add(kind, value)
    assert kernel_label("pointwise", b.build(value)) == "exp+neg+relu+tanh+abs…"
