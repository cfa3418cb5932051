"""What a program would run as now: one grouping, a schedule for each of its kernels, and what decided each of them.

`forks` decides the grouping, `evidence` the kernels; where a machine's results were taken with several ptxas, the
contexts are decided one by one and compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from engine.codegen import declined_because, illegal_because, is_generated
from engine.deploy.controls import ControlsHere
from engine.deploy.evidence import (
    PREDICTED,
    Evidence,
    KernelChoice,
    Source,
    pin_lines,
    predicted_lines,
    recorded_lines,
    regime_of,
)
from engine.deploy.forks import ForkChoice, ForkSource, FoundGrouping, grouping_candidates
from engine.deploy.in_place import RecordedGraph, chosen_in_place, graph_of_run
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping, Program
from engine.measure import Controls
from engine.prior import Prior
from engine.store import Store
from engine.vocabulary import Regime, Schedule, Target

_BY_STRENGTH = {Regime.DEPLOY: Source.DEPLOY, Regime.RANKING: Source.RANKING}


class DeploymentError(ValueError):
    """Nothing can be deployed; the text is one sentence for a person."""


class NoEvidenceError(DeploymentError):
    """Only a prediction would decide, and predictions were refused."""


class UnfollowedPinError(DeploymentError):
    """A pin can't be built, and passing it over would be a silent fallback; the text says why, and what to do."""


class PinnedControlsError(UnfollowedPinError):
    """A pin names ptxas controls that can't be applied here."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """The chosen grouping with a schedule a kernel. `us` is its time as one graph of exactly these schedules, None
    where no such graph was measured; `sum_us` is that of its kernels, None where one of them has no time.

    With `pdl` its kernels are launched with programmatic dependent launch, which made the recorded graph faster.
    `controls` are the ptxas and the files to build with, None for Triton's own; `notes` say what is left out of them.
    `alone_us` is the time of the same graph with each kernel's own best schedule, None where no kernel has another.
    """

    grouping: Grouping
    kernels: tuple[KernelChoice, ...]
    forks: tuple[ForkChoice, ...]
    context_key: str
    target: Target
    pdl: bool = False
    us: float | None = None
    sum_us: float | None = None
    controls: Controls | None = None
    notes: tuple[str, ...] = ()
    alone_us: float | None = None

    @property
    def schedules(self) -> dict[str, Schedule]:
        """Schedules by structural key, of all kernels that have a text of their own."""
        return {item.kernel.key: item.chosen.schedule for item in self.kernels if item.chosen is not None}

    @property
    def untimed(self) -> list[str]:
        """Names of the kernels whose schedule was never measured in this context."""
        return [kernel_name(k.kernel) for k in self.kernels if k.chosen is not None and not _is_timed(k.chosen)]

    @property
    def predicted(self) -> list[str]:
        """Names of the forks and kernels that no measurement and no pin decides."""
        forks = [item.fork for item in self.forks if item.source is ForkSource.PRIOR]
        kernels = [kernel_name(k.kernel) for k in self.kernels if k.chosen and k.chosen.source in PREDICTED]
        return forks + kernels


def deployment(
    subject: Program | Grouping,
    store: Store,
    context_key: str,
    target: Target,
    prior: Prior,
    *,
    strict: bool = False,
    pins: bool = True,
    controls: ControlsHere | None = None,
    refuse_illegal_pins: bool = True,
) -> Deployment:
    """What `subject` would run as in this context on this chip: of a program the best grouping, of a grouping itself.

    With `controls` what was learned on this machine with a ptxas of its own counts too: what more pins, then more
    measurements, then a shorter time speak for is chosen. Controls that can't be applied here are left out and `notes`
    say so; without `controls` nobody asks whether they can.

    Raises NoEvidenceError if `strict` and something would be decided by a prediction, UnfollowedPinError for a pin that
    can't be built, PinnedControlsError for one whose ptxas controls can't be applied, DeploymentError for a kernel that
    can't be built, and StoreError for a database that can't be read. `pins` False decides as if none were there; with
    `refuse_illegal_pins` False an illegal pin decides nothing, and the kernel's lines say why.
    """
    places = {context_key: store.context(context_key)}
    for context in controls.contexts(store, context_key) if controls is not None else ():
        if not strict or (controls is not None and controls.usable(context)):
            places[context.key] = context
    decided = [
        _decided(found, store, key, target, prior, pins=pins, controls=controls)
        for key, found in grouping_candidates(subject, store, list(places), target, prior).items()
    ]
    usable = {key: controls is None or controls.usable(context) for key, context in places.items()}
    chosen = _preferred(decided, usable)
    if controls is not None:
        if pins:
            _refuse_pins(chosen, store, list(places), controls)
        built = controls.controls(chosen.schedules.values(), store, places[chosen.context_key])
        chosen = replace(chosen, controls=built, notes=_notes(decided))
    if pins and refuse_illegal_pins:
        _refuse_illegal_pins(chosen, store, list(places))
    if strict and chosen.predicted:
        raise NoEvidenceError(
            f"no measurement and no pin decides {_listed(chosen.predicted)}: tune the program in this context, or allow"
            " predictions"
        )
    return chosen


def _decided(
    found: FoundGrouping,
    store: Store,
    context_key: str,
    target: Target,
    prior: Prior,
    *,
    pins: bool,
    controls: ControlsHere | None,
) -> Deployment:
    kernels = tuple(
        kernel_choice(kernel, count, store, context_key, target, prior, pins=pins, controls=controls)
        for kernel, count in found.grouping.kernel_counts().values()
    )
    graph = RecordedGraph(found.row, found.schedules, found.us, found.pdl, found.known_until)
    kernels, alone_us = chosen_in_place(graph, kernels, store, context_key, target, controls)
    us, same = _graph_us(found, kernels, store, context_key)
    sum_us = _sum_us(kernels, found.sum_us if same else None)
    return Deployment(
        *(found.grouping, kernels, found.forks, context_key, target, found.pdl, us, sum_us), alone_us=alone_us
    )


def _graph_us(
    found: FoundGrouping, kernels: Sequence[KernelChoice], store: Store, context_key: str
) -> tuple[float | None, bool]:
    """The time of the graph with the chosen schedules, and whether those are the ones that the grouping was recorded
    with. A recording that doesn't name them is believed for all but pins."""
    schedules = {item.kernel.key: item.chosen.schedule for item in kernels if item.chosen is not None}
    pinned = any(item.chosen is not None and item.chosen.source is Source.PIN for item in kernels)
    if found.schedules:
        same = all(found.schedules.get(key) == schedule for key, schedule in schedules.items())
    else:
        same = not pinned
    if same or found.us is None:
        return found.us, same
    measured = store.assembled(found.row or found.grouping, context_key, schedules, pdl=found.pdl)
    return (measured.timing.median_us if measured is not None and measured.timing is not None else None), False


