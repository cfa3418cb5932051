"""Which schedule a kernel would be deployed with, and what says so.

The order of evidence: a pin that can be built, then a time in the deploy regime, then a ranking time, then what the
prior predicts among the legal schedules, then the first legal one. `choose` takes the first line of `explain` that can
be built, so the two can't disagree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from engine.codegen import acf_of, illegal_because, offered_schedules
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


def evidence_lines(kernel: Kernel, store: Store, context_key: str, target: Target, prior: Prior) -> Iterator[Evidence]:
    """The lines of `explain`, each looked up when it is asked for: predicting every legal schedule takes a while."""
    yield from _pinned(kernel, store, context_key, target)
    for source, regime in ((Source.DEPLOY, Regime.DEPLOY), (Source.RANKING, Regime.RANKING)):
        best = store.best(kernel.key, context_key, regime)
        if best is not None and regime is Regime.DEPLOY:
            best = _finalist(best, kernel, store, context_key)
        if best is not None:
            yield Evidence(source, best.schedule, best.us)
    # a kernel of another tool has no text here, so there is nothing to predict
    schedules = list(offered_schedules(kernel, target)) if kernel.foreign is None else []
    if schedules:
        predicted = prior.predict(features(kernel, [schedule.as_dict() for schedule in schedules], target))
        fastest = int(predicted.argmin())
        yield Evidence(Source.PRIOR, schedules[fastest], math.exp(float(predicted[fastest])))
        yield Evidence(Source.FIRST, schedules[0], None)


def explain(kernel: Kernel, store: Store, context_key: str, target: Target, prior: Prior) -> tuple[Evidence, ...]:
    """Every kind of evidence that the database and the prior hold for a kernel, strongest first.

    Empty only if the kernel has no legal schedule on `target`. Raises StoreError when the database can't be read.
    """
    return tuple(evidence_lines(kernel, store, context_key, target, prior))


def choose(kernel: Kernel, store: Store, context_key: str, target: Target, prior: Prior) -> Evidence | None:
    """The strongest evidence that can be built, or None when the kernel has no legal schedule."""
    lines = evidence_lines(kernel, store, context_key, target, prior)
    return next((line for line in lines if not line.illegal), None)


def _finalist(best: Measurement, kernel: Kernel, store: Store, context_key: str) -> Measurement:
    """The finalist that was chosen when the fastest were timed in turns, if the lowest time is one of theirs."""
    compared = store.compared(kernel.key, context_key)
    if compared is None or best.schedule.key not in compared.schedules:
        return best
    return store.deploy(kernel.key, Schedule.from_key(compared.chosen), context_key) or best


def controls_unusable_because(schedule: Schedule, store: Store, context_key: str) -> str:
    """A sentence why the ptxas controls of a schedule can't be applied in a context, or "": asked before a build."""
    acf = acf_of(schedule)
    context = next((context for context in store.contexts() if context.key == context_key), None) if acf else None
    return (store.controls_unusable_because(acf, context) or "") if context is not None else ""


def _pinned(kernel: Kernel, store: Store, context_key: str, target: Target) -> list[Evidence]:
    """The pin in force for the kernel in this context, with its own measured time if there is one."""
    for stored in store.pins():
        if stored.pin.kernel_key == kernel.key and stored.context_key == context_key:
            schedule = stored.pin.schedule
            illegal = illegal_because(kernel, schedule, target) or controls_unusable_because(
                schedule, store, context_key
            )
            measured = store.deploy(kernel.key, schedule, context_key) or store.ranking(
                kernel.key, schedule, context_key
            )
            return [Evidence(Source.PIN, schedule, measured.us if measured else None, illegal)]
    return []
