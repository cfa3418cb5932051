"""What each knob of a kernel was worth: the regret of a wrong value, and which knobs have to be chosen together.

A value's regret is what it costs at best: the fastest candidate measured with that value over the fastest of all.
Two knobs interact where the value of one that is best overall is a bad one under some values of the other: the regret
of a pair is what one loses, on average over the other's values, by keeping to it. Only measured candidates count, so a
value that was hardly tried may look worse than it is; the counts say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from statistics import fmean

from engine.knobs import KNOB_ORDER
from engine.store import Store
from engine.vocabulary import KnobValue, Schedule

Times = Mapping[Schedule, float]


@dataclass(frozen=True, slots=True)
class ValueRegret:
    """`best_us` is the fastest with this value, `regret` its share above the fastest of all, `tried` how many."""

    value: KnobValue
    best_us: float
    regret: float
    tried: int


@dataclass(frozen=True, slots=True)
class KnobRegret:
    """A knob with its values, the best first. `mean` is the regret of a value picked blindly, `worst` of the worst."""

    knob: str
    values: tuple[ValueRegret, ...]

    @property
    def mean(self) -> float:
        return fmean(value.regret for value in self.values)

    @property
    def worst(self) -> float:
        return self.values[-1].regret


@dataclass(frozen=True, slots=True)
class KnobPair:
    """What keeping to the best value of `knob` loses, on average over the values of `other`."""

    knob: str
    other: str
    regret: float


@dataclass(frozen=True, slots=True)
class KnobReport:
    """One kernel in one context, its knobs and pairs by falling regret; a knob with a single value is left out."""

    kernel: str
    context: str
    label: str
    family: str
    shape: str
    gpu: str
    timed: int
    best_us: float
    knobs: tuple[KnobRegret, ...]
    pairs: tuple[KnobPair, ...]


def knob_reports(store: Store, kernel_text: str = "") -> Iterator[KnobReport]:
    """Of each kernel that was timed and whose name, family, shape or key has the text. Raises StoreError."""
    for found in store.variants(kernel_text, 0):
        times = store.timed(found.kernel, found.context)
        if times:
            yield KnobReport(
                *(found.kernel, found.context, found.label, found.family, found.shape, found.gpu),
                timed=len(times),
                best_us=min(times.values()),
                knobs=knob_regrets(times),
                pairs=knob_pairs(times),
            )


def knob_regrets(times: Times) -> tuple[KnobRegret, ...]:
    """Each knob that was tried with several values."""
    best = min(times.values())
    found = []
    for knob in _knobs(times):
        fastest: dict[KnobValue, list[float]] = {}
        for schedule, us in times.items():
            if knob in schedule.as_dict():
                fastest.setdefault(schedule.as_dict()[knob], []).append(us)
        if len(fastest) > 1:
            values = [ValueRegret(value, min(us), min(us) / best - 1, len(us)) for value, us in fastest.items()]
            found.append(KnobRegret(knob, tuple(sorted(values, key=lambda value: (value.best_us, str(value.value))))))
    return tuple(sorted(found, key=lambda knob: (-knob.mean, knob.knob)))


def knob_pairs(times: Times) -> tuple[KnobPair, ...]:
    """Pairs with a regret above 0."""
    rows = [(schedule.as_dict(), us) for schedule, us in times.items()]
    leading = {regret.knob: regret.values[0].value for regret in knob_regrets(times)}
    found = []
    for knob, other in permutations(leading, 2):
        cells: dict[KnobValue, dict[KnobValue, float]] = {}
        for knobs, us in rows:
            if knob in knobs and other in knobs:
                cell = cells.setdefault(knobs[other], {})
                cell[knobs[knob]] = min(us, cell.get(knobs[knob], us))
        kept = [cell[leading[knob]] / min(cell.values()) - 1 for cell in cells.values() if leading[knob] in cell]
        if kept and fmean(kept) > 0:
            found.append(KnobPair(knob, other, fmean(kept)))
    return tuple(sorted(found, key=lambda pair: (-pair.regret, pair.knob, pair.other)))


def _knobs(times: Times) -> list[str]:
    named = {name for schedule in times for name in schedule.as_dict()}
    return sorted(named, key=lambda name: (KNOB_ORDER.get(name, len(KNOB_ORDER)), name))