def _preferred(decided: Sequence[Deployment], usable: Mapping[str, bool]) -> Deployment:
    """The one that more pins, then fewer predictions, then the right ptxas, then a shorter time speak for."""
    whole = all(one.us is not None for one in decided)

    def rank(one: Deployment) -> tuple[int, int, bool, float]:
        pinned = sum(item.chosen is not None and item.chosen.source is Source.PIN for item in one.kernels)
        us = one.us if whole else one.sum_us
        return -pinned, len(one.predicted), not usable[one.context_key], us if us is not None else math.inf

    return min(decided, key=rank)


def _refuse_pins(chosen: Deployment, store: Store, places: Sequence[str], controls: ControlsHere) -> None:
    """Raises PinnedControlsError for a kernel whose only pin has controls that can't be applied."""
    for kernel, key, line in _passed_over_pins(chosen, store, places):
        reason = controls.unusable_because(line.schedule, store, key)
        if reason:
            raise PinnedControlsError(
                f"{kernel_name(kernel)} is pinned with ptxas controls, and {_inside(reason)}; or unpin it"
            )


def _refuse_illegal_pins(chosen: Deployment, store: Store, places: Sequence[str]) -> None:
    """Raises UnfollowedPinError for a kernel that a pin would decide, were it legal on the chip."""
    for kernel, _, line in _passed_over_pins(chosen, store, places):
        if illegal_because(kernel, line.schedule, chosen.target):
            raise UnfollowedPinError(f"{illegal_line_text(kernel, line)}; pin another, or unpin it")


def _passed_over_pins(
    chosen: Deployment, store: Store, places: Sequence[str]
) -> Iterator[tuple[Kernel, str, Evidence]]:
    """Each pin, with its context, of the kernels that something else decides."""
    for item in chosen.kernels:
        if item.chosen is not None and item.chosen.source is not Source.PIN:
            for key in places:
                for line in pin_lines(item.kernel, store, key, chosen.target):
                    yield item.kernel, key, line


def illegal_line_text(kernel: Kernel, line: Evidence) -> str:
    """A sentence, without its full stop, that a line of evidence decides nothing, and why."""
    what = "a pin" if line.source is Source.PIN else f"a {line.source.value}"
    return f"{kernel_name(kernel)}: {what} decides nothing here: {line.illegal.rstrip('.')}"


