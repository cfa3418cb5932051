"""Which kernels run another schedule in a program's graph than the one that is best by itself.

A run tries runners-up in the whole graph. What its fastest graph was built with decides over all that such a run knew
of the kernels by themselves; a schedule that was found faster alone since then decides over it. A pin decides before
either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from engine.codegen import illegal_because
from engine.deploy.controls import ControlsHere
from engine.deploy.evidence import PREDICTED, Evidence, KernelChoice, Source, regime_of, us_alone
from engine.store import Store
from engine.vocabulary import Regime, Schedule, Target


@dataclass(frozen=True, slots=True)
class RecordedGraph:
    """The fastest graph of a program: the recorded grouping's id, the schedules it was built with by structural key,
    its time in us, its launches, and until when a run of the program knew all that was measured (s since 1970)."""

    row: str
    schedules: Mapping[str, Schedule]
    us: float | None
    pdl: bool
    known_until: float

    @property
    def run(self) -> str:
        """The run that recorded the grouping."""
        return self.row.rpartition("/")[0]


def graph_of_run(store: Store, run: str, kernel_key: str = "") -> RecordedGraph | None:
    """The fastest graph of all runs of the run's program in its context, or that a kernel is part of. Raises
    StoreError."""
    runs = store.runs()
    own = next((one for one in runs if one.id == run), None)
    if own is None:
        return None
    same = [one for one in runs if (one.target, one.context_key) == (own.target, own.context_key)]
    timed = [(graph, one) for one in same if (graph := store.fastest_graph(one.id, kernel_key)) is not None]
    best = min((graph for graph, _ in timed), key=lambda graph: graph.us, default=None)
    if best is None:
        return None
    known_until = max(one.ended_at or one.started_at for _, one in timed)
    return RecordedGraph(best.id, best.schedules, best.us, best.pdl, known_until)


def chosen_in_place(
    found: RecordedGraph,
    kernels: Sequence[KernelChoice],
    store: Store,
    context_key: str,
    target: Target,
    controls: ControlsHere | None,
) -> tuple[tuple[KernelChoice, ...], float | None]:
    """The kernels with what won in the recorded graph, and the time in us of the graph with each kernel's own best,
    None where that isn't known or where those won. Raises StoreError.
    """
    own = {item.kernel.key: line for item in kernels if (line := _own_best(item)) is not None}
    others = {
        key: schedule
        for key, schedule in found.schedules.items()
        if key in own and own[key].schedule != schedule and _was_known(own[key], key, found, store, context_key)
    }
    if not others or found.us is None:
        return tuple(kernels), None
    alone = {key: line.schedule for key, line in own.items()}
    graph = store.assembled(found.row, context_key, {**found.schedules, **alone}, pdl=found.pdl)
    alone_us = graph.timing.median_us if graph is not None and graph.timing is not None else None
    if alone_us is not None and alone_us <= found.us:
        return tuple(kernels), None
    wanted = [item for item in kernels if item.kernel.key in others and not _is_pinned(item)]
    for item in wanted:
        schedule = others[item.kernel.key]
        unusable = controls is not None and controls.unusable_because(schedule, store, context_key)
        if unusable or illegal_because(item.kernel, schedule, target):
            return tuple(kernels), None  # without it the graph is another one than was timed
    moved = {item.kernel.key: _moved(item, others, own, store, context_key) for item in wanted}
    return tuple(moved.get(item.kernel.key, item) for item in kernels), alone_us


def _own_best(item: KernelChoice) -> Evidence | None:
    """The strongest line that can be built and is measured of the kernel alone."""
    weaker = (Source.PIN, *PREDICTED)
    return next((line for line in item.lines if not line.illegal and line.source not in weaker), None)


def _was_known(line: Evidence, key: str, found: RecordedGraph, store: Store, context_key: str) -> bool:
    """Whether a run that put the program together knew what is best alone."""
    at = store.measured_at(key, line.schedule, context_key, regime_of(line) or Regime.RANKING)
    return at is not None and at <= found.known_until


def _is_pinned(item: KernelChoice) -> bool:
    return item.chosen is not None and item.chosen.source is Source.PIN


def _moved(
    item: KernelChoice,
    schedules: Mapping[str, Schedule],
    own: Mapping[str, Evidence],
    store: Store,
    context_key: str,
) -> KernelChoice:
    """The kernel with its schedule of the graph, beside what is best alone."""
    key = item.kernel.key
    line = Evidence(Source.IN_PLACE, schedules[key], us_alone(key, schedules[key], store, context_key))
    return replace(item, chosen=line, lines=(line, *item.lines), runner_up=own[key])
