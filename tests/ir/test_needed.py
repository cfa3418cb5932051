"""Needed work: what a mask of positions hides is counted neither as products nor as bytes, and all else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ir import Graph, GraphBuilder, Kernel, TensorSpec
from engine.ir.attention_mask import Bounds
from engine.ir.measures import count_flops, count_read_bytes, count_written_bytes
from engine.ir.needed import fewest_bytes, needed_work
from engine.ir.roofline import Ceilings, floor_us
from tests.codegen.attention_bodies import add_softmax, attention

bound = st.one_of(st.none(), st.integers(-8, 8))
Mask = Callable[[GraphBuilder, int], int]


def share(body: Graph) -> float:
    """Of the products of a body without a mask."""
    bare = sum(2 * op.out.numel * body.ops[op.inputs[0]].out.shape[-1] for op in body.ops if op.kind == "matmul")
    return sum(needed_work(body).products.values()) / bare


def read_share(body: Graph) -> float:
    return needed_work(body).read_bytes / count_read_bytes(body)


def masked(mask: Mask, *, rows: int = 64, keys: int = 64) -> Graph:
    b = GraphBuilder()
    q, k, v = (b.input(TensorSpec.contiguous((2, n, 16), "bfloat16")) for n in (rows, keys, keys))
    scores = b.add("matmul", q, b.view(k, (2, 16, keys), (16 * keys, 1, 16)), dtype="float32")
    return b.build(b.add("matmul", add_softmax(b, mask(b, scores), "bfloat16"), v))


def position(b: GraphBuilder, scores: int, axis: int) -> int:
    return b.iota(b.spec(scores).shape[axis], axis, 3)


def hide(b: GraphBuilder, scores: int, seen: int, fill: float = float("-inf")) -> int:
    return b.add("where", seen, scores, b.constant(fill), dtype="float32")


def causal(b: GraphBuilder, scores: int) -> int:
    return b.add("le", position(b, scores, 2), position(b, scores, 1))


def chunked(b: GraphBuilder, scores: int) -> int:
    row, column = (b.add("floor", b.add("div", position(b, scores, axis), b.constant(16, "int64"))) for axis in (1, 2))
    return hide(b, scores, b.add("logical_and", causal(b, scores), b.add("eq", row, column)))


def seen_prefix(b: GraphBuilder, scores: int) -> int:
    early = b.add("lt", position(b, scores, 2), b.constant(16, "int64"))
    return hide(b, scores, b.add("logical_or", early, causal(b, scores)))


def soft_capped(b: GraphBuilder, scores: int) -> int:
    capped = b.add("mul", b.add("tanh", b.add("div", scores, b.constant(50.0))), b.constant(50.0))
    return hide(b, capped, causal(b, scores))


def added(b: GraphBuilder, scores: int) -> int:
    zero, far = b.constant(0.0, "bfloat16"), b.constant(-3.3e38, "bfloat16")
    mask = b.add("where", causal(b, scores), zero, far, dtype="bfloat16")
    return b.add("add", scores, mask, dtype="float32")


def capped_after(b: GraphBuilder, scores: int) -> int:
    """tanh makes -1 of -inf, so nothing is hidden."""
    return b.add("tanh", hide(b, scores, causal(b, scores)))


def little_hidden(b: GraphBuilder, scores: int) -> int:
    """A small number in the place of a score still weighs."""
    return hide(b, scores, causal(b, scores), -1.0)


_HALF = 65 / 128


@pytest.mark.parametrize(
    ("mask", "visible"),
    [
        (lambda b, scores: hide(b, scores, causal(b, scores)), _HALF),
        (added, _HALF),
        (soft_capped, _HALF),
        (chunked, 4 * (16 * 17 / 2) / 64**2),
        (seen_prefix, (64 * 65 / 2 + 16 * 15 / 2) / 64**2),
        (capped_after, 1.0),
        (little_hidden, 1.0),
    ],
    ids=["causal", "added", "soft capped", "chunked", "prefix", "capped after", "little"],
)
def test_products_of_visible_pairs_alone_are_needed(mask: Mask, visible: float) -> None:
    body = masked(mask)
    assert share(body) == pytest.approx(visible)
    assert needed_work(body).written_bytes == count_written_bytes(body)
    assert read_share(body) == 1.0


def test_keys_that_no_query_sees_are_not_read() -> None:
    whole = attention(4, 1, 1024, 64, "bfloat16", group=2)
    window = attention(4, 1, 1024, 64, "bfloat16", group=2, causal=True, offset=1023, window=128)
    assert share(window) == pytest.approx(1 / 8)
    queries = 4 * 64 * 2
    assert needed_work(whole).read_bytes == count_read_bytes(whole)
    assert needed_work(window).read_bytes == queries + (count_read_bytes(window) - queries) // 8
    kernel = Kernel("attention", window)
    assert fewest_bytes(kernel) == needed_work(window).read_bytes + count_written_bytes(window)
    assert kernel.bytes_moved == count_read_bytes(window) + count_written_bytes(window)


def test_one_token_of_grouped_heads_reads_each_key_once() -> None:
    """16 heads of queries and 8 of keys, 4096 keys of 128 elements: each number counted by hand."""
    needed = needed_work(attention(16, 1, 4096, 128, "bfloat16", group=2))
    assert needed.read_bytes == 16 * 128 * 2 + 2 * 8 * 4096 * 128 * 2
    assert needed.written_bytes == 16 * 128 * 2
    assert sum(needed.products.values()) == 2 * (2 * 16 * 4096 * 128)


def test_what_is_read_twice_or_by_every_row_is_needed_once() -> None:
    b = GraphBuilder()
    x = b.input(TensorSpec.contiguous((64, 128), "bfloat16"))
    weight = b.input(TensorSpec((64, 128), "float32", (0, 1)))
    turned = b.view(x, (64, 128), (1, 64))
    body = b.build(b.add("mul", b.add("add", x, turned, dtype="float32"), weight))
    assert needed_work(body).read_bytes == 64 * 128 * 2 + 128 * 4
    assert needed_work(body).written_bytes == 64 * 128 * 4


def test_what_computes_keys_in_the_kernel_is_read_for_seen_keys() -> None:
    b = GraphBuilder()
    q, k, v = (b.input(TensorSpec.contiguous((2, n, 16), "float32")) for n in (1, 64, 64))
    turned = b.view(b.add("mul", k, b.constant(2.0)), (2, 16, 64), (1024, 1, 16))
    scores = b.add("matmul", q, turned)
    seen = b.add("lt", position(b, scores, 2), b.constant(16, "int64"))
    body = b.build(b.add("matmul", add_softmax(b, hide(b, scores, seen), "float32"), v))
    assert needed_work(body).read_bytes == 2 * 16 * 4 * (1 + 16 + 16)


def test_scores_that_leave_the_kernel_are_all_needed_and_weights_are_not() -> None:
    b = GraphBuilder()
    q, k, v = (b.input(TensorSpec.contiguous((2, 64, 16), "bfloat16")) for _ in range(3))
    scores = b.add("matmul", q, b.view(k, (2, 16, 64), (1024, 1, 16)), dtype="float32")
    weights = add_softmax(b, hide(b, scores, causal(b, scores)), "bfloat16")
    values = b.add("matmul", weights, v)
    assert share(b.build(values, weights)) == pytest.approx(_HALF)
    assert share(b.build(values, scores)) == pytest.approx((1 + _HALF) / 2)


def test_scores_apart_need_what_their_mask_shows() -> None:
    b = GraphBuilder()
    q, k = (b.input(TensorSpec.contiguous((2, 64, 16), "bfloat16")) for _ in range(2))
    scores = b.add("matmul", q, b.view(k, (2, 16, 64), (1024, 1, 16)), dtype="float32")
    logits = hide(b, scores, causal(b, scores))
    assert share(b.build(logits)) == pytest.approx(_HALF)
    assert share(b.build(logits, scores)) == 1.0
    assert share(b.build(add_softmax(b, logits, "bfloat16"))) == pytest.approx(_HALF)


def test_a_softmax_reads_the_scores_that_its_mask_shows() -> None:
    b = GraphBuilder()
    scores = b.input(TensorSpec.contiguous((2, 64, 64), "float32"))
    body = b.build(add_softmax(b, hide(b, scores, causal(b, scores)), "float32"))
    assert read_share(body) == pytest.approx(_HALF)


def test_a_mask_that_is_an_input_hides_nothing_for_certain() -> None:
    body = attention(2, 24, 40, 16, "float32", hidden=(1, 1, 24, 40))
    assert (share(body), read_share(body)) == (1.0, 1.0)


def test_keys_hidden_by_values_alone_are_not_read() -> None:
    """Two islands of keys, which are no band, on the axis of the keys alone."""

    def islands(b: GraphBuilder, scores: int) -> int:
        column = position(b, scores, 2)
        ends = b.add("ge", column, b.constant(48, "int64"))
        return hide(b, scores, b.add("logical_or", b.add("lt", column, b.constant(8, "int64")), ends))

    body = masked(islands)
    assert share(body) == pytest.approx(24 / 64)
    assert needed_work(body).read_bytes == 2 * 16 * 2 * (64 + 2 * 24)


def test_rows_that_see_no_key_keep_all_keys_where_the_fill_is_finite() -> None:
    """Such a row is the mean of all values."""

    def late(b: GraphBuilder, scores: int, fill: float) -> int:
        row = b.add("floor", b.add("div", position(b, scores, 1), b.constant(48, "int64")))
        return hide(b, scores, b.add("ge", row, b.add("ge", position(b, scores, 2), b.constant(0, "int64"))), fill)

    assert share(masked(lambda b, scores: late(b, scores, -3e38))) == 1.0
    hard = masked(lambda b, scores: late(b, scores, float("-inf")))
    assert share(hard) == pytest.approx(16 / 64)
    assert needed_work(hard).read_bytes == 2 * 16 * 2 * (16 + 2 * 64)


@pytest.mark.parametrize(("fill", "visible"), [(float("-inf"), _HALF), (-3e38, 1.0)], ids=["certain", "finite"])
def test_a_mask_of_data_beside_one_of_positions(fill: float, visible: float) -> None:
    """Data may hide all that positions show, and then a finite fill makes the row the mean of all values."""
    mask = TensorSpec.contiguous((2, 1, 64), "bool")
    body = masked(lambda b, scores: hide(b, hide(b, scores, b.input(mask), fill), causal(b, scores), fill))
    assert share(body) == pytest.approx(visible)


def test_a_causal_floor_is_that_of_the_visible_pairs() -> None:
    ceilings = Ceilings(4000.0, (("bf16", 800.0),))
    whole, seen = (
        floor_us(Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16", batch=4, causal=c)), ceilings)
        for c in (False, True)
    )
    assert whole == (pytest.approx(4 * 64 * 2048**2 * 128 / 800e12 * 1e6), "compute")
    assert seen == (pytest.approx(whole[0] * 2049 / 4096), "compute")


def test_a_mask_too_large_to_look_at_is_still_a_band() -> None:
    body = attention(1, 1 << 17, 1 << 17, 64, "bfloat16", causal=True, window=1024)
    assert share(body) < 0.009
    assert count_flops(body) > 0


@given(bound, bound, st.integers(1, 7), st.integers(1, 7))
def test_rows_and_keys_within_bounds_are_counted(low: int | None, high: int | None, rows: int, keys: int) -> None:
    bounds = Bounds(low, high)
    seen = [
        [(low is None or r - c >= low) and (high is None or r - c <= high) for c in range(keys)] for r in range(rows)
    ]
    assert bounds.rows_seeing(rows, keys) == sum(map(any, seen))
    assert bounds.keys_seen(rows, keys) == sum(any(row[c] for row in seen) for c in range(keys))