def _notes(decided: Sequence[Deployment]) -> tuple[str, ...]:
    """A sentence for each reason why controls that won are left out."""
    names: dict[str, list[str]] = {}
    for item in (item for one in decided for item in one.kernels):
        for line in item.lines:
            if line.illegal and line.source is not Source.PIN:
                names.setdefault(line.illegal, []).append(kernel_name(item.kernel))
    return tuple(
        f"the ptxas controls of {_listed(list(dict.fromkeys(kernels)))} are left out: {_inside(reason)}"
        for reason, kernels in names.items()
    )


def _inside(sentence: str) -> str:
    """A sentence inside another one."""
    lower = sentence[:1].lower() + sentence[1:]
    return lower.rstrip(".")


def kernel_choice(
    kernel: Kernel,
    count: int,
    store: Store,
    context_key: str,
    target: Target,
    prior: Prior,
    *,
    pins: bool = True,
    every_line: bool = False,
    controls: ControlsHere | None = None,
) -> KernelChoice:
    """What one kernel would run as now. With `every_line` the prediction is there even where a time decides.

    Raises DeploymentError for a kernel that has no legal schedule on `target`.
    """
    if not is_generated(kernel):
        return KernelChoice(kernel, count, None)
    recorded = recorded_lines(kernel, store, context_key, target, controls)
    lines = [line for line in recorded if pins or line.source is not Source.PIN]
    chosen = next((line for line in lines if not line.illegal), None)
    if chosen is None or every_line:
        predicted = predicted_lines(kernel, target, prior)
        lines += predicted if every_line else islice(predicted, 1)
        chosen = chosen or next((line for line in lines if not line.illegal), None)
    if chosen is None:
        reason = declined_because(kernel) or "no schedule of it is legal on this chip"
        raise DeploymentError(f"{kernel_name(kernel)} can't be built: {reason.rstrip('.')}")
    return KernelChoice(kernel, count, chosen, tuple(lines), _runner_up(kernel, chosen, lines, store, context_key))


def deploys_now(
    store: Store, kernel_key: str, context_key: str, prior: Prior, run: str = "", *, every_line: bool = True
) -> KernelChoice:
    """What a recorded kernel would run as now in a recorded context, with every line of evidence; in the program of
    `run`, where that is a run that tuned it. Without `every_line` nothing is predicted where a time decides.

    Raises StoreError for a kernel that isn't there, DeploymentError for one that can't be built.
    """
    target = store.target(context_key)
    choice = kernel_choice(store.kernel(kernel_key), 1, store, context_key, target, prior, every_line=every_line)
    graph = graph_of_run(store, run, kernel_key)
    return chosen_in_place(graph, [choice], store, context_key, target, None)[0][0] if graph is not None else choice


def kernel_name(kernel: Kernel) -> str:
    """What people call a kernel: its label, with the first digits of its key."""
    return f"{kernel.label or kernel.family} ({kernel.key[:8]})"


def _runner_up(
    kernel: Kernel, chosen: Evidence, lines: Sequence[Evidence], store: Store, context_key: str
) -> Evidence | None:
    """The next best measured schedule of the regime of the chosen time, so that the two can be compared; else the
    strongest line with another schedule. A pin without a time is beside the fastest of the stronger regime."""
    regime = regime_of(chosen)
    regimes: tuple[Regime, ...] = (regime,) if regime is not None else ()
    if chosen.source is Source.PIN:
        regimes = (
            (_regime_of_pin(kernel, chosen, store, context_key),) if chosen.us is not None else tuple(_BY_STRENGTH)
        )
    for one in regimes:
        second = store.second_best(kernel.key, context_key, one, chosen.schedule)
        if second is not None:
            return Evidence(_BY_STRENGTH[one], second.schedule, second.us)
    return next((line for line in lines if line.schedule != chosen.schedule and not line.illegal), None)


def _regime_of_pin(kernel: Kernel, pin: Evidence, store: Store, context_key: str) -> Regime:
    """The regime that the time of a pin was taken in: deploy where there is such a time."""
    deploy = store.deploy(kernel.key, pin.schedule, context_key)
    return Regime.DEPLOY if deploy is not None and deploy.us is not None else Regime.RANKING


def _sum_us(kernels: Sequence[KernelChoice], recorded: float | None) -> float | None:
    """The sum of the measured times that decided; what the recording says where a library's call has none."""
    total, library = 0.0, False
    for item in kernels:
        if item.chosen is None:
            library = True
        elif not _is_timed(item.chosen):
            return None
        else:
            total += (item.chosen.us or 0.0) * item.count
    return recorded if library else total


def _is_timed(line: Evidence) -> bool:
    return line.us is not None and line.source not in PREDICTED


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
