"""Which schedule a kernel would be deployed with, and what says so.

The order of evidence: a pin that can be built, then what won in the program's whole graph (`engine.deploy.in_place`
adds it), then, of the kernel alone, a time in the deploy regime, a ranking time, what the prior predicts among the
legal schedules, and the first legal one. The first line that can be built decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from engine.codegen import acf_of, illegal_because, offered_schedules
from engine.deploy.controls import ControlsHere, controls_unusable_because
from engine.deploy.pinning import in_place_of
from engine.events import Compared
from engine.ir.kernel import Kernel
from engine.prior import Prior, features
from engine.store import Store
from engine.vocabulary import Measurement, Regime, Schedule, Target


class Source(StrEnum):
    """What decided, strongest first."""

    PIN = "pin"
    IN_PLACE = "time in the whole graph"
    DEPLOY = "deploy measurement"
    RANKING = "ranking measurement"
    PRIOR = "prediction of the prior"
    FIRST = "first legal schedule"


PREDICTED = (Source.PRIOR, Source.FIRST)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line of an explanation. `us` is measured of the kernel alone or, for the prior, predicted; None where nothing
    says.

    `illegal` is why a schedule can't be built here: a pin on this target, or one whose ptxas controls can't be applied;
    such a line decides nothing.
    """

    source: Source
    schedule: Schedule
    us: float | None
    illegal: str = ""


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """One kernel of the grouping, `count` calls of it. `chosen` is None for a library's call, which has no schedule.

    `lines` are all that was looked at, strongest first; `runner_up` is the strongest of those that says another
    schedule, or the second fastest measured one.
    """

    kernel: Kernel
    count: int
    chosen: Evidence | None
    lines: tuple[Evidence, ...] = ()
    runner_up: Evidence | None = None

    @property
    def schedule(self) -> Schedule | None:
        return self.chosen.schedule if self.chosen else None

    @property
    def regime(self) -> Regime | None:
        """The regime of the time that decided; None for a prediction or a pin without a time."""
        return regime_of(self.chosen) if self.chosen else None


def regime_of(line: Evidence) -> Regime | None:
    """The regime of a line's time, of one in place that of the graph's; None for a pin and for a prediction."""
    known = {Source.IN_PLACE: Regime.DEPLOY, Source.DEPLOY: Regime.DEPLOY, Source.RANKING: Regime.RANKING}
    return known.get(line.source)


def recorded_lines(
    kernel: Kernel, store: Store, context_key: str, target: Target, controls: ControlsHere | None = None
) -> Iterator[Evidence]:
    """Every kind of evidence that the database holds for a kernel, strongest first. Raises StoreError when it can't be
    read.

    With `controls` a line whose ptxas controls can't be applied here says so; without, a measured one is believed.
    """
    yield from pin_lines(kernel, store, context_key, target, controls)
    yield from _measured(kernel, store, context_key, Source.DEPLOY, controls)
    yield from _measured(kernel, store, context_key, Source.RANKING, controls)


def predicted_lines(kernel: Kernel, target: Target, prior: Prior) -> Iterator[Evidence]:
    """What is there without a record, strongest first; predicting every legal schedule takes a while. There is none
    only if the kernel has no legal schedule on `target`."""
    # a kernel of another tool has no text here, so there is nothing to predict
    schedules = list(offered_schedules(kernel, target)) if kernel.foreign is None else []
    if schedules:
        predicted = prior.predict(features(kernel, [schedule.as_dict() for schedule in schedules], target))
        fastest = int(predicted.argmin())
        yield Evidence(Source.PRIOR, schedules[fastest], math.exp(float(predicted[fastest])))
        yield Evidence(Source.FIRST, schedules[0], None)


def fastest_deployed(kernel: Kernel, store: Store, context_key: str) -> Evidence | None:
    """What of a kernel alone deploys by its deploy times; None where it has none. Pins are no times."""
    return next(_measured(kernel, store, context_key, Source.DEPLOY, None), None)


def best_plain(kernel_key: str, store: Store, context_key: str, regime: Regime) -> Measurement | None:
    """What of a kernel alone is used without ptxas controls, by its times in a regime; None where it has none."""
    best = store.best_without_controls(kernel_key, context_key, regime)
    if best is None or regime is not Regime.DEPLOY:
        return best
    return _finalist(best, store.compared(kernel_key, context_key), store, context_key)


def _finalist(best: Measurement, compared: Compared | None, store: Store, context_key: str) -> Measurement:
    """The finalist that was chosen when the fastest were timed in turns, if the lowest time is one of theirs."""
    if compared is None or best.schedule.key not in compared.schedules:
        return best
    chosen = Schedule.from_key(compared.chosen)
    return best if acf_of(chosen) else store.deploy(best.kernel_key, chosen, context_key) or best


def _measured(
    kernel: Kernel, store: Store, context_key: str, source: Source, controls: ControlsHere | None
) -> Iterator[Evidence]:
    """The fastest of a regime. Controls decide only where a comparison in turns confirmed them, and only where they can
    be applied: else the fastest without them, as also where that is faster and took no part in the comparison."""
    regime = Regime.DEPLOY if source is Source.DEPLOY else Regime.RANKING
    compared = store.compared(kernel.key, context_key)
    plain = best_plain(kernel.key, store, context_key, regime)
    won = _confirmed(kernel, compared, store, context_key, regime)
    if compared is not None and won is not None and won.us is not None:
        known = plain is None or plain.us is None or plain.schedule.key in compared.schedules
        if known or plain is None or won.us <= (plain.us or 0.0):
            unusable = controls.unusable_because(won.schedule, store, context_key) if controls is not None else ""
            yield Evidence(source, won.schedule, won.us, unusable)
            if not unusable:
                return
    if plain is not None:
        yield Evidence(source, plain.schedule, plain.us)


def _confirmed(
    kernel: Kernel, compared: Compared | None, store: Store, context_key: str, regime: Regime
) -> Measurement | None:
    """The candidate with ptxas controls that won when the fastest were timed in turns, if one did."""
    chosen = Schedule.from_key(compared.chosen) if compared is not None else None
    if chosen is None or not acf_of(chosen):
        return None
    look = store.deploy if regime is Regime.DEPLOY else store.ranking
    return look(kernel.key, chosen, context_key)


def _unusable(schedule: Schedule, store: Store, context_key: str, controls: ControlsHere | None) -> str:
    if controls is None:
        return controls_unusable_because(schedule, store, context_key)
    return controls.unusable_because(schedule, store, context_key)


def pin_lines(
    kernel: Kernel, store: Store, context_key: str, target: Target, controls: ControlsHere | None = None
) -> list[Evidence]:
    """The pin in force for the kernel in this context, with its own measured time if there is one."""
    stored = in_place_of(store, kernel.key, context_key)
    if stored is None:
        return []
    schedule = stored.pin.schedule
    illegal = illegal_because(kernel, schedule, target) or _unusable(schedule, store, context_key, controls)
    return [Evidence(Source.PIN, schedule, us_alone(kernel.key, schedule, store, context_key), illegal)]


def us_alone(kernel_key: str, schedule: Schedule, store: Store, context_key: str) -> float | None:
    """The time of a schedule of the kernel alone, in us: in the deploy regime, else the ranking one."""
    found = store.deploy(kernel_key, schedule, context_key) or store.ranking(kernel_key, schedule, context_key)
    return found.us if found is not None else None
