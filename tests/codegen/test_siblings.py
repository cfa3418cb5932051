"""Contraction kernels of several matmuls: what is declined, and what their tiles cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.codegen import declined_because, illegal_because, offered_schedules, render
from engine.ir import Graph, GraphBuilder, Kernel, TensorSpec
from engine.vocabulary import Target
from tests.codegen.bodies import matmul
from tests.codegen.sibling_bodies import gate_up
from tests.codegen.test_compiles import build
from tests.codegen.test_golden import contraction

H200 = Target()
GATE_UP = Kernel("contraction", gate_up(512, 3072, 1024, "bfloat16"))
SINGLE = Kernel("contraction", matmul(512, 3072, 1024, "bfloat16", turn_right=True))


def pair(right: tuple[int, int], *, same_left: bool = True, dtype: str = "bfloat16") -> Graph:
    """Two products, the second by a right operand of another shape, from another left operand, or of another dtype."""
    b = GraphBuilder()
    x = b.input(TensorSpec.contiguous((16, 32), "bfloat16"))
    other = x if same_left else b.input(TensorSpec.contiguous((16, 32), "bfloat16"))
    first = b.add("matmul", x, b.input(TensorSpec.contiguous((32, 16), "bfloat16")))
    second = b.add("matmul", other, b.input(TensorSpec.contiguous(right, "bfloat16")), dtype=dtype)
    return b.build(first, second)


@pytest.mark.parametrize(
    "body",
    [pair((32, 16), same_left=False), pair((32, 48), same_left=False), pair((32, 16), dtype="float32")],
    ids=["left", "left and width", "dtype"],
)
def test_matmuls_that_are_no_siblings_are_declined(body: Graph) -> None:
    assert "differ in their left operand" in str(declined_because(Kernel("contraction", body)))


def test_more_than_three_are_declined() -> None:
    b = GraphBuilder()
    x = b.input(TensorSpec.contiguous((16, 32), "bfloat16"))
    body = b.build(*(b.add("matmul", x, b.input(TensorSpec.contiguous((32, 16), "bfloat16"))) for _ in range(4)))
    assert "up to 3 of one operand, not 4" in str(declined_because(Kernel("contraction", body)))


def test_every_product_counts_its_accumulators() -> None:
    schedule = contraction(BLOCK_M=128, BLOCK_N=256, GROUP_M=1)
    assert illegal_because(SINGLE, schedule, H200) is None
    assert "256 accumulators a thread" in str(illegal_because(GATE_UP, schedule, H200))


def test_the_hand_made_winner_is_offered() -> None:
    """64 x 64 tiles of gate and up, through descriptors, won at 512 tokens on an H200."""
    winner = contraction(BLOCK_M=64, BLOCK_N=64, LOADS="descriptor", NUM_WARPS=4)
    assert winner in set(offered_schedules(GATE_UP, H200))


@pytest.mark.parametrize("loads", ["pointer", "descriptor"])
def test_gate_and_up_share_the_loads_of_their_left_operand(
    loads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = contraction(BLOCK_M=64, BLOCK_N=64, LOADS=loads, NUM_WARPS=4)
    text = render(GATE_UP, schedule).text
    assert text.count("tl.dot(") == 2
    assert text.count("tl.load(") + text.count(".load([") == 3
    built = build(GATE_UP, schedule, tmp_path, monkeypatch)
    assert "wgmma.mma_async" in built.kernel.asm["ptx"]
    assert not built.build.spills
    # Three stages of a left tile and two right ones.
    assert 3 * 3 * 64 * 64 * 2 <= (built.build.shared_bytes or 0) <= 3 * 3 * 64 * 64 * 2 + 1024
