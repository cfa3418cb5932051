from __future__ import annotations

import math

import numpy as np
import pytest

from engine.ir import Kernel
from engine.knobs import KNOBS
from engine.prior import features
from engine.prior.cold import ColdModel
from engine.prior.features import knob_code
from engine.prior.geometry import GEOMETRY
from engine.vocabulary import KnobValue, Target
from tests.codegen.epilogue_bodies import projections
from tests.prior.kernels import matmul, silu_mul, softmax

TILE: dict[str, KnobValue] = {
    **{"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "PRECISION": "ieee", "LOADS": "descriptor"},
    **{"GROUP_M": 8, "PERSISTENT": False, "NUM_WARPS": 8, "NUM_STAGES": 3},
}


def row(kernel: object, schedule: dict[str, KnobValue]) -> dict[str, float]:
    matrix = features(kernel, [schedule], Target())  # type: ignore[arg-type]
    return dict(zip(matrix.names, matrix.values[0].tolist(), strict=True))


def test_a_row_holds_kernel_chip_knobs_and_geometry() -> None:
    f = row(matmul(4096, 4096, 4096, bias=True), TILE)
    assert (f["batch"], f["rows"], f["columns"], f["depth"]) == (1, 4096, 4096, 4096)
    assert (f["contractions"], f["reductions"], f["pointwise_ops"]) == (1, 0, 2)
    assert (f["left_width"], f["right_width"], f["output_width"], f["inputs"]) == (2, 2, 2, 3)
    assert f["flops"] > 2 * 4096**3
    assert f["multiprocessors"] == 132
    assert (f["BLOCK_N"], f["LOADS"], f["PERSISTENT"]) == (256, 1, 0)


def test_geometry_of_the_best_known_tile() -> None:
    """ptxas and the driver report for it: 154 registers, 147,480 bytes, one program a multiprocessor."""
    f = row(matmul(4096, 4096, 4096), TILE)
    assert f["programs"] == 512
    assert f["shared_bytes"] == 147_456
    assert f["registers"] == pytest.approx(154, abs=20)
    assert f["resident"] == 1
    assert f["waves"] == 4
    assert f["wave_fill"] == pytest.approx(512 / (4 * 132))
    assert (f["steps"], f["padding"], f["tensor_core"]) == (64, 1, 2)
    assert f["reuse"] == pytest.approx(128 * 256 / 384)


def test_programs_that_share_a_multiprocessor_make_one_wave() -> None:
    """384 programs of 72 KiB fit three to a multiprocessor in one wave; a stage more, and they need two."""
    kernel = matmul(512, 6144, 1024)
    tile = {**TILE, "BLOCK_M": 64, "BLOCK_N": 128, "NUM_WARPS": 4}
    assert [row(kernel, {**tile, "NUM_STAGES": s})["waves"] for s in (3, 4)] == [1, 2]


def test_edges_are_padding() -> None:
    f = row(matmul(1, 4096, 100), {**TILE, "BLOCK_M": 16})
    assert f["padding"] == pytest.approx(16 * 128 / 100)
    assert f["tensor_core"] == 1


def test_rowwise_and_pointwise_geometry() -> None:
    f = row(
        softmax(16384, 4096),
        {"ROWS": 2, "COLUMNS": 1024, "EVICTION": "evict_last", "NUM_WARPS": 4, "NUM_STAGES": 2, "PERSISTENT": False},
    )
    assert (f["rows"], f["columns"], f["reductions"]) == (16384, 4096, 2)
    assert (f["programs"], f["steps"], f["elements_per_thread"], f["EVICTION"]) == (8192, 4, 16, 2)
    f = row(silu_mul(512, 3072), {"BLOCK": 1024, "EVICTION": "", "NUM_WARPS": 8})
    assert (f["columns"], f["programs"], f["elements_per_thread"], f["vector_bytes"]) == (512 * 3072, 1536, 4, 8)


def test_a_knob_is_nan_while_it_is_open_and_off_where_it_does_not_matter() -> None:
    f = row(matmul(512, 512, 512), {name: value for name, value in TILE.items() if name != "BLOCK_N"})
    assert math.isnan(f["BLOCK_N"])
    assert math.isnan(f["tile_area"])
    assert math.isnan(f["waves"])
    assert f["steps"] == 8
    assert (f["ROWS"], f["BLOCK"], f["EVICTION"]) == (0, 0, 0)
    assert row(softmax(64, 64), {"BLOCK_M": 64})["BLOCK_M"] == 0


@pytest.mark.parametrize("kernel", [matmul(512, 512, 512, batch=3), softmax(512, 512), silu_mul(64, 64)])
def test_nothing_decided_leaves_only_the_kernel_and_the_chip(kernel: object) -> None:
    matrix = features(kernel, [{}], Target())  # type: ignore[arg-type]
    known = [n for n, v in zip(matrix.names, matrix.values[0], strict=True) if not math.isnan(v) and n not in KNOBS]
    assert not set(known) & {"tile_area", "programs", "registers", "resident", "waves", "threads"}
    assert np.isfinite(matrix.column("flops")).all()


def test_names_are_unique_and_the_same_for_every_kernel() -> None:
    names = {features(k, [], Target()).names for k in (matmul(64, 64, 64), softmax(64, 64), silu_mul(64, 64))}
    assert len(names) == 1
    (columns,) = names
    assert len(columns) == len(set(columns))
    assert set(KNOBS) | set(GEOMETRY) <= set(columns)


def test_codes_of_knob_values() -> None:
    assert [knob_code(KNOBS["PRECISION"], v) for v in ("ieee", "tf32x3", "tf32", "fp8")] == [0, 1, 2, 3]
    assert knob_code(KNOBS["PERSISTENT"], True) == 1
    assert knob_code(KNOBS["BLOCK_M"], 48) == 48
    assert math.isnan(knob_code(KNOBS["BLOCK_M"], None))


def test_products_side_by_side_are_one_product_as_wide_as_all() -> None:
    body = projections(512, 1024, 128, (16, 8, 8), "bfloat16")
    f = row(Kernel("contraction", body), {**TILE, "BLOCK_M": 64, "BLOCK_N": 128})
    assert (f["rows"], f["columns"], f["depth"]) == (512, 4096, 1024)
    assert (f["contractions"], f["reductions"]) == (1, 0)
    assert f["programs"] == 8 * 32
    assert f["shared_bytes"] == 3 * 64 * (64 + 128) * 2
    assert np.isfinite(ColdModel().predict(features(Kernel("contraction", body), [TILE], Target()))).all()
