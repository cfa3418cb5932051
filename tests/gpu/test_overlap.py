"""Attention whose warps have roles on the GPU: right, the same bits in ten launches, and timed in turns with the best
plain kernel of the same shape and with cuDNN's.

Each case prints one line a kernel: us, and the ratio to the plain one and to cuDNN (below 1 is faster).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from engine.codegen import offered_schedules, render
from engine.ir import Kernel
from engine.measure import CudaDevice
from engine.prior import ColdModel, features
from engine.runtime import (
    TimingPlan,
    bind_launch,
    compile_source,
    empty_buffer,
    evaluate,
    make_inputs,
    probe_us,
    time_in_turns,
)
from engine.vocabulary import Regime, Schedule, Status, Target
from tests.codegen.attention_bodies import attention

PLAN = TimingPlan(window_ms=2.0, windows=15, warmup_ms=50.0)
PLAIN = 24
"""Plain schedules of which the best is compared with: the first that the cold model names."""
LAUNCHES = 10


@dataclass(frozen=True, slots=True)
class Shape:
    """Queries [B, H, S, D] against keys of H / group heads."""

    batch: int
    heads: int
    keys: int
    head: int
    causal: bool
    group: int = 1
    dtype: str = "bfloat16"

    def kernel(self) -> Kernel:
        shape = (self.heads, self.keys, self.keys, self.head, self.dtype)
        body = attention(
            *shape,
            batch=self.batch,
            group=self.group,
            causal=self.causal,
            tokens_first=False,
            joined=False,
            scale=self.head**-0.5,
        )
        return Kernel("attention", body)


SHAPES = {
    "causal": Shape(4, 16, 2048, 128, True),
    "full": Shape(4, 16, 2048, 128, False),
    "causal, heads of 64": Shape(4, 16, 2048, 64, True),
    "full, heads of 64": Shape(4, 16, 2048, 64, False),
    "causal, 8 heads of keys": Shape(4, 16, 2048, 128, True, group=2),
    "causal, 2 heads of keys, float16": Shape(2, 16, 4096, 128, True, group=8, dtype="float16"),
    "causal, one wave": Shape(1, 16, 1024, 128, True, group=2),
}


@pytest.mark.parametrize("name", SHAPES)
def test_roles_are_right_the_same_each_time_and_timed(device: CudaDevice, name: str, tmp_path: Path) -> None:
    shape = SHAPES[name]
    kernel, target = shape.kernel(), device.target
    if target.capability != 90 or not target.gluon:
        pytest.skip("it is written for compute capability 9.0 and the Gluon of Triton 3.6")
    offered = list(offered_schedules(kernel, target))
    roles = [s for s in offered if s["OVERLAP"] != "none"]
    predicted = ColdModel().predict(features(kernel, [s.as_dict() for s in offered], target))
    ranked = [offered[i] for i in predicted.argsort(kind="stable")]
    plain = [s for s in ranked if s["OVERLAP"] == "none"][:PLAIN]
    futures = [device.submit(kernel, schedule, Regime.RANKING) for schedule in (*roles, *plain)]
    results = [future.result(timeout=300) for future in futures]
    assert [f"{r.schedule}: {r.failure}" for r in results[: len(roles)] if r.failure] == []
    good = [r for r in results if r.status is Status.OK]
    best_plain = min((r for r in good if r.schedule["OVERLAP"] == "none"), key=lambda r: r.us or 0.0)
    chosen = [best_plain.schedule, *roles]
    inputs = make_inputs(kernel.body.input_specs(), 0, "cuda")
    launches = {str(s): _launch(kernel, s, target, tmp_path, inputs) for s in chosen}
    launches["cuDNN"] = _cudnn(shape, inputs)
    ordered = list(launches.values())
    for launch in ordered:
        launch()
    torch.cuda.synchronize()
    samples = time_in_turns(ordered, PLAN, [probe_us(launch) for launch in ordered], 0)
    times = dict(zip(launches, (median(of_one) for of_one in samples), strict=True))
    print(f"\n{name} {shape}:")
    for text, us in sorted(times.items(), key=lambda one: one[1]):
        rank = next((f"cold rank {i + 1}" for i, s in enumerate(ranked) if str(s) == text), "")
        ratios = f"{us / times[str(chosen[0])]:.3f} of plain, {us / times['cuDNN']:.3f} of cuDNN"
        print(f"  {us:8.2f} us, {ratios}  {text} {rank}")
    best = min(us for text, us in times.items() if text in map(str, roles))
    if name in ("causal", "full"):
        assert best < times[str(chosen[0])]


def _launch(
    kernel: Kernel, schedule: Schedule, target: Target, folder: Path, inputs: list[torch.Tensor]
) -> Callable[[], None]:
    """A launch whose result is that of eager, and the same bits each time."""
    (spec,) = kernel.body.output_specs()
    output = empty_buffer(spec, "cuda")
    launch = bind_launch(compile_source(render(kernel, schedule, target), target, folder), inputs, [output])
    first = None
    for _ in range(LAUNCHES):
        output.fill_(float("nan"))
        launch()
        torch.cuda.synchronize()
        first = output.clone() if first is None else first
        assert torch.equal(first, output), f"{schedule} gives other bits"
    (eager,) = evaluate(kernel.body, inputs, dtype=None)
    (exact,) = evaluate(kernel.body, inputs, dtype=torch.float32)
    error = ((output.float() - exact).norm() / exact.norm()).item()
    allowed = 2 * ((eager.float() - exact).norm() / exact.norm()).item() + 1e-3
    assert error <= allowed, f"{schedule} is off by {error:.2e}, allowed {allowed:.2e}"
    return launch


def _cudnn(shape: Shape, inputs: list[torch.Tensor]) -> Callable[[], None]:
    kept = (shape.batch, shape.heads // shape.group, shape.keys, shape.head)
    query = inputs[0].as_strided(
        (shape.batch, shape.heads, shape.keys, shape.head),
        (shape.heads * shape.keys * shape.head, shape.keys * shape.head, shape.head, 1),
    )
    steps = (kept[1] * shape.keys * shape.head, shape.keys * shape.head, shape.head, 1)
    key, value = (tensor.as_strided(kept, steps) for tensor in inputs[1:3])

    def launch() -> None:
        with torch.no_grad(), sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            torch.nn.functional.scaled_dot_product_attention(
                query, key, value, is_causal=shape.causal, enable_gqa=shape.group > 1
            )

    return launch
