"""What the prior says of rows that were measured, so that both stand side by side. Asked on the desk's thread."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from engine.ir.kernel import Kernel
from engine.prior import Prior, features, steering
from engine.store import Candidate, Store, StoreError
from engine.vocabulary import Target

LOG = logging.getLogger("emmy_tui")


def time_beside(row: Candidate) -> float | None:
    """The measured us that a prediction stands beside: those of the ranking regime where there are any, as that is what
    the prior predicts."""
    return row.us if row.us is not None else row.deploy_us


class Predictions:
    """Keeps the prior and the kernels of the rows that were asked for; after `forget` they are read anew."""

    def __init__(self) -> None:
        self._prior: Prior | None = None
        self._of: Path | None = None
        self._kernels: dict[tuple[str, str], tuple[Kernel, Target] | None] = {}

    def forget(self) -> None:
        self._prior = None
        self._kernels.clear()

    def version(self, store: Store) -> str:
        """Which prior predicts."""
        return self._prior_of(store).version

    def of(self, store: Store, rows: Iterable[Candidate]) -> dict[int, float]:
        """Predicted us by the rows' numbers; rows whose kernel has no text here are left out."""
        found: dict[int, float] = {}
        ordered = sorted(rows, key=lambda row: (row.kernel, row.context))
        for (kernel, context), group in groupby(ordered, key=lambda row: (row.kernel, row.context)):
            found |= self._of_kernel(store, kernel, context, list(group))
        return found

    def _of_kernel(self, store: Store, kernel: str, context: str, rows: list[Candidate]) -> dict[int, float]:
        known = self._known(store, kernel, context)
        if known is None:
            return {}
        try:
            columns = features(known[0], [row.schedule for row in rows], known[1])
            predicted = self._prior_of(store).predict(columns).tolist()
        except Exception:  # a body or a schedule from elsewhere may be odd in any way; the row is shown without
            LOG.warning("kernel %s can't be predicted", kernel, exc_info=True)
            self._kernels[(kernel, context)] = None
            return {}
        return {row.number: math.exp(log_us) for row, log_us in zip(rows, predicted, strict=True)}

    def _prior_of(self, store: Store) -> Prior:
        prior = self._prior
        if prior is None or self._of != store.path:
            prior = steering(store.path).latest
            self._prior, self._of = prior, store.path
        return prior

    def _known(self, store: Store, kernel: str, context: str) -> tuple[Kernel, Target] | None:
        place = (kernel, context)
        if place in self._kernels:
            return self._kernels.get(place)
        try:
            body = store.kernel(kernel)
            known = (body, store.target(context)) if body.foreign is None else None
        except (StoreError, ValueError):
            known = None
        self._kernels[place] = known
        return known
