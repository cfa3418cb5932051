"""Prior: what latency to expect of a candidate nobody has measured. Arrays in, numbers out."""

from engine.prior.calibration import Calibration, calibrate
from engine.prior.cold import ColdModel
from engine.prior.features import FeatureMatrix, features
from engine.prior.learned import LearnedModel
from engine.prior.model import Prior
from engine.prior.reservoir import CheckpointError, Reservoir
from engine.prior.scoring import OptionScorer, score_options
from engine.prior.surrogate import Surrogate

__all__ = [
    "Calibration",
    "CheckpointError",
    "ColdModel",
    "FeatureMatrix",
    "LearnedModel",
    "OptionScorer",
    "Prior",
    "Reservoir",
    "Surrogate",
    "calibrate",
    "features",
    "score_options",
]
