"""Which schedule a kernel would be deployed with, and what says so.

The order of evidence: a pin that can be built, then a time in the deploy regime, then a ranking time, then what the
prior predicts among the legal schedules, then the first legal one. `choose` takes the first line of `explain` that can
be built, so the two can't disagree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from engine.codegen import illegal_because, offered_schedules
from engine.ir.kernel import Kernel
from engine.prior import Prior, features
from engine.store import Store
from engine.vocabulary import Measurement, Regime, Schedule, Target


class Source(StrEnum):
    """What decided, strongest first."""

    PIN = "pin"
    DEPLOY = "deploy measurement"
    RANKING = "ranking measurement"
    PRIOR = "prediction of the prior"
    FIRST = "first legal schedule"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line of an explanation. `us` is measured or, for the prior, predicted; None where nothing says.

    `illegal` is why a pin can't be built on this target; such a line decides nothing.
    """

    source: Source
    schedule: Schedule
    us: float | None
    illegal: str = ""


def explain(kernel: Kernel, store: Store, context_key: str, target: Target, prior: Prior) -> tuple[Evidence, ...]:
    """Every kind of evidence that the database and the prior hold for a kernel, strongest first.

    Empty only if the kernel has no legal schedule on `target`. Raises StoreError when the database can't be read.
    """
    lines = _pinned(kernel, store, context_key, target)
    for source, regime in ((Source.DEPLOY, Regime.DEPLOY), (Source.RANKING, Regime.RANKING)):
        best = store.best(kernel.key, context_key, regime)
        if best is not None and regime is Regime.DEPLOY:
            best = _finalist(best, kernel, store, context_key)
        if best is not None:
            lines.append(Evidence(source, best.schedule, best.us))
    schedules = list(offered_schedules(kernel, target))
    if schedules:
        predicted = prior.predict(features(kernel, [schedule.as_dict() for schedule in schedules], target))
        fastest = int(predicted.argmin())
        lines.append(Evidence(Source.PRIOR, schedules[fastest], math.exp(float(predicted[fastest]))))
        lines.append(Evidence(Source.FIRST, schedules[0], None))
    return tuple(lines)


def choose(kernel: Kernel, store: Store, context_key: str, target: Target, prior: Prior) -> Evidence | None:
    """The strongest evidence that can be built, or None when the kernel has no legal schedule."""
    lines = explain(kernel, store, context_key, target, prior)
    return next((line for line in lines if not line.illegal), None)


def _finalist(best: Measurement, kernel: Kernel, store: Store, context_key: str) -> Measurement:
    """The finalist that was chosen when the fastest were timed in turns, if the lowest time is one of theirs."""
    compared = store.compared(kernel.key, context_key)
    if compared is None or best.schedule.key not in compared.schedules:
        return best
    return store.deploy(kernel.key, Schedule.from_key(compared.chosen), context_key) or best


def _pinned(kernel: Kernel, store: Store, context_key: str, target: Target) -> list[Evidence]:
    """The pin in force for the kernel in this context, with its own measured time if there is one."""
    for stored in store.pins():
        if stored.pin.kernel_key == kernel.key and stored.context_key == context_key:
            schedule = stored.pin.schedule
            illegal = illegal_because(kernel, schedule, target) or ""
            measured = store.deploy(kernel.key, schedule, context_key) or store.ranking(
                kernel.key, schedule, context_key
            )
            return [Evidence(Source.PIN, schedule, measured.us if measured else None, illegal)]
    return []
