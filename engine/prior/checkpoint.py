"""The models that runs were steered by, in a file beside the database: a run repeats its path under its very model.

The newest models are kept, oldest first, each with what its calibration found on held-out kernels, so that a screen can
show how far to trust it without fitting anything. The file is npz with JSON inside and no pickled object: opening
someone's file must not run code. The rows that the models were fitted to are the reservoir's, in a file of their own,
so that a damaged model file loses no row.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.prior.calibration import Calibration, HeldOut, Ranking
from engine.prior.cold import ColdModel
from engine.prior.learned import LearnedModel
from engine.prior.model import Prior
from engine.prior.reservoir import DAMAGE, CheckpointError, cant_be_written
from engine.prior.trees import ARRAYS, Trees
from engine.regular_file import open_regular

FORMAT = "emmy-models-1"
KEPT = 8
PAIRS = 4_000
"""Held-out predictions kept with a model; of more, evenly spread ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Held-out predictions beside what was measured: `predicted` and `measured` are ln us, `groups` kernel@context."""

    groups: NDArray[np.str_]
    predicted: NDArray[np.float64]
    measured: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.groups)


@dataclass(frozen=True, slots=True, eq=False)
class FittedModel:
    """A learned model with the verdict on it. `groups` counts the rows of each kernel and context it was fitted to."""

    model: LearnedModel
    calibration: Calibration
    pairs: Pairs
    groups: tuple[tuple[str, int], ...]

    @property
    def steering(self) -> Prior:
        """What answers: the learned model if it is trusted, else the cold one."""
        return self.model if self.calibration.trusted else (self.model.cold or ColdModel())


def save_models(path: Path, models: Sequence[FittedModel]) -> None:
    """The newest KEPT of `models` (oldest first), whole or not at all. Raises CheckpointError."""
    arrays: dict[str, Any] = {}
    about = []
    for place, fitted in enumerate(models[-KEPT:]):
        about.append(_described(fitted))
        trees = fitted.model.trees
        stored = trees.arrays() if trees is not None else {}
        arrays |= {f"{place} {name}": array for name, array in stored.items()}
        pairs = fitted.pairs
        arrays |= {f"{place} groups": pairs.groups, f"{place} predicted": pairs.predicted.astype(np.float32)}
        arrays[f"{place} measured"] = pairs.measured.astype(np.float32)
    arrays |= {"format": np.array(FORMAT), "about": np.array(json.dumps(about))}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                np.savez_compressed(file, **arrays)
            os.replace(part, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part)
    except OSError as error:
        raise cant_be_written(f"the file of the prior's models {path}", error) from error


def load_models(path: Path) -> tuple[FittedModel, ...]:
    """Oldest first; none if there is no such file. Raises CheckpointError: damaged, another program's or version's."""
    try:
        with open_regular(path) as file, np.load(file, allow_pickle=False) as stored:
            if not isinstance(stored, np.lib.npyio.NpzFile) or not {"format", "about"} <= set(stored.files):
                raise CheckpointError(f"{path} holds no models of a prior")
            if str(stored["format"]) != FORMAT:
                raise CheckpointError(f"the prior's models {path} were written by another version of Emmy")
            about = json.loads(str(stored["about"]))
            return tuple(_restored(place, one, stored) for place, one in enumerate(about))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise CheckpointError(f"the prior's models {path} can't be read: {error.strerror or error}") from None
    except (*DAMAGE, TypeError, IndexError, AttributeError, OverflowError, RecursionError):
        raise CheckpointError(f"the prior's models {path} are damaged") from None


def paired(groups: NDArray[np.str_], predicted: NDArray[np.float64], measured: NDArray[np.float64]) -> Pairs:
    """The rows that have a prediction, at most PAIRS of them."""
    rows = np.flatnonzero(np.isfinite(predicted))
    if len(rows) > PAIRS:
        rows = rows[np.linspace(0, len(rows) - 1, PAIRS).astype(np.int64)]
    return Pairs(groups[rows], predicted[rows], measured[rows])


def _described(fitted: FittedModel) -> dict[str, object]:
    model, found = fitted.model, fitted.calibration
    return {
        "names": model.names,
        "mean": model.mean,
        "rows": model.rows,
        "digest": model.digest,
        "base": None if model.trees is None else model.trees.base,
        "cold": None if model.cold is None else _cold_text(model.cold),
        "spearman": found.spearman,
        "cold_spearman": found.cold_spearman,
        "kernels": found.kernels,
        "reason": found.reason,
        "held_out": [asdict(one) for one in found.held_out],
        "groups": fitted.groups,
    }


def _restored(place: int, about: dict[str, Any], stored: Any) -> FittedModel:
    """Raises CheckpointError for a model that corrects another cold model than this version's."""
    cold = ColdModel()
    if about["cold"] not in (None, _cold_text(cold)):
        raise CheckpointError("the prior's models correct another version's cold model")
    names = tuple(str(name) for name in about["names"])
    trees = None
    if about["base"] is not None:
        arrays = {name: stored[f"{place} {name}"] for name in ARRAYS}
        trees = Trees.from_arrays(len(names), float(about["base"]), arrays)
    mean = float(about["mean"])
    if not np.isfinite(mean):
        raise ValueError("a mean is not finite")
    model = LearnedModel(
        names, mean, int(about["rows"]), str(about["digest"]), trees, None if about["cold"] is None else cold
    )
    calibration = Calibration(
        _number(about["spearman"]),
        int(about["kernels"]),
        str(about["reason"]),
        _number(about["cold_spearman"]),
        tuple(_held_out(one) for one in about["held_out"]),
    )
    pairs = Pairs(
        stored[f"{place} groups"].astype(np.str_),
        stored[f"{place} predicted"].astype(np.float64),
        stored[f"{place} measured"].astype(np.float64),
    )
    return FittedModel(model, calibration, pairs, tuple((str(name), int(count)) for name, count in about["groups"]))


def _held_out(about: dict[str, Any]) -> HeldOut:
    cold = about["cold"]
    return HeldOut(
        str(about["group"]), int(about["rows"]), _ranking(about["learned"]), None if cold is None else _ranking(cold)
    )


def _ranking(about: dict[str, Any]) -> Ranking:
    regrets = tuple(float(regret) for regret in about["regrets"])
    return Ranking(float(about["spearman"]), int(about["winner_rank"]), regrets)


def _number(value: object) -> float | None:
    return None if value is None else float(str(value))


def _cold_text(cold: ColdModel) -> str:
    """Names the cold model with its constants: a correction fits no other."""
    return f"{cold.version} {cold.constants}"
