"""Attention kernels: what is declined, what is legal, what is offered, and what becomes of them on sm_90."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

from engine.codegen import declined_because, illegal_because, offered_schedules, render
from engine.codegen.attention_facts import attention_facts
from engine.codegen.attention_rules import stage_bytes
from engine.ir import Graph, GraphBuilder, Kernel, TensorSpec
from engine.ir.attention_mask import Bounds, hidden_flops
from engine.ir.measures import count_flops
from engine.runtime.toolchain import ptxas_path
from engine.vocabulary import KnobValue, Target
from tests.codegen.attention_bodies import add_causal, add_softmax, attention
from tests.codegen.test_compiles import build
from tests.codegen.test_golden import attention_schedule

H200 = Target()
LAYER = Kernel("attention", attention(16, 512, 512, 128, "bfloat16", group=2, causal=True))
RAGGED = Kernel("attention", attention(2, 100, 100, 64, "bfloat16", tokens_first=False))
PADDED = Kernel("attention", attention(4, 64, 64, 80, "float16"))
FLOAT32 = Kernel("attention", attention(2, 256, 256, 64, "float32"))


@pytest.mark.parametrize(
    ("kernel", "changes", "reason"),
    [
        (LAYER, {"BLOCK_M": 8}, "below 16"),
        (LAYER, {"BLOCK_N": 8}, "below 16"),
        (LAYER, {"PRECISION": "tf32x3"}, "for float32 operands"),
        (FLOAT32, {"PRECISION": "tf32"}, "doesn't allow TF32"),
        (LAYER, {"NUM_WARPS": 1, "BLOCK_M": 128}, "512 accumulators a thread"),
        (LAYER, {"NUM_STAGES": 6}, "bytes of shared memory"),
        (LAYER, {"LOADS": "descriptor", "BLOCK_N": 512}, "at most 256"),
        (RAGGED, {"LOADS": "descriptor", "BLOCK_N": 64}, "keys of the next head"),
        (PADDED, {"LOADS": "descriptor"}, "no operand to load: its neighbouring heads of 80"),
        (LAYER, {"BLOCK_M": 65536, "NUM_WARPS": 32}, "Triton block"),
    ],
)
def test_illegal_schedules_say_why(kernel: Kernel, changes: dict[str, KnobValue], reason: str) -> None:
    found = illegal_because(kernel, attention_schedule(**changes), H200)
    assert found is not None
    assert reason in found
    assert found.endswith(".")


def test_descriptors_need_their_hardware() -> None:
    schedule = attention_schedule(LOADS="descriptor")
    assert illegal_because(LAYER, schedule, H200) is None
    assert "capability 9.0" in str(illegal_because(LAYER, schedule, Target(capability=80)))


@pytest.mark.parametrize("kernel", [LAYER, RAGGED, PADDED, FLOAT32], ids=["layer", "ragged", "padded", "fp32"])
def test_what_is_offered_is_legal(kernel: Kernel) -> None:
    offered = list(offered_schedules(kernel, H200))
    assert 10 < len(offered) < 400
    assert [s for s in offered if illegal_because(kernel, s, H200)] == []


def test_the_hand_made_winners_are_offered() -> None:
    """BLOCK_M 64, BLOCK_N 128, four warps, three stages through descriptors won at 512 tokens on an H200."""
    offered = set(offered_schedules(LAYER, H200))
    assert attention_schedule(LOADS="descriptor") in offered
    short = Kernel("attention", attention(16, 32, 32, 128, "bfloat16", group=2, causal=True))
    small = attention_schedule(BLOCK_M=16, BLOCK_N=32, NUM_WARPS=2, NUM_STAGES=1)
    assert small in set(offered_schedules(short, H200))


def computed_values() -> Graph:
    b = GraphBuilder()
    q, k, v = (b.input(TensorSpec.contiguous((2, 8, 16), "float32")) for _ in range(3))
    scores = b.add("matmul", q, b.view(k, (2, 16, 8), (128, 1, 16)))
    return b.build(b.add("matmul", add_softmax(b, scores, "float32"), b.add("relu", v)))


def keys_as_mask() -> Graph:
    """The keys are multiplied and added to the scores: one loaded tile would have two uses."""
    b = GraphBuilder()
    q, k, v = (b.input(TensorSpec.contiguous((2, 16, 16), "float32")) for _ in range(3))
    scores = b.add("add", b.add("matmul", q, b.view(k, (2, 16, 16), (256, 1, 16))), k)
    return b.build(b.add("matmul", add_softmax(b, scores, "float32"), v))


def gated_result() -> Graph:
    b = GraphBuilder()
    q, k, v, gate = (b.input(TensorSpec.contiguous((2, 16, 16), "float32")) for _ in range(4))
    scores = b.add("matmul", q, b.view(k, (2, 16, 16), (256, 1, 16)))
    return b.build(b.add("mul", b.add("matmul", add_softmax(b, scores, "float32"), v), gate))


def no_softmax() -> Graph:
    b = GraphBuilder()
    q, k, v = (b.input(TensorSpec.contiguous((2, 16, 16), "float32")) for _ in range(3))
    return b.build(b.add("matmul", b.add("exp", b.add("matmul", q, k)), v))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (computed_values(), "The values of an attention kernel are read from memory"),
        (keys_as_mask(), "Triton 3.6 miscompiles"),
        (gated_result(), "mul stands behind it"),
        (no_softmax(), "does not weigh values by a softmax"),
        (attention(2, 16, 16, 512, "float16"), "at most 256 elements, not 512"),
        (attention(2, 16, 16, 16, "float64"), "not float64"),
    ],
)
def test_bodies_that_are_no_attention_kernel_are_declined(body: Graph, reason: str) -> None:
    found = declined_because(Kernel("attention", body))
    assert found is not None
    assert reason in found


def test_a_mask_of_positions_bounds_the_loop() -> None:
    assert attention_facts(LAYER.body).masking.bounds == Bounds(low=0)
    window = attention_facts(attention(2, 70, 90, 16, "float32", causal=True, offset=3, window=20))
    assert window.masking.bounds == Bounds(low=-3, high=19 - 3)
    text = render(Kernel("attention", window.body), attention_schedule(BLOCK_M=16, BLOCK_N=16)).text
    assert "end = tl.minimum(90, tl.maximum(first + 19, 0))" in text
    assert "begin = tl.maximum(first - 16, 0) // 16 * 16" in text


def test_a_mask_that_can_leave_a_row_without_keys_bounds_nothing_unless_it_fills_with_infinity() -> None:
    for fill, low in ((float("-inf"), 5), (-3e38, None)):
        body = attention(2, 40, 30, 16, "float32", causal=True, offset=-5, fill=fill)
        assert attention_facts(body).masking.bounds.low == low
    mild = attention(2, 40, 40, 16, "float32", causal=True, fill=-100.0)
    assert attention_facts(mild).masking.bounds == Bounds(exact=False)


def test_a_mask_that_is_added_bounds_the_loop_too() -> None:
    b = GraphBuilder()
    q, k, v = (b.input(TensorSpec.contiguous((2, 40, 16), "float32")) for _ in range(3))
    zero = b.add("mul", b.iota(40, 1, 2, "int32"), b.constant(0, "int64"), dtype="int32")
    mask = b.add("le", b.iota(40, 1, 2, "int32"), b.iota(40, 0, 2, "int32"))
    added = b.add("where", mask, b.constant(0.0), b.constant(float("-inf")), dtype="float32")
    scores = b.add("matmul", q, b.view(k, (2, 16, 40), (640, 1, 16)))
    masked = b.add(
        "add", b.add("add", scores, b.add("cast", zero, dtype="float32")), b.view(added, (1, 40, 40), (0, 40, 1))
    )
    body = b.build(b.add("matmul", add_softmax(b, masked, "float32"), v))
    assert attention_facts(body).masking.bounds.low == 0


def test_scores_that_are_capped_before_they_are_masked_are_bounded_as_plain_ones() -> None:
    for options in ({}, {"window": 300}, {"fill": -3e38}, {"added": (1, 1, 1, 2048)}):
        plain, capped = (attention(2, 2048, 2048, 64, "bfloat16", causal=True, cap=cap, **options) for cap in (0, 50.0))
        facts = [attention_facts(body) for body in (plain, capped)]
        assert facts[0].masking.bounds == facts[1].masking.bounds
        assert [one.diagonal for one in facts] == [not options] * 2
        assert hidden_flops(capped) / count_flops(capped) == pytest.approx(
            hidden_flops(plain) / count_flops(plain), rel=1e-3
        )
        texts = [render(Kernel("attention", body), attention_schedule()).text for body in (plain, capped)]
        loops = [[line for line in text.splitlines() if "end" in line or "begin" in line] for text in texts]
        assert loops[0] == loops[1] != []


def test_the_diagonal_blocks_of_capped_scores_alone_are_masked() -> None:
    kernel = Kernel("attention", attention(2, 2048, 2048, 64, "bfloat16", causal=True, cap=50.0))
    assert {schedule.as_dict()["MASK"] for schedule in offered_schedules(kernel, H200)} == {"every", "cut"}
    lines = render(kernel, attention_schedule(MASK="cut")).text.splitlines()
    (masked,) = (number for number, line in enumerate(lines) if "tl.where(rows" in line)
    assert lines[masked - 1].strip().startswith("if start > first")
    assert any("tanh" in line for line in lines[:masked])
    roles = {"BLOCK_M": 128, "BLOCK_N": 128, "LOADS": "descriptor", "NUM_WARPS": 8, "NUM_STAGES": 2, "MASK": "cut"}
    assert "no more than scaled" in str(
        illegal_because(kernel, attention_schedule(**roles, OVERLAP="specialized"), H200)
    )


def test_a_cap_above_the_mask_shows_every_key() -> None:
    b = GraphBuilder()
    q, k, v = (b.input(TensorSpec.contiguous((2, 40, 16), "float32")) for _ in range(3))
    scores = b.add("matmul", q, b.view(k, (2, 16, 40), (640, 1, 16)))
    body = b.build(b.add("matmul", add_softmax(b, b.add("tanh", add_causal(b, scores)), "float32"), v))
    assert attention_facts(body).masking.bounds == Bounds(exact=False)


def test_a_mask_above_what_is_not_understood_bounds_the_loop_and_is_not_all() -> None:
    for fill, bounds in ((float("-inf"), Bounds(low=0, exact=False)), (-3e38, Bounds(exact=False))):
        facts = attention_facts(attention(2, 40, 40, 16, "float32", scale=-0.5, causal=True, fill=fill))
        assert facts.masking.bounds == bounds
        assert not facts.diagonal


@pytest.mark.parametrize("loads", ["pointer", "descriptor"])
def test_products_use_the_fast_instructions(loads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = build(LAYER, attention_schedule(LOADS=loads, BLOCK_N=64), tmp_path, monkeypatch)
    ptx = built.kernel.asm["ptx"]
    assert "wgmma.mma_async" in ptx
    assert "mma.sync" not in ptx
    assert ("cp.async.bulk.tensor" in ptx) == (loads == "descriptor")
    assert not built.build.spills
    assert re.search(r"ex2\.approx", ptx)


@pytest.mark.parametrize("warps", [4, 8])
def test_a_softmax_runs_beside_the_product_of_the_other_tile(
    warps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three waits: after each tile's scores, and behind the loop; ptxas adds none of its own, and nothing spills."""
    kernel = Kernel("attention", attention(4, 2048, 2048, 128, "bfloat16"))
    knobs: dict[str, KnobValue] = {"BLOCK_M": 32 * warps, "BLOCK_N": 64, "LOADS": "descriptor", "NUM_STAGES": 2}
    schedule = attention_schedule(**knobs, NUM_WARPS=warps, QUERY_TILES=2, OVERLAP="none")
    assert schedule in set(offered_schedules(kernel, H200))
    built = build(kernel, schedule, tmp_path, monkeypatch)
    assert built.kernel.asm["ptx"].count("wgmma.wait_group") == 3
    assert not built.build.spills
    (tmp_path / "kernel.ptx").write_text(built.kernel.asm["ptx"], encoding="utf-8")
    command = [ptxas_path(90), "-v", "--gpu-name=sm_90a", str(tmp_path / "kernel.ptx"), "-o", str(tmp_path / "cubin")]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stderr
    assert "registers" in told
    assert "serialized" not in told


@pytest.mark.parametrize("kernel", [LAYER, RAGGED, PADDED], ids=["layer", "ragged", "padded"])
def test_shared_memory_is_counted(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = attention_facts(kernel.body)
    for schedule in random.Random(5).sample(list(offered_schedules(kernel, H200)), 3):
        values = schedule.as_dict()
        taken = build(kernel, schedule, tmp_path, monkeypatch).build.shared_bytes or 0
        query = int(values["BLOCK_M"]) * max(facts.depth_block, facts.width_block) * 2
        assert (int(values["NUM_STAGES"]) - 1) * stage_bytes(facts, values) <= taken <= H200.shared_bytes
        assert taken <= int(values["NUM_STAGES"]) * stage_bytes(facts, values) + query + 4096, str(schedule)
