"""Prior: what latency to expect of a candidate nobody has measured. Arrays in, numbers out."""

from engine.prior.calibration import Ranking, calibrate, ranking
from engine.prior.checkpoint import FittedModel, load_models, save_models
from engine.prior.cold import ColdModel
from engine.prior.features import COLUMNS, FeatureMatrix, features
from engine.prior.forest import load_libraries
from engine.prior.learned import LearnedModel, fit
from engine.prior.model import Prior
from engine.prior.refit import models_path, refit, rows_path
from engine.prior.reservoir import CheckpointError, Reservoir
from engine.prior.scoring import UNBUILDABLE_US, OptionScorer, score_options
from engine.prior.steering import Steering, kept_rows, shipped_rows, steering
from engine.prior.surrogate import Surrogate
from engine.prior.training import FASTEST, OTHERS, group_name, training_rows

__all__ = [
    "COLUMNS",
    "FASTEST",
    "OTHERS",
    "UNBUILDABLE_US",
    "CheckpointError",
    "ColdModel",
    "FeatureMatrix",
    "FittedModel",
    "LearnedModel",
    "OptionScorer",
    "Prior",
    "Ranking",
    "Reservoir",
    "Steering",
    "Surrogate",
    "calibrate",
    "features",
    "fit",
    "group_name",
    "kept_rows",
    "load_libraries",
    "load_models",
    "models_path",
    "ranking",
    "refit",
    "rows_path",
    "save_models",
    "score_options",
    "shipped_rows",
    "steering",
    "training_rows",
]
