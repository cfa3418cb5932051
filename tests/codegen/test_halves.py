"""A tile of one group that is turned by half: written as its halves, without an exchange of columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.codegen import render
from engine.ir import Kernel
from engine.vocabulary import KnobValue
from tests.codegen.epilogue_bodies import partial_sums, projections
from tests.codegen.half_bodies import HALVES, layer
from tests.codegen.test_compiles import build, count
from tests.codegen.test_golden import contraction

QKV = Kernel("contraction", projections(512, 1024, 128, (16, 8, 8), "bfloat16"))
LAYER = Kernel("contraction", layer(512, 1024, 128, (16, 8, 8), 32))
SMALL = {"BLOCK_M": 16, "BLOCK_K": 16, "GROUP_M": 1, "NUM_WARPS": 2, "NUM_STAGES": 2}
TILES: dict[str, dict[str, KnobValue]] = {
    "64x128": {"BLOCK_M": 64, "BLOCK_N": 128, "LOADS": "descriptor", "NUM_WARPS": 4, "NUM_STAGES": 4},
    "128x128": {"BLOCK_M": 128, "BLOCK_N": 128, "LOADS": "descriptor", "NUM_WARPS": 8, "NUM_STAGES": 3},
}


def epilogue(subject: Kernel, **changes: KnobValue) -> list[str]:
    """The lines of the first product behind its main loop."""
    lines = render(subject, contraction(**changes)).text.split("\n")
    first = next((i for i, line in enumerate(lines) if line.startswith("def product0")), 0)
    start = next(i for i, line in enumerate(lines) if i >= first and line.startswith("    low = "))
    return lines[start : lines.index("", start)]


def test_only_a_tile_of_one_group_that_is_turned_is_halved() -> None:
    assert "half_roll" not in render(QKV, contraction(BLOCK_M=64, BLOCK_N=128)).text
    two = render(QKV, contraction(BLOCK_M=64, BLOCK_N=256)).text
    assert "half_roll(" in two
    assert "    low = " not in two
    sums = render(Kernel("contraction", partial_sums()), contraction(**SMALL, BLOCK_N=32)).text
    assert "tl.split(" not in sums


def test_each_turned_product_is_cut_once_and_stored_in_halves() -> None:
    text = render(QKV, contraction(BLOCK_M=64, BLOCK_N=128)).text
    assert [text.count(f"tl.store(out{number} ") for number in range(3)] == [2, 2, 1]
    assert text.count("tl.split(") == 2
    assert "tl.join(" not in text
    assert "tl.where(" not in text


def test_the_sum_of_a_row_is_one_of_the_whole_tile() -> None:
    lines = epilogue(LAYER, BLOCK_M=64, BLOCK_N=128)
    cut = next(i for i, line in enumerate(lines) if "tl.split(" in line)
    sums = [i for i, line in enumerate(lines) if "tl.sum(" in line]
    assert len(sums) == 2
    assert max(sums) < cut


def test_loads_stand_in_front_unless_they_crowd_the_registers() -> None:
    lines = epilogue(QKV, BLOCK_M=64, BLOCK_N=128, NUM_WARPS=4)
    loads = [i for i, line in enumerate(lines) if "tl.load(" in line]
    assert loads == list(range(2, 8))
    crowded = epilogue(QKV, BLOCK_M=128, BLOCK_N=128, NUM_WARPS=4)
    cut = next(i for i, line in enumerate(crowded) if "tl.split(" in line)
    assert any("tl.load(" in line for line in crowded[cut:])


def test_masks_that_a_half_decides_are_not_written() -> None:
    lines = epilogue(Kernel("contraction", HALVES["halves_with_masks"]()), BLOCK_N=32, **SMALL)
    assert [line for line in lines if "tl.where(" in line] == ["    v22 = tl.where(v14, v19, acc_low)"]
    assert not any("lane" in line for line in lines)


def test_reductions_that_need_the_columns_put_the_halves_together() -> None:
    lines = epilogue(Kernel("contraction", HALVES["halves_with_largest"]()), BLOCK_N=32, **SMALL)
    assert sum("tl.reduce(maximum_nan(" in line for line in lines) == 2
    assert sum("tl.store(out2 " in line for line in lines) == sum("tl.store(out3 " in line for line in lines) == 1


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("subject", [QKV, LAYER], ids=["projections", "layer"])
def test_a_product_goes_through_shared_memory_once(
    subject: Kernel, tile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the three results once, from the layout of wgmma to rows in pieces of 16 bytes; beside them a column of
    row scales each."""
    built = build(subject, contraction(**TILES[tile]), tmp_path, monkeypatch)
    moved = [line for line in built.kernel.asm["ttgir"].split("\n") if "ttg.convert_layout" in line]
    assert sum("x1xf32" not in line for line in moved) == 3
    assert len(moved) <= 6
    assert built.build.spills == 0
    assert (built.build.registers or 0) <= 176
    assert count(built, r"st\.global") == 24
