"""Whether a learned prior may be trusted: does it rank the candidates of kernels that it has not seen?

Kernels are held out whole, since two schedules of one kernel tell each other's time, and so are the same kernel's rows
of several GPUs. Spearman's rank correlation is taken within each held-out kernel and averaged. Below 0.5, below the
cold model's own, or where nothing can be measured, the model is quarantined and the cold model answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.knobs import KNOBS
from engine.prior.cold import ColdModel
from engine.prior.features import FeatureMatrix
from engine.prior.geometry import Column
from engine.prior.learned import fit
from engine.prior.reservoir import Reservoir

TRUSTED = 0.5
FOLDS = 5
MOST_ROWS = 15_000
"""Rows that a fold is fitted to, evenly spread over all: a full reservoir must not take five times as long again."""
LEAST_ROWS = 5
"""Rows of a kernel below which a rank correlation says nothing."""
AT = (1, 10)
"""Candidates, best predicted first, after which the regret is looked at."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """How well a model orders one kernel's measured candidates.

    `winner_rank` is the place of the fastest (from 1); `regrets` say by which share the best of the first 1 and 10 is
    slower than the fastest.
    """

    spearman: float
    winner_rank: int
    regrets: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class HeldOut:
    """One group of rows (`group`: kernel and context) ranked by a model that saw no row of its kernel."""

    group: str
    rows: int
    learned: Ranking
    cold: Ranking | None = None


@dataclass(frozen=True, slots=True)
class Calibration:
    """`spearman` is the mean over `kernels` held-out kernels, None if unmeasurable; `reason` is for people.

    `predicted` has a held-out ln us for each row of the reservoir, NaN where there is none.
    """

    spearman: float | None
    kernels: int
    reason: str
    cold_spearman: float | None = None
    held_out: tuple[HeldOut, ...] = ()
    predicted: Column = field(default_factory=lambda: np.empty(0), compare=False, repr=False)

    @property
    def trusted(self) -> bool:
        if self.spearman is None or self.spearman < TRUSTED:
            return False
        return self.cold_spearman is None or self.spearman >= self.cold_spearman


def calibrate(reservoir: Reservoir, cold: ColdModel | None = None) -> Calibration:
    """Fit on all kernels but a fold of them, rank that fold, and so on for each fold; deterministic.

    With a `cold` model the fitted ones correct it, and have to rank at least as well as it does.
    """
    kernels = np.array([str(group).partition("@")[0] for group in reservoir.groups], dtype=np.str_)
    names = sorted(set(kernels.tolist()))
    predicted = np.full(len(reservoir), np.nan)
    if len(names) < 2:
        return Calibration(None, 0, "quarantined: with fewer than two kernels, none can be held out")
    for fold in range(min(FOLDS, len(names))):
        held = np.isin(kernels, names[fold::FOLDS])
        others = np.flatnonzero(~held)
        others = others[:: -(-len(others) // MOST_ROWS) or 1]
        model = fit(_rows(reservoir, others), reservoir.log_us[others], reservoir.groups[others], cold)
        if model is not None:
            predicted[held] = model.predict(_rows(reservoir, held))
    before = None if cold is None else cold.predict(reservoir.matrix)
    found = tuple(_held_out(reservoir, predicted, before))
    if not found:
        reason = f"quarantined: no kernel has {LEAST_ROWS} candidates that can be ranked"
        return Calibration(None, 0, reason, predicted=predicted)
    mean = float(np.mean([one.learned.spearman for one in found]))
    known = [one.cold.spearman for one in found if one.cold is not None]
    other = float(np.mean(known)) if known else None
    return Calibration(mean, len(found), _verdict(mean, other, len(found)), other, found, predicted)


def _verdict(mean: float, cold: float | None, kernels: int) -> str:
    measured = f"rank correlation {mean:.2f} on {kernels} held-out kernels"
    if mean < TRUSTED:
        return f"quarantined: below {TRUSTED:g}, {measured}"
    if cold is not None and mean < cold:
        return f"quarantined: the cold model ranks better ({cold:.2f}), {measured}"
    return f"trusted, {measured}"


def _held_out(reservoir: Reservoir, predicted: Column, cold: Column | None) -> list[HeldOut]:
    whole = decided(reservoir.matrix)
    found = []
    for group in sorted(set(reservoir.groups.tolist())):
        rows = np.flatnonzero((reservoir.groups == group) & whole & np.isfinite(predicted))
        log_us = reservoir.log_us[rows]
        learned = ranking(predicted[rows], log_us)
        if learned is not None:
            other = None if cold is None else ranking(cold[rows], log_us)
            found.append(HeldOut(group, len(rows), learned, other))
    return found


def ranking(predicted: Column, log_us: Column) -> Ranking | None:
    """Of one kernel's rows; None for fewer than LEAST_ROWS rows or equal times."""
    rank = spearman(predicted, log_us)
    if rank is None or len(log_us) < LEAST_ROWS:
        return None
    ordered = log_us[np.argsort(predicted, kind="stable")]
    best = float(ordered.min())
    regrets = tuple(math.expm1(float(ordered[:count].min()) - best) for count in AT)
    return Ranking(rank, int(ordered.argmin()) + 1, regrets)


def decided(matrix: FeatureMatrix) -> NDArray[np.bool_]:
    """Which rows are finished schedules: no knob of them is open."""
    knobs: Sequence[int] = [place for place, name in enumerate(matrix.names) if name in KNOBS]
    return np.array(np.isnan(matrix.values[:, knobs]).sum(axis=1) == 0, dtype=np.bool_)


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


def _rows(reservoir: Reservoir, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> FeatureMatrix:
    return FeatureMatrix(reservoir.matrix.values[chosen], reservoir.names)
