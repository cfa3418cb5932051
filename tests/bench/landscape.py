"""A recorded kernel as a landscape that a strategy walks, and the ledger that counts what the walk cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.deploy import database_rows
from engine.ir import Kernel
from engine.prior import ColdModel, FeatureMatrix, LearnedModel, Reservoir, features, fit
from engine.prior.columns import KnobTable
from engine.store import Store
from engine.vocabulary import KnobValue

GOALS = (10, 5, 2, 1)
"""Per cent above the best recorded time."""
SPENT_AT = (50, 100, 200)
"""Evaluations after which the regret is looked at."""


@dataclass(frozen=True, eq=False)
class Landscape:
    """`us` is NaN where the candidate failed; `predicted` (ln us) is the cold model's, None for a foreign kernel.

    `learned` is that of a prior trained on the other recorded kernels only.
    """

    name: str
    candidates: tuple[dict[str, KnobValue], ...]
    us: NDArray[np.float64]
    predicted: NDArray[np.float64] | None = None
    learned: NDArray[np.float64] | None = None
    table: KnobTable = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", KnobTable(self.candidates))

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def best(self) -> float:
        return float(np.nanmin(self.us))

    def within(self, percent: float) -> int:
        return int((self.us <= self.best * (1 + percent / 100)).sum())

    def neighbours(self, index: int, distance: int = 1) -> NDArray[np.int64]:
        """Recorded candidates that differ in exactly so many knobs."""
        codes = self.table.codes
        return np.flatnonzero((codes != codes[index]).sum(axis=1) == distance)


class Spent(Exception):
    """The run is over: the budget is used up, or nothing that is reported can change."""


class Ledger:
    """Counts configurations seen for the first time, failed ones included; repeats are free."""

    def __init__(self, landscape: Landscape, budget: int) -> None:
        self.landscape = landscape
        self.budget = min(budget, len(landscape))
        self.order: list[int] = []
        self.best_us = math.inf
        self.curve: list[float] = []
        self._seen: set[int] = set()

    def measure(self, index: int) -> float | None:
        """The recorded time in us, or None for a failure. Raises Spent."""
        index = int(index)
        us = float(self.landscape.us[index])
        if index not in self._seen:
            if self.over:
                raise Spent
            self._seen.add(index)
            self.order.append(index)
            self.best_us = min(self.best_us, us) if us == us else self.best_us
            self.curve.append(self.best_us)
        return None if math.isnan(us) else us

    def seen(self, index: int) -> bool:
        return int(index) in self._seen

    @property
    def over(self) -> bool:
        spent, best = len(self.order), self.landscape.best
        settled = self.best_us <= best or (self.best_us <= best * (1 + GOALS[-1] / 100) and spent >= SPENT_AT[-1])
        return spent >= self.budget or settled

    def spent_to(self, percent: float) -> int | None:
        """Evaluations until within so many per cent of the best; None if the run never got there."""
        bound = self.landscape.best * (1 + percent / 100)
        return next((place for place, us in enumerate(self.curve, start=1) if us <= bound), None)

    def regret(self, spent: int) -> float:
        """Per cent above the best after so many evaluations, or at the run's end if that came first."""
        us = self.curve[min(spent, len(self.curve)) - 1] if self.curve else math.inf
        return 100 * (us / self.landscape.best - 1)


def landscapes(store: Store, text: str, least: int, *, learned: bool = False) -> Iterator[Landscape]:
    """Every recorded kernel and context with at least `least` candidates whose name, family or shape has `text`."""
    reservoir = database_rows(store) if learned else None
    for found in store.variants(text, 1):
        if found.ok + found.failed >= least and found.ok:
            kernel = store.kernel(found.kernel)
            name = f"{found.label} {found.shape}, {found.gpu}"
            yield recorded_landscape(store, name, kernel, found.context, reservoir)


def recorded_landscape(
    store: Store, name: str, kernel: Kernel, context: str, reservoir: Reservoir | None = None
) -> Landscape:
    """`reservoir` holds all kernels; this one's rows are left out of what is learned for it."""
    schedules = sorted(store.schedules(kernel.key, context), key=lambda schedule: schedule.key)
    rows = [store.ranking(kernel.key, schedule, context) for schedule in schedules]
    us = np.array([row.us if row is not None and row.us is not None else math.nan for row in rows])
    candidates = tuple(schedule.as_dict() for schedule in schedules)
    if kernel.foreign is not None:
        return Landscape(name, candidates, us)
    matrix = features(kernel, candidates, store.target(context))
    model = None if reservoir is None else without(reservoir, kernel.key)
    return Landscape(
        name, candidates, us, ColdModel().predict(matrix), None if model is None else model.predict(matrix)
    )


def without(reservoir: Reservoir, kernel_key: str) -> LearnedModel | None:
    """The model of every kernel but one; None where that leaves nothing."""
    others = np.array([not str(group).startswith(f"{kernel_key}@") for group in reservoir.groups], dtype=np.bool_)
    values = FeatureMatrix(reservoir.matrix.values[others], reservoir.names)
    return fit(values, reservoir.log_us[others], reservoir.groups[others], ColdModel())
