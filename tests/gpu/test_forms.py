"""Other forms of a kernel's text on the GPU: rows without a dot, two tiles of queries, masks only where they cut,
tiles that TMA stores.

Each form is right, and its best time is printed beside the best of the plain form.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.codegen import offered_schedules
from engine.ir import Kernel
from engine.measure import CudaDevice
from engine.prior import ColdModel, features
from engine.vocabulary import FailureKind, Measurement, Regime, Schedule, Status
from tests.codegen.attention_bodies import attention, slices_of_keys
from tests.codegen.bodies import matmul
from tests.codegen.sibling_bodies import gate_up

CAUSAL = Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16", batch=4, causal=True, tokens_first=False))
KERNELS = {
    "token": Kernel("contraction", matmul(1, 4096, 1024, "bfloat16")),
    "token, weight turned": Kernel("contraction", matmul(1, 4096, 1024, "bfloat16", turn_right=True)),
    "four tokens": Kernel("contraction", matmul(4, 4096, 1024, "bfloat16", turn_right=True)),
    "gate and up of a token": Kernel("contraction", gate_up(1, 3072, 1024, "bfloat16")),
    "square": Kernel("contraction", matmul(4096, 4096, 4096, "bfloat16")),
    "square with an epilogue": Kernel(
        "contraction", matmul(4096, 4096, 1024, "bfloat16", turn_right=True, bias=True, activation="gelu")
    ),
    "causal": CAUSAL,
    "every key": Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16", batch=4, tokens_first=False)),
    "slices of keys": Kernel("attention", slices_of_keys(8, 16, 2, 256, 128, "bfloat16")),
}
FORMS: dict[str, Callable[[Schedule], bool]] = {
    "no dot": lambda s: int(s.as_dict().get("BLOCK_M", 0)) < 16,
    "roles": lambda s: s.as_dict().get("OVERLAP") == "specialized",
    "roles, walking": lambda s: s.as_dict().get("OVERLAP") == "persistent",
    "two tiles": lambda s: s.as_dict().get("QUERY_TILES") == 2,
    "cut": lambda s: s.as_dict().get("MASK") == "cut",
    "stored whole": lambda s: s.as_dict().get("STORES") == "whole",
    "halves": lambda s: s.as_dict().get("STORES") == "halves",
    "quarters": lambda s: s.as_dict().get("STORES") == "quarters",
}
EACH = 24
TOLD = {FailureKind.SHARED_MEMORY, FailureKind.REGISTERS}


def form_of(schedule: Schedule) -> str:
    return next((name for name, holds in FORMS.items() if holds(schedule)), "plain")


@pytest.mark.parametrize("name", KERNELS)
def test_every_form_is_right_and_timed(device: CudaDevice, name: str) -> None:
    kernel = KERNELS[name]
    offered = list(offered_schedules(kernel, device.target))
    predicted = ColdModel().predict(features(kernel, [s.as_dict() for s in offered], device.target))
    ranked = [offered[i] for i in predicted.argsort(kind="stable")]
    chosen = [s for form in (*FORMS, "plain") for s in [r for r in ranked if form_of(r) == form][:EACH]]
    futures = [device.submit(kernel, schedule, Regime.RANKING) for schedule in chosen]
    results = [future.result(timeout=300) for future in futures]
    assert [f"{r.schedule}: {r.failure}" for r in results if r.failure and r.failure.kind not in TOLD] == []
    print(f"\n{name}:")
    for form in sorted({form_of(s) for s in chosen}):
        best = fastest([r for r in results if form_of(r.schedule) == form])
        print(
            f"  {form:14} {best.us:8.2f} us, cold rank {ranked.index(best.schedule) + 1}, {best.build}, {best.schedule}"
        )


def fastest(results: list[Measurement]) -> Measurement:
    good = [r for r in results if r.status is Status.OK]
    assert good, [str(r.failure) for r in results]
    return min(good, key=lambda r: r.us or 0.0)
