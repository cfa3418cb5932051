"""The choices of one run, fixed before it starts and recorded with it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum

from engine.vocabulary import Measurement

TIME_SCALE_US = 1000.0
"""Any scale will do: it keeps a time's share of a count below 1."""


class Objective(StrEnum):
    """What a kernel's search makes least of: its time, or what the compiler says of it and of equals the fastest."""

    TIME = "time"
    REGISTERS = "registers"
    SPILLS = "spills"

    def cost(self, measurement: Measurement) -> float | None:
        """Lower is better; None where the candidate failed or the compiler said nothing.

        A time is in us. Counts rise by a share below 1 that grows with the time, so that it decides between equals.
        """
        us, build = measurement.us, measurement.build
        if us is None or self is Objective.TIME:
            return us
        count = build.registers if self is Objective.REGISTERS else build.spills
        return None if count is None else 1.0 + count + us / (us + TIME_SCALE_US)

    def prefers(self, measurement: Measurement, other: Measurement | None) -> bool:
        """Whether a candidate is better than another one, or than none; never one without a cost."""
        cost = self.cost(measurement)
        known = None if other is None else self.cost(other)
        return cost is not None and (known is None or cost < known)


@dataclass(frozen=True, slots=True)
class CounterObjective:
    """A metric of NVIDIA's ncu, of which the least is wanted, or the most. The search goes by time, and the metric is
    read of the candidates near the fastest."""

    metric: str
    most: bool = False

    def cost(self, measurement: Measurement) -> float | None:
        """See `Objective.cost`: the time in us."""
        return measurement.us

    def prefers(self, measurement: Measurement, other: Measurement | None) -> bool:
        """See `Objective.prefers`."""
        return Objective.TIME.prefers(measurement, other)


_COUNTER = re.compile(r"ncu:(max:)?([A-Za-z]\w*(?:\.\w+)*)")


def objective_named(name: str) -> Objective | CounterObjective:
    """What `time`, `registers`, `spills`, `ncu:METRIC` and `ncu:max:METRIC` mean. Raises ValueError for other names."""
    found = _COUNTER.fullmatch(name)
    return CounterObjective(found[2], bool(found[1])) if found else Objective(name)


@dataclass(frozen=True, slots=True)
class Settings:
    """`patience` counts a kernel's decided candidates since its last new best; `outer_patience` likewise groupings.

    `window` candidates are selected ahead, the same on every machine, so that results don't depend on core counts.
    `deploy_band` is the share above the best so far within which a candidate is measured again in the deploy regime.
    Groupings whose sum is at most `near_share` above the best one's are put together, at most `finalists` of them:
    isolated sums are off by that much, so they don't rank what lies closer. In the fastest graph at most `in_place`
    runners-up of its kernels are tried in their places; 0 tries none.
    `limit` bounds a kernel's candidates whatever the patience says; None means no bound.
    `seed` picks one of many paths: 0 follows the prior as it is, another varies its opinions a little.
    `surrogate` lets a kernel's own measurements correct the prior while its search runs, as the command line and the
    screens ask; `seed` then orders what the prior leaves open and grows the surrogate's forests. `objective` is what
    a kernel's search makes least of. With `cold_l2` the GPU's L2 cache is flushed before each launch: those times are
    of a context of their own.
    """

    patience: int = 50
    outer_patience: int = 6
    seed: int = 0
    window: int = 32
    limit: int | None = None
    deploy_band: float = 0.15
    exploration: float = math.sqrt(2)
    prior: str = "auto"
    jobs: int | None = None
    finalists: int = 4
    in_place: int = 12
    near_share: float = 0.10
    surrogate: bool = False
    objective: Objective | CounterObjective = Objective.TIME
    cold_l2: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError with a sentence for a setting that can't work."""
        for name in ("patience", "outer_patience", "window", "finalists"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name.replace('_', ' ')} must be at least 1, not {getattr(self, name)}")
        if self.in_place < 0:
            raise ValueError(f"in place must be at least 0, not {self.in_place}")
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit must be at least 1, not {self.limit}")
        if self.jobs is not None and self.jobs < 1:
            raise ValueError(f"jobs must be at least 1, not {self.jobs}")
