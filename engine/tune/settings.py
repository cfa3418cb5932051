"""The choices of one run, fixed before it starts and recorded with it."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """`patience` counts a kernel's decided candidates since its last new best; `outer_patience` likewise groupings.

    `window` candidates are selected ahead, the same on every machine, so that results don't depend on core counts.
    `deploy_band` is the share above the best so far within which a candidate is measured again in the deploy regime.
    Groupings whose sum is at most `near_share` above the best one's are put together, at most `finalists` of them:
    isolated sums are off by that much, so they don't rank what lies closer.
    `limit` bounds a kernel's candidates whatever the patience says; None means no bound.
    `seed` picks one of many paths: 0 follows the prior as it is, another varies its opinions a little.
    `surrogate` lets a kernel's own measurements correct the prior while its search runs; `seed` then orders what the
    prior leaves open and grows the surrogate's forests.
    """

    patience: int = 50
    outer_patience: int = 4
    seed: int = 0
    window: int = 32
    limit: int | None = None
    deploy_band: float = 0.15
    exploration: float = math.sqrt(2)
    prior: str = "latest"
    jobs: int | None = None
    finalists: int = 4
    near_share: float = 0.10
    surrogate: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError with a sentence for a setting that can't work."""
        for name in ("patience", "outer_patience", "window", "finalists"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name.replace('_', ' ')} must be at least 1, not {getattr(self, name)}")
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit must be at least 1, not {self.limit}")
        if self.jobs is not None and self.jobs < 1:
            raise ValueError(f"jobs must be at least 1, not {self.jobs}")
