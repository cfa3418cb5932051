"""Rewritten programs on the GPU: whole plans with what they prepare are right, on fresh inputs too."""

from __future__ import annotations

import pytest

from engine.codegen import offered_schedules
from engine.grouping import grouping_space
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure import CudaDevice
from engine.vocabulary import Regime, Schedule, Status
from tests.codegen.attention_bodies import attention
from tests.grouping.rewritable import deep_matmul, norm_and_linears, norm_of_product

GRAPHS = {
    "norm": norm_and_linears(512, 1024, 3072),
    "norm of a product": norm_of_product(512, 1024),
    "deep": deep_matmul(200, 4096, 512),
    "deep in float16": deep_matmul(64, 2048, 1000, "float16"),
    "one token": attention(16, 1, 4096, 128, "bfloat16", group=2, tokens_first=False, joined=False),
    "four tokens": attention(32, 4, 2048, 64, "float16", group=4),
}
FIRST = "first answers"
CHANGES = {
    FIRST: (),
    "scaled": ("NORM_SCALE",),
    "scaled, sums with the rows": ("NORM_SCALE", "ROW_STATS"),
    "eighths": ("SPLIT_K",),
    "turned": ("WEIGHT_LAYOUT",),
    "keys split": ("SPLIT_KEYS",),
    "all": ("NORM_SCALE", "ROW_STATS", "SPLIT_K", "WEIGHT_LAYOUT"),
}


def plan_with(graph: Graph, knobs: tuple[str, ...]) -> Grouping:
    space = grouping_space(graph)
    path = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[-1 if fork.name.startswith(knobs) else 0])
    return space.grouping(path)


def working_schedule(device: CudaDevice, kernel: Kernel) -> Schedule:
    """The fastest of a few offered ones."""
    offered = list(offered_schedules(kernel, device.target))
    futures = [device.submit(kernel, s, Regime.RANKING) for s in offered[:: max(1, len(offered) // 10)][:10]]
    done = [future.result(timeout=300) for future in futures]
    good = [m for m in done if m.status is Status.OK]
    assert good, [str(m.failure) for m in done]
    return min(good, key=lambda m: m.us or 0.0).schedule


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", GRAPHS)
def test_a_rewritten_plan_is_right_and_timed(device: CudaDevice, name: str, change: str) -> None:
    graph = GRAPHS[name]
    plan = plan_with(graph, CHANGES[change])
    if change != FIRST and plan.decisions == plan_with(graph, ()).decisions:
        pytest.skip("the graph has no such rewrite")
    schedules = {key: working_schedule(device, kernel) for key, (kernel, _) in plan.kernel_counts().items()}
    result = device.assemble(plan, schedules, graph)
    assert result.timing is not None, str(result.failure)
    labels = [call.kernel.label for call in plan.calls]
    print(f"\n{name}, {change}: {result.timing.median_us:.2f} us, error {result.error:.1e}, {labels}")
