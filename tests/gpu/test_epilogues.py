"""Products side by side, groups of columns and row sums on the GPU: every kind of tile is right."""

from __future__ import annotations

import random

import pytest

from engine.codegen import illegal_because, offered_schedules
from engine.ir import Kernel
from engine.measure import CudaDevice
from engine.vocabulary import Regime, Status
from tests.codegen.epilogue_bodies import EPILOGUES, partial_sums, projections, scaled_rows
from tests.codegen.half_bodies import HALVES, layer
from tests.codegen.test_golden import contraction

LARGE = {
    "projections of 512": lambda: projections(512, 1024, 128, (16, 8, 8), "bfloat16"),
    "projections of 32": lambda: projections(32, 1024, 128, (16, 8, 8), "bfloat16"),
    "projections of 500 in float32": lambda: projections(500, 300, 64, (5, 3, 2), "float32"),
    "layer of 512": lambda: layer(512, 1024, 128, (16, 8, 8), 32),
    "layer of 500 in float16": lambda: layer(500, 1024, 64, (8, 4, 4), 32, "float16"),
    "partial sums": lambda: partial_sums(512, 1024, depth=2048),
    "scaled rows": lambda: scaled_rows(512, 32),
}
SCHEDULES = 24


@pytest.mark.parametrize("name", [*LARGE, *EPILOGUES, *HALVES])
def test_a_sample_of_schedules_is_right(device: CudaDevice, name: str) -> None:
    kernel = Kernel("contraction", (LARGE | EPILOGUES | HALVES)[name]())
    offered = list(offered_schedules(kernel, device.target))
    chosen = random.Random(name).sample(offered, min(SCHEDULES, len(offered)))
    futures = [device.submit(kernel, schedule, Regime.RANKING) for schedule in chosen]
    results = [future.result(timeout=300) for future in futures]
    assert [(str(m.schedule), str(m.failure)) for m in results if m.status is not Status.OK] == []


def test_the_hand_made_tile_of_the_projections_is_right(device: CudaDevice) -> None:
    """64 x 128 tiles and descriptors, which took 9.3 us by hand on an H200."""
    kernel = Kernel("contraction", LARGE["projections of 512"]())
    schedule = contraction(BLOCK_M=64, BLOCK_N=128, LOADS="descriptor", NUM_WARPS=4, NUM_STAGES=4)
    assert illegal_because(kernel, schedule, device.target) is None
    measured = device.submit(kernel, schedule, Regime.RANKING).result(timeout=300)
    assert measured.status is Status.OK, str(measured.failure)
    print(f"projections of 512 tokens: {measured.us} us")
