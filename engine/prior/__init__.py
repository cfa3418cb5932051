"""Prior: what latency to expect of a candidate nobody has measured. Arrays in, numbers out."""

from engine.prior.cold import ColdModel
from engine.prior.features import FeatureMatrix, features
from engine.prior.model import Prior
from engine.prior.scoring import OptionScorer, score_options

__all__ = ["ColdModel", "FeatureMatrix", "OptionScorer", "Prior", "features", "score_options"]
