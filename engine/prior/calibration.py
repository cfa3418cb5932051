"""Whether a learned prior may be trusted: does it rank the candidates of kernels that it has not seen?

Kernels are held out whole, since two schedules of one kernel tell each other's time. Spearman's rank correlation is
taken within each held-out kernel and averaged; below 0.5, or where nothing can be measured, the model is quarantined
and the cold model answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from engine.prior.features import FeatureMatrix
from engine.prior.geometry import Column
from engine.prior.learned import fit
from engine.prior.reservoir import Reservoir

TRUSTED = 0.5
FOLDS = 5
LEAST_ROWS = 5
"""Rows of a kernel below which a rank correlation says nothing."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """`spearman` is the mean over `kernels` held-out kernels, None if unmeasurable; `reason` is for people."""

    spearman: float | None
    kernels: int
    reason: str

    @property
    def trusted(self) -> bool:
        return self.spearman is not None and self.spearman >= TRUSTED


def calibrate(reservoir: Reservoir) -> Calibration:
    """Fit on all kernels but a fold of them, rank that fold, and so on for each fold; deterministic."""
    groups = sorted({str(group) for group in reservoir.groups})
    if len(groups) < 2:
        return Calibration(None, 0, "quarantined: with fewer than two kernels, none can be held out")
    found: list[float] = []
    for fold in range(min(FOLDS, len(groups))):
        held = np.isin(reservoir.groups, groups[fold::FOLDS])
        model = fit(_rows(reservoir, ~held), reservoir.log_us[~held])
        if model is None:
            continue
        predicted = model.predict(_rows(reservoir, held))
        for group in groups[fold::FOLDS]:
            rows = reservoir.groups[held] == group
            rank = spearman(predicted[rows], reservoir.log_us[held][rows])
            if rows.sum() >= LEAST_ROWS and rank is not None:
                found.append(rank)
    if not found:
        return Calibration(None, 0, f"quarantined: no kernel has {LEAST_ROWS} candidates that can be ranked")
    mean = float(np.mean(found))
    verdict = "trusted" if mean >= TRUSTED else f"quarantined: below {TRUSTED:g}"
    return Calibration(mean, len(found), f"{verdict}, rank correlation {mean:.2f} on {len(found)} held-out kernels")


def spearman(left: Column, right: Column) -> float | None:
    """Rank correlation with ties at their mean rank; None for fewer than two rows or constant labels (`right`).

    A model that predicts the same for all ranks nothing: 0.
    """
    if len(left) < 2 or np.ptp(right) == 0:
        return None
    if np.ptp(left) == 0:
        return 0.0
    value = float(np.corrcoef(_ranks(left), _ranks(right))[0, 1])
    return value if math.isfinite(value) else None


def _ranks(values: Column) -> Column:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Column = (ends - (counts - 1) / 2)[place]
    return ranks


def _rows(reservoir: Reservoir, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> FeatureMatrix:
    return FeatureMatrix(reservoir.matrix.values[chosen], reservoir.names)
