"""A prior and a report on one that are always the same, whatever the product ships."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.deploy import PriorReport
from engine.deploy.prior_report import FamilyTrust, KernelTrust, PredictedPair, TrainedKernel
from engine.prior import ColdModel, FeatureMatrix, Ranking

_KERNELS = (
    ("k1", "matmul", "contraction", "512x512x512 float32", 60, 0.81, 0.55, 3),
    ("k2", "softmax", "rowwise", "16384x4096 bfloat16", 41, 0.31, 0.62, 17),
    ("k3", "add+gelu", "pointwise", "512x4096 bfloat16", 28, 0.74, 0.74, 1),
)


class StillModel(ColdModel):
    """Predicts 20 us whatever it is asked."""

    @property
    def version(self) -> str:
        return "still-1"

    def predict(self, matrix: FeatureMatrix) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.full(len(ColdModel().predict(matrix)), np.log(20.0))


class StillPrior:
    """What `steering` answers."""

    latest = StillModel()


def report(**changed: object) -> PriorReport:
    """A quarantined model over three kernels, with `changed` fields."""
    pairs = tuple(
        PredictedPair(key, family, 9.0 + n * 1.7, (9.0 + n * 1.7) * (1.0 + (n * 7 % 11 - 4) / 12))
        for key, _, family, *_ in _KERNELS
        for n in range(20)
    )
    trusts = tuple(
        KernelTrust(
            key,
            "c",
            label,
            family,
            shape,
            "NVIDIA H200",
            rows,
            Ranking(rank, place, (0.12, 0.01)),
            Ranking(cold, 9, (0.2, 0.03)),
        )
        for key, label, family, shape, rows, rank, cold, place in _KERNELS
    )
    values: dict[str, Any] = {
        "version": "cold-1",
        "learned": "learned-2-129",
        "trusted": False,
        "reason": "quarantined: below 0.5, rank correlation 0.31 on 3 held-out kernels",
        "spearman": 0.31,
        "cold_spearman": 0.64,
        "rows": 129,
        "kernels": trusts,
        "families": tuple(FamilyTrust(one.family, 1, 0.5, 3.0, 0.1, 0.01) for one in trusts),
        "pairs": pairs,
        "importance": (("BLOCK_M", 0.42), ("waves", 0.31), ("NUM_WARPS", 0.2), ("bytes", 0.07)),
        "trained_on": tuple(
            TrainedKernel(one.kernel, "c", one.label, one.family, one.shape, one.gpu, one.rows) for one in trusts
        ),
    }
    return PriorReport(**{**values, **changed})
