from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.ir.attention import attention_chain
from engine.ir.attention_mask import Bounds, hidden_flops, read_masking
from engine.ir.measures import count_flops
from tests.codegen.attention_bodies import add_softmax, attention

bound = st.one_of(st.none(), st.integers(-8, 8))


@given(bound, bound, st.integers(0, 7), st.integers(0, 7))
def test_pairs_are_those_within_the_bounds(low: int | None, high: int | None, rows: int, keys: int) -> None:
    bounds = Bounds(low, high)
    seen = [
        [(low is None or r - c >= low) and (high is None or r - c <= high) for c in range(keys)] for r in range(rows)
    ]
    assert bounds.pairs(rows, keys) == sum(map(sum, seen))
    if bounds.every_row_sees(rows, keys) and keys:
        assert all(map(any, seen))


def test_a_causal_kernel_counts_the_work_on_visible_keys() -> None:
    whole, causal = (Kernel("attention", attention(2, 64, 64, 32, "float16", causal=c)) for c in (False, True))
    assert hidden_flops(whole.body) == 0
    assert whole.flops == count_flops(whole.body)
    assert 0.5 < causal.flops / whole.flops < 0.56
    window = Kernel("attention", attention(2, 64, 64, 32, "float16", causal=True, window=2))
    assert window.flops / whole.flops < 0.06


def test_positions_are_followed_through_views_and_sums() -> None:
    b = GraphBuilder()
    q, k, v = (b.input(TensorSpec.contiguous((2, 6, 16), "float32")) for _ in range(3))
    row = b.add("add", b.view(b.iota(6, 0, 1), (6, 1), (1, 6)), b.constant(2, "int64"))
    hidden = b.add("logical_not", b.add("ge", row, b.iota(6, 0, 1)))
    seen = b.view(hidden, (1, 6, 6), (36, 6, 1))
    scores = b.add("matmul", q, b.view(k, (2, 16, 6), (96, 1, 16)))
    logits = b.add("where", seen, b.constant(float("-inf")), scores, dtype="float32")
    body = b.build(b.add("matmul", add_softmax(b, logits, "float32"), v))
    chain = attention_chain(body, max(i for i, op in enumerate(body.ops) if op.kind == "matmul"))
    assert chain is not None
    masking = read_masking(body, chain)
    assert masking.bounds == Bounds(low=-2)
    assert masking.conditions[0].negated


def test_a_hostile_mask_costs_no_more_than_a_few_steps() -> None:
    b = GraphBuilder()
    q, k, v = (b.input(TensorSpec.contiguous((6, 16), "float32")) for _ in range(3))
    value = b.iota(6, 1, 2)
    for _ in range(4000):
        value = b.add("add", value, value)
    scores = b.add("matmul", q, b.view(k, (16, 6), (1, 16)))
    logits = b.add("where", b.add("le", value, b.iota(6, 0, 2)), scores, b.constant(float("-inf")), dtype="float32")
    body = b.build(b.add("matmul", add_softmax(b, logits, "float32"), v))
    assert Kernel("attention", body).flops == count_flops(body)
