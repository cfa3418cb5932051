"""Products side by side and groups of columns: what is declined, which tiles are legal, and what they compile to."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.codegen import declined_because, illegal_because, offered_schedules, render
from engine.ir import Graph, GraphBuilder, Kernel
from engine.vocabulary import KnobValue, Target
from tests.codegen.epilogue_bodies import linear, partial_sums, projections, reshaped, scaled_rows, tensor
from tests.codegen.test_compiles import build, count
from tests.codegen.test_golden import contraction

H200 = Target()
QKV = Kernel("contraction", projections(512, 1024, 128, (16, 8, 8), "bfloat16"))
SUMS = Kernel("contraction", partial_sums(512, 1024, depth=2048))


def test_a_grid_is_the_tiles_of_all_products() -> None:
    source = render(QKV, contraction(BLOCK_M=64, BLOCK_N=128))
    assert source.grid == (8 * (16 + 8 + 8), 1, 1)
    for limit in ("if tl.program_id(0) < 128:", "elif tl.program_id(0) < 192:", "tile -= 192", "product2(acc, "):
        assert limit in source.text


@pytest.mark.parametrize("loads", ["pointer", "descriptor"])
def test_one_main_loop_reads_the_matrix_of_whichever_product(loads: str) -> None:
    source = render(QKV, contraction(BLOCK_M=64, BLOCK_N=128, LOADS=loads))
    assert source.text.count("tl.dot(") == 1


def test_loops_that_differ_in_more_stay_apart() -> None:
    ragged = Kernel("contraction", projections(512, 1024, 64, (3, 2, 2), "bfloat16"))
    source = render(ragged, contraction(BLOCK_M=64, BLOCK_N=128))
    assert source.text.count("tl.dot(") == 3
    assert "product2(tile - " in source.text


def test_every_product_has_a_descriptor_of_its_own_and_the_left_operand_one() -> None:
    source = render(QKV, contraction(BLOCK_M=64, BLOCK_N=128, LOADS="descriptor"))
    described = [(a.name, a.index, a.shape) for a in source.arguments if a.block]
    rights = [("right_desc", 3, (2048, 1024)), ("right1_desc", 5, (1024, 1024)), ("right2_desc", 7, (1024, 1024))]
    assert described == [("left_desc", 0, (512, 1024)), *rights]
    assert [a.name for a in source.arguments if a.kind == "output"] == ["out0", "out1", "out2"]


def test_a_tile_holds_whole_groups() -> None:
    assert "cuts groups of 128 columns" in str(illegal_because(QKV, contraction(BLOCK_N=64), H200))
    assert "cuts groups of 32 columns" in str(illegal_because(SUMS, contraction(BLOCK_N=16), H200))
    offered = list(offered_schedules(QKV, H200))
    assert {schedule.as_dict()["BLOCK_N"] for schedule in offered} == {128, 256}
    assert all(s["BLOCK_M"] * s["BLOCK_N"] <= 64 * 32 * s["NUM_WARPS"] for s in (o.as_dict() for o in offered))
    assert {schedule.as_dict()["PERSISTENT"] for schedule in offered} == {False}


def test_no_program_walks_products_that_lie_side_by_side() -> None:
    reason = illegal_because(QKV, contraction(BLOCK_N=128, PERSISTENT=True), H200)
    assert "3 of them lie side by side" in str(reason)


def test_the_hand_made_winners_are_offered() -> None:
    """64 x 128 tiles of queries, keys and values with norm and rotation won at 512 tokens on an H200; 64 x 64 tiles
    in steps of 128 did for the product that leaves partial sums."""
    winner = contraction(BLOCK_M=64, BLOCK_N=128, LOADS="descriptor", NUM_WARPS=4, NUM_STAGES=4)
    assert winner in set(offered_schedules(QKV, H200))
    winner = contraction(BLOCK_M=64, BLOCK_N=64, BLOCK_K=128, LOADS="descriptor", NUM_WARPS=4, NUM_STAGES=5)
    assert winner in set(offered_schedules(SUMS, H200))


def of_product(*ops: str, columns: int = 96, group: int = 32) -> Graph:
    """A product whose groups go through `ops` in turn."""
    b = GraphBuilder()
    value = reshaped(b, linear(b, tensor(b, (16, 32), "float32"), columns), 16, columns // group, group)
    for op in ops:
        if op == "rows":
            value = b.add("sum", value, axes=(0,))
        elif op == "quarter":
            value = b.add("roll", value, axis=2, shift=group // 4)
        elif op == "pairs":
            value = b.add("amax", reshaped(b, value, 16, columns // 2, 2), axes=(2,))
        else:
            value = b.add(op, value, axes=(2,))
    return b.build(value)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (of_product("rows"), "over the last axis"),
        (of_product("quarter"), "turned by half of its last axis"),
        (of_product("sum", columns=72, group=24), "24 of 72 columns are no group"),
        (of_product("sum", columns=1024, group=512), "512 of 1024 columns are no group"),
        (of_product("sum", columns=32), "32 of 32 columns are no group"),
        (scaled_rows(20, 130), "up to 128 values"),
    ],
    ids=["rows", "quarter", "no power", "wide", "whole row", "long rows"],
)
def test_what_no_tile_computes_is_declined(body: Graph, reason: str) -> None:
    assert reason in str(declined_because(Kernel("contraction", body)))


def test_groups_of_two_sizes_are_declined() -> None:
    b = GraphBuilder()
    product = linear(b, tensor(b, (16, 32), "float32"), 64)
    sums = [b.add("sum", reshaped(b, product, 16, 64 // g, g), axes=(2,)) for g in (8, 16)]
    assert "Groups of 8 and 16 columns" in str(declined_because(Kernel("contraction", b.build(*sums))))


def test_rows_that_are_not_those_of_the_product_are_declined() -> None:
    b = GraphBuilder()
    total = b.add("sum", tensor(b, (1, 8), "float32"), axes=(1,))
    body = b.build(b.add("mul", linear(b, tensor(b, (16, 32), "float32"), 48), total))
    assert "are not those of the matmul" in str(declined_because(Kernel("contraction", body)))


def test_a_result_that_needs_no_product_is_declined_beside_others() -> None:
    b = GraphBuilder()
    x, bias = tensor(b, (16, 32), "float32"), tensor(b, (16, 48), "float32")
    body = b.build(linear(b, x, 48), linear(b, x, 16), b.add("exp", bias))
    assert "needs none of the matmuls" in str(declined_because(Kernel("contraction", body)))


@pytest.mark.parametrize(
    ("subject", "changes"),
    [
        (QKV, {"BLOCK_M": 64, "BLOCK_N": 128, "LOADS": "descriptor", "NUM_WARPS": 4, "NUM_STAGES": 4}),
        (QKV, {"BLOCK_M": 128, "BLOCK_N": 128, "NUM_WARPS": 8, "NUM_STAGES": 3}),
        (QKV, {"BLOCK_M": 64, "BLOCK_N": 256, "NUM_WARPS": 8, "NUM_STAGES": 3}),
        (SUMS, {"BLOCK_M": 64, "BLOCK_N": 64, "LOADS": "descriptor", "NUM_WARPS": 4, "NUM_STAGES": 5}),
    ],
    ids=["heads", "heads of pointers", "two heads a tile", "sums"],
)
def test_tiles_stay_in_registers_and_loads_in_flight(
    subject: Kernel, changes: dict[str, KnobValue], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every product has its wgmma and its pipeline, and they take turns in shared memory."""
    schedule = contraction(**changes)
    built = build(subject, schedule, tmp_path, monkeypatch)
    values = schedule.as_dict()
    stage = (int(values["BLOCK_M"]) + int(values["BLOCK_N"])) * int(values["BLOCK_K"]) * 2
    assert built.build.spills == 0
    assert count(built, "wgmma.mma_async") >= render(subject, schedule).text.count("tl.dot(")
    assert count(built, "cp.async")
    assert 0 <= (built.build.shared_bytes or 0) - stage * int(values["NUM_STAGES"]) <= 64
