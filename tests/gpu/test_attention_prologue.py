"""Attention that norms and rotates its own queries and keys: right on the GPU, and timed beside the kernels apart."""

from __future__ import annotations

import pytest

from engine.grouping import grouping_space
from engine.ir import Graph
from engine.ir.plan import Grouping
from engine.measure import CudaDevice
from engine.vocabulary import Option, Regime, Status
from tests.codegen.attention_prologue_bodies import Heads
from tests.gpu.test_families import TOLD, measure_all, spread

CASES = {
    "layer of 32": Heads(16, 32, 32, 128, "bfloat16", group=2),
    "layer of 128": Heads(16, 128, 128, 128, "bfloat16", group=2),
    "layer of 256": Heads(16, 256, 256, 128, "bfloat16", group=2),
    "queries of 512": Heads(16, 512, 512, 128, "bfloat16", group=2, also_keys=False),
    "window": Heads(8, 200, 200, 80, "float16", window=50),
    "added mask": Heads(8, 100, 120, 64, "float32", group=8, causal=False, added=True),
}
CANDIDATES = 24


def grouped(graph: Graph, answer: str) -> Grouping:
    """The first option everywhere, and `answer` for what the attention kernel computes itself."""
    space = grouping_space(graph)
    path: tuple[Option, ...] = ()
    while (fork := space.fork(path)) is not None:
        asked = fork.name.startswith("FUSE_ATTENTION_PROLOGUE")
        wanted = [option for option in fork.options if option.knobs[0][1] == answer] if asked else fork.options
        path = (*path, wanted[0])
    return space.grouping(path)


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_candidate_is_right_inside_and_before(name: str, device: CudaDevice) -> None:
    for answer in ("fused", "apart"):
        times = []
        for kernel, count in grouped(CASES[name].body(), answer).kernel_counts().values():
            results = measure_all(device, kernel, spread(kernel, device, CANDIDATES), Regime.RANKING)
            assert [f"{r.schedule}: {r.failure}" for r in results if r.failure and r.failure.kind not in TOLD] == []
            best = min((r for r in results if r.status is Status.OK), key=lambda r: r.us or 0)
            times.append((best.us or 0.0) * count)
            print(
                f"\n{name}, {answer}: {kernel.label} {best.us:.2f} us, error {best.error:.1e}, {best.schedule}", end=""
            )
        print(f"\n{name}, {answer}: {sum(times):.2f} us in {len(times)} kernels")
