"""Which prior steers: the newest model that was learned beside a database, else the one that ships, else the cold one.

The shipped model was fitted to `prior_rows.npz` in `engine/data`: a sample of twelve kernels recorded on an H200. On
those kernels, each steered by the other eleven, it needs about half the measurements of the cold model to come within
5 % (`tests/bench/search.py`), and it corrects the cold model, so that on another chip the cold model's view remains.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.data import SHIPPED_PRIOR_MODELS, SHIPPED_PRIOR_ROWS
from engine.knobs import KNOBS
from engine.prior.checkpoint import FittedModel, load_models
from engine.prior.cold import ColdModel
from engine.prior.features import COLUMNS, knob_code
from engine.prior.model import Prior
from engine.prior.refit import models_path, rows_path
from engine.prior.reservoir import CheckpointError, Reservoir, aligned


@dataclass(frozen=True, slots=True)
class Steering:
    """The models kept for a database, oldest first (a shipped one before the learned); `problem` is a sentence.

    `own` says that the newest was fitted beside the database.
    """

    models: tuple[FittedModel, ...]
    problem: str = ""
    own: bool = False

    @property
    def latest(self) -> Prior:
        """The newest model, or the cold one where that is quarantined or there is none."""
        return self.models[-1].steering if self.models else ColdModel()

    @property
    def reason(self) -> str:
        """Why `latest` is what it is."""
        return self.models[-1].calibration.reason if self.models else "nothing learned yet: the cold model answers"

    def version(self, version: str) -> Prior | None:
        """The prior of that version, if it is kept."""
        if version == ColdModel().version:
            return ColdModel()
        return next((one.model for one in self.models if one.model.version == version), None)


def steering(database: Path, *, shipped: bool = True) -> Steering:
    """What is kept beside the database, and with `shipped` what this install brings. A spoiled file is a `problem`."""
    models: tuple[FittedModel, ...] = ()
    problem, own = "", False
    for path in (*((SHIPPED_PRIOR_MODELS,) if shipped else ()), models_path(database)):
        try:
            found = load_models(path)
            models, own = (*models, *found), bool(found) and path != SHIPPED_PRIOR_MODELS
        except CheckpointError as error:
            problem = f"{error}: {'the model that ships' if models else 'the cold model'} answers"
    return Steering(models, problem, own)


def kept_rows(database: Path) -> tuple[Reservoir | None, str]:
    """The reservoir beside the database, and "" or a sentence on what happened to the file.

    None where there is none yet. A spoiled file is moved aside, never overwritten.
    """
    path = rows_path(database)
    if not path.exists():
        return None, ""
    try:
        return _current(Reservoir.load(path), path), ""
    except CheckpointError as error:
        aside = path.with_name(f"{path.name}.spoiled")
        try:
            path.replace(aside)
        except OSError:
            return None, f"{error}; the rows are taken from the database again"
        return None, f"{error}; it is kept as {aside.name}, and the rows are taken from the database again"


def _current(kept: Reservoir, path: Path) -> Reservoir:
    """The rows in this version's columns; a knob that their version didn't have was off. Raises CheckpointError."""
    if kept.names == COLUMNS:
        return kept
    missing = set(COLUMNS) - set(kept.names)
    if not missing <= set(KNOBS):
        raise CheckpointError(f"{path} was written by another version of Emmy")
    values = aligned(kept.matrix, COLUMNS)
    for name in missing:
        values[:, COLUMNS.index(name)] = knob_code(KNOBS[name], KNOBS[name].off)
    return kept.with_columns(COLUMNS, values)


def shipped_rows() -> Reservoir | None:
    """The rows that ship with the product; None if this install has none, or another version's."""
    try:
        return _current(Reservoir.load(SHIPPED_PRIOR_ROWS), SHIPPED_PRIOR_ROWS)
    except CheckpointError:
        return None
