"""Attention kernels that compute their queries and keys: what is declined, legal and offered, and what they become."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from engine.codegen import declined_because, illegal_because, offered_schedules, render
from engine.codegen.attention_facts import attention_facts
from engine.codegen.attention_prologue import key_frame
from engine.codegen.attention_rules import stage_bytes
from engine.codegen.frames import Digit
from engine.ir import Graph, GraphBuilder, Kernel, TensorSpec
from engine.vocabulary import Target
from tests.codegen.attention_bodies import add_softmax
from tests.codegen.attention_prologue_bodies import PROLOGUES, QWEN3_LAYER, Heads
from tests.codegen.test_compiles import build
from tests.codegen.test_golden import attention_schedule

H200 = Target()
SHORT = Kernel("attention", QWEN3_LAYER.body())
LONGER = Kernel("attention", Heads(16, 128, 128, 128, "bfloat16", group=2).body())
QUERIES_ONLY = Kernel("attention", Heads(16, 512, 512, 128, "bfloat16", group=2, also_keys=False).body())
ODD = Kernel("attention", Heads(3, 50, 50, 80, "float16").body())


def test_the_hand_made_winners_are_offered() -> None:
    """BLOCK_M 16, BLOCK_N 32 and two or four warps won at 32 tokens on an H200."""
    offered = set(offered_schedules(SHORT, H200))
    for warps in (2, 4):
        assert attention_schedule(BLOCK_M=16, BLOCK_N=32, NUM_WARPS=warps, NUM_STAGES=1) in offered


@pytest.mark.parametrize("kernel", [SHORT, LONGER, QUERIES_ONLY, ODD], ids=["short", "longer", "queries", "odd"])
def test_what_is_offered_is_legal(kernel: Kernel) -> None:
    offered = list(offered_schedules(kernel, H200))
    assert 10 < len(offered) < 400
    assert [s for s in offered if illegal_because(kernel, s, H200)] == []


def test_only_what_a_descriptor_can_load_is_described() -> None:
    text = render(LONGER, attention_schedule(LOADS="descriptor", BLOCK_N=32)).text
    assert re.findall(r"(\w+)_desc\.load", text) == ["value"]
    text = render(QUERIES_ONLY, attention_schedule(LOADS="descriptor")).text
    assert sorted(re.findall(r"(\w+)_desc\.load", text)) == ["key", "value"]


@pytest.mark.parametrize("name", sorted(PROLOGUES))
def test_no_loaded_tile_is_computed_on_and_multiplied(name: str) -> None:
    """Triton 3.6 miscompiles a loop that does both; an operand is a tile of its own, or is only multiplied."""
    kernel = Kernel("attention", PROLOGUES[name]())
    text = render(kernel, attention_schedule(BLOCK_M=16, BLOCK_N=16, NUM_WARPS=1)).text
    operands = {operand for pair in re.findall(r"tl\.dot\((.+?), (\w+)(?:\.T)?[,)]", text) for operand in pair}
    loaded = {operand for operand in operands if re.search(rf"^ *{re.escape(operand)} = tl\.load", text, re.MULTILINE)}
    assert loaded
    for tile in loaded:
        assert len(re.findall(rf"\b{tile}\b", text)) == 2


def test_what_moves_with_the_keys_alone_is_in_the_loop() -> None:
    text = render(LONGER, attention_schedule(BLOCK_M=16, BLOCK_N=32, NUM_WARPS=2)).text
    before, loop = text.split("for start in ")
    assert before.count("tl.sum(") == 1
    assert loop.count("tl.load(") == 5
    assert attention_facts(LONGER.body).key.streamed_bytes == 2 * 4
    assert attention_facts(Heads(2, 8, 8, 16, "float32", rotary=False).body()).key.streamed_bytes == 4


def test_keys_are_walked_with_the_head_innermost() -> None:
    assert key_frame(1, 2, 3).digits == (Digit(3, 1, 2), Digit(2, 3, 1))
    assert key_frame(5, 2, 3).digits == (Digit(3, 1, 2), Digit(2, 3, 1), Digit(5, 6, 6))


def declined(what: str) -> Graph:
    b = GraphBuilder()
    q, k, v = (b.input(TensorSpec.contiguous((2, 8, 16), "float32")) for _ in range(3))
    if what == "tokens":
        keys = b.add(
            "div", k, b.view(b.add("sum", b.view(k, (2, 16, 8), (128, 1, 16)), axes=(2,)), (2, 1, 16), (16, 16, 1))
        )
    elif what == "halves":
        halves = b.view(k, (2, 8, 2, 8), (128, 16, 8, 1))
        total = b.view(b.add("sum", halves, axes=(3,)), (2, 8, 2, 8), (16, 2, 1, 0))
        keys = b.view(b.add("sub", halves, total), (2, 8, 16), (128, 16, 1))
    elif what == "tokens turned":
        keys = b.add("roll", k, axis=1, shift=3)
    else:
        keys = b.add("add", k, v)
    scores = b.add("matmul", q, b.view(keys, (2, 16, 8), (128, 1, 16)))
    return b.build(b.add("matmul", add_softmax(b, scores, "float32"), v))


@pytest.mark.parametrize("what", ["tokens", "halves", "tokens turned", "values"])
def test_what_leaves_its_head_is_declined(what: str) -> None:
    reason = declined_because(Kernel("attention", declined(what)))
    assert reason is not None
    assert "head by head" in reason or "whole heads" in reason


@pytest.mark.parametrize(
    ("kernel", "changes"),
    [
        (SHORT, {"BLOCK_M": 16, "BLOCK_N": 32, "NUM_WARPS": 2, "NUM_STAGES": 1, "LOADS": "descriptor"}),
        (LONGER, {"BLOCK_N": 32, "NUM_STAGES": 2}),
        (QUERIES_ONLY, {"BLOCK_N": 64, "LOADS": "descriptor"}),
    ],
    ids=["short", "longer", "queries"],
)
def test_computed_tiles_compile_without_spills(
    kernel: Kernel, changes: dict[str, int | str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = build(kernel, attention_schedule(**changes), tmp_path, monkeypatch)
    ptx = built.kernel.asm["ptx"]
    assert not built.build.spills
    assert ("wgmma.mma_async" in ptx) == (changes.get("BLOCK_M", 64) == 64)
    assert ("cp.async.bulk.tensor" in ptx) == (changes.get("LOADS") == "descriptor")


@pytest.mark.parametrize("kernel", [LONGER, QUERIES_ONLY, ODD], ids=["longer", "queries", "odd"])
def test_shared_memory_is_counted(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = attention_facts(kernel.body)
    for schedule in random.Random(5).sample(list(offered_schedules(kernel, H200)), 2):
        values = schedule.as_dict()
        taken = build(kernel, schedule, tmp_path, monkeypatch).build.shared_bytes or 0
        tiles = (int(values["BLOCK_M"]) + int(values["BLOCK_N"])) * max(facts.depth_block, facts.width_block) * 2
        assert (int(values["NUM_STAGES"]) - 1) * stage_bytes(facts, values, least=True) <= taken <= H200.shared_bytes
        assert taken <= int(values["NUM_STAGES"]) * stage_bytes(facts, values) + tiles + 4096, str(schedule)
