"""What every prior offers: a version, and predicted times for rows of features."""

from __future__ import annotations

from typing import Protocol

from engine.prior.features import FeatureMatrix
from engine.prior.geometry import Column


class Prior(Protocol):
    """A model of latency. It is a value: it predicts the same for the same rows as long as it lives."""

    @property
    def version(self) -> str:
        """Names what was learned; a run records it, and equal versions predict equally."""
        ...

    def predict(self, matrix: FeatureMatrix) -> Column:
        """Natural logarithm of the time in us, one a row, finite for every row. NaN knobs are not decided yet."""
        ...

    def refit(self, matrix: FeatureMatrix, log_us: Column) -> Prior:
        """The prior that knows these rows: `log_us` is the best measured below each. It may return itself."""
        ...
