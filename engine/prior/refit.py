"""From a reservoir to the prior that steers: fit, hold kernels out, keep the verdict with the model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from engine.prior.calibration import calibrate, decided
from engine.prior.checkpoint import FittedModel, paired
from engine.prior.cold import ColdModel
from engine.prior.learned import fit
from engine.prior.reservoir import Reservoir

ROWS_SUFFIX = ".prior.npz"
MODELS_SUFFIX = ".models.npz"


def rows_path(database: Path) -> Path:
    """Where the reservoir of a database is kept."""
    return database.with_name(database.name + ROWS_SUFFIX)


def models_path(database: Path) -> Path:
    """Where the models of a database are kept."""
    return database.with_name(database.name + MODELS_SUFFIX)


def refit(reservoir: Reservoir) -> FittedModel | None:
    """The model of the reservoir's rows, a correction of the cold one, and its calibration; None without a row."""
    cold = ColdModel()
    model = fit(reservoir.matrix, reservoir.log_us, reservoir.groups, cold)
    if model is None:
        return None
    calibration = calibrate(reservoir, cold)
    rows = decided(reservoir.matrix)
    predicted = calibration.predicted
    pairs = paired(reservoir.groups[rows], predicted[rows], reservoir.log_us[rows])
    groups = tuple(sorted(Counter(reservoir.groups.tolist()).items()))
    return FittedModel(model, calibration, pairs, groups)
