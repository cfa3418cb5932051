"""What leaves a database in a file of schedules, and what comes of one here.

A schedule whose context this database knows is what it was there: its times are evidence, its pin is a pin. One from
another GPU or toolchain becomes a suggestion, with the reason, and decides nothing. With the schedules goes the fastest
graph of each program that they make up, so that what won in place is what deploys there too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from engine import __version__
from engine.codegen import acf_of, illegal_because
from engine.deploy.controls import controls_unusable_because
from engine.deploy.evidence import best_plain
from engine.deploy.in_place import graph_of_run
from engine.deploy.pinning import in_place_of, renamed, where_text
from engine.deploy.reproducing import measuring_command
from engine.deploy.schedule_file import FileSchedule, ScheduleFile, schedule_file_text, sorted_schedules
from engine.ir.kernel import Kernel
from engine.prior import steering
from engine.store import CarriedGraph, PinChange, Store, StoredPin, StoreError, Suggestion
from engine.vocabulary import Context, Measurement, Regime, Schedule, Status, Target


class Carried(StrEnum):
    """Which schedules leave: what people chose, what is fastest, or both."""

    PINS = "pins"
    BEST = "best"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Exported:
    """The file's text, how many schedules it holds, and a sentence for each kernel that could not be read.

    `controls` counts the controls files of ptxas that it names, `graphs` its whole graphs of programs.
    """

    text: str
    schedules: int
    left_out: tuple[str, ...]
    controls: int = 0
    graphs: int = 0


@dataclass(frozen=True, slots=True)
class Received:
    """What a file came to. `evidence` counts new rows, `graphs` new whole graphs; `left_out` says what was not taken,
    and why.

    `in_force` counts the pins of the file that were in force here before.
    """

    pins: tuple[PinChange, ...]
    evidence: int
    suggestions: int
    left_out: tuple[str, ...]
    in_force: int = 0
    graphs: int = 0


def export_schedules(store: Store, kernel_text: str, what: Carried, command: str) -> Exported:
    """The schedules of all kernels whose name, family, shape or key holds the text. Raises StoreError."""
    contexts = {context.key: context for context in store.contexts()}
    pins = store.pins() if what is not Carried.BEST else ()
    kernels: dict[str, Kernel] = {}
    found: dict[tuple[str, str, str], FileSchedule] = {}
    left_out = []
    for key in store.kernel_keys(kernel_text):
        try:
            own = _schedules_of(store, key, contexts, [one for one in pins if one.pin.kernel_key == key], what)
            if own:
                kernels[key] = store.kernel(key)
        except StoreError as error:
            left_out.append(str(error))
            continue
        found |= {(key, one.context.key, one.schedule.key): one for one in own}
    graphs = _graphs(store, kernels, contexts, left_out) if what is not Carried.PINS else []
    for graph in graphs:
        for key, schedule in graph.schedules.items():
            entry = _entry(store, key, schedule, contexts[graph.context_key])
            found.setdefault((key, graph.context_key, schedule.key), entry)
    used = {one.context.key for one in found.values()}
    prior = steering(store.path).latest
    places = [(key, one.context.key, one.schedule) for (key, _, _), one in found.items()]
    measuring = [measuring_command(store, *place, prior) for place in places]
    tuning = [run.command for run in store.runs() if run.command and run.context_key in used]
    content = ScheduleFile(
        kernels,
        sorted_schedules(list(found.values())),
        {key: store.target(key) for key in used},
        tuple(dict.fromkeys(command for command in (*measuring, *tuning) if command)),
        controls=_names(store, [one.schedule for one in found.values()]),
        graphs=tuple(graphs),
    )
    text = schedule_file_text(content, emmy=__version__, command=command, at=time.time())
    return Exported(text, len(found), tuple(left_out), len(content.controls), len(graphs))


def _graphs(
    store: Store, kernels: Mapping[str, Kernel], contexts: Mapping[str, Context], left_out: list[str]
) -> list[CarriedGraph]:
    """The fastest graph of each program in each context that consists of these kernels alone; what can't be read is
    added to `left_out`."""
    newest = {(run.target, run.context_key): run.id for run in store.runs() if run.context_key in contexts}
    graphs = []
    for (_, context), run in newest.items():
        found = graph_of_run(store, run)
        if found is None or not found.schedules or not found.schedules.keys() <= kernels.keys():
            continue
        row = store.recorded_grouping(found.row)
        timed = store.assembled(found.row, context, found.schedules, pdl=found.pdl)
        if row is None or timed is None or timed.timing is None:
            continue
        try:
            program = store.program(found.run)
        except StoreError as error:
            left_out.append(str(error))
            continue
        built = (row.grouping, found.schedules, timed.timing, found.pdl, found.known_until)
        graphs.append(CarriedGraph(program, context, *built, row.sum_us, timed.error))
    return graphs


def _schedules_of(
    store: Store, key: str, contexts: dict[str, Context], pins: Sequence[StoredPin], what: Carried
) -> list[FileSchedule]:
    """The best schedule of a kernel in each context, and its pins; where both are one, the pin says so."""
    found: dict[tuple[str, str], FileSchedule] = {}
    for context, _, _ in store.kernel_contexts(key) if what is not Carried.PINS else ():
        for best in _best(store, key, context) if context in contexts else ():
            found[context, best.schedule.key] = _entry(store, key, best.schedule, contexts[context])
    for stored in pins:
        if stored.context_key in contexts:
            entry = _entry(store, key, stored.pin.schedule, contexts[stored.context_key])
            found[stored.context_key, stored.pin.schedule.key] = replace(entry, pin=stored.pin)
    return list(found.values())


def _names(store: Store, schedules: Sequence[Schedule]) -> dict[str, str]:
    """What people called the controls files that schedules name, by their hash; "" for one that isn't kept whole."""
    names: dict[str, str] = {}
    for sha256 in sorted({acf_of(schedule) for schedule in schedules} - {""}):
        with suppress(StoreError):
            kept = store.controls_file(sha256)
            names[sha256] = kept.name if kept is not None else ""
    return names


def _best(store: Store, key: str, context: str) -> list[Measurement]:
    """What is used of a kernel alone without ptxas controls, of which only the hash travels; where the best has some,
    that too."""
    plain = best_plain(key, store, context, Regime.DEPLOY) or best_plain(key, store, context, Regime.RANKING)
    best = store.best_known(key, context)
    controlled = best if best is not None and acf_of(best.schedule) else None
    return [one for one in (controlled, plain) if one is not None]


def _entry(store: Store, key: str, schedule: Schedule, context: Context) -> FileSchedule:
    deploy = None if _is_overruled(store, key, schedule, context.key) else store.deploy(key, schedule, context.key)
    results = (deploy, store.ranking(key, schedule, context.key))
    evidence = tuple(one for one in results if one is not None and _is_evidence(one))
    moments = {one.regime: store.measured_at(key, schedule, context.key, one.regime) for one in evidence}
    taken = {regime: at for regime, at in moments.items() if at is not None}
    return FileSchedule(key, schedule, context, None, evidence, taken)


def _is_overruled(store: Store, key: str, schedule: Schedule, context: str) -> bool:
    """Whether another finalist was chosen in turns, and only by its deploy time would this one be used. The comparison
    stays behind, so that time does too."""
    compared, used = store.compared(key, context), best_plain(key, store, context, Regime.DEPLOY)
    if compared is None or used is None or acf_of(schedule):
        return False
    return schedule.key in compared.schedules and schedule != used.schedule


def _is_evidence(result: Measurement) -> bool:
    timing = result.timing
    return (
        result.status is Status.OK
        and timing is not None
        and 0 < timing.median_us < float("inf")
        and 0 <= timing.low_us <= timing.median_us <= timing.high_us < float("inf")
    )


def receive_schedules(store: Store, content: ScheduleFile, who: str) -> Received:
    """Keep what a file says. `who` pins, and the note says who did first. Doing it again adds nothing.

    Raises StoreError when the database can't be written.
    """
    contexts = {context.key: context for context in store.contexts()}
    newest = store.latest_run()
    here = contexts.get(newest.context_key) if newest else None
    target = store.target(here.key if here else "")
    fits: list[FileSchedule] = []
    left_out = list(content.unread)
    for one in content.schedules:
        kernel = content.kernels[one.kernel_key]
        reason = None if kernel.foreign is not None else illegal_because(kernel, one.schedule, target)
        if reason:
            left_out.append(f"{kernel.label or kernel.key} {one.schedule}: {reason}")
        else:
            fits.append(one)
    for key in dict.fromkeys(one.kernel_key for one in fits):
        store.record_kernel(content.kernels[key])
    known = [one for one in fits if one.context.key in contexts]
    # a file carries the hash of ptxas controls, and a person their bytes
    asked = [(one, controls_unusable_because(one.schedule, store, one.context.key)) for one in known if one.pin]
    left_out += [f"the pin of {one.schedule}: {reason}" for one, reason in asked if reason]
    evidence = store.record_evidence([(one, own.taken.get(one.regime)) for own in known for one in own.evidence])
    graphs = _received_graphs(store, [one for one in content.graphs if one.context_key in contexts], target, left_out)
    pinned = [one for one, reason in asked if not reason]
    pins = [change for one in pinned if (change := _pinned(store, one, who)) is not None]
    strange = [one for one in fits if one.context.key not in contexts]
    suggested = store.suggest([_suggestion(one, here) for one in strange])
    return Received(tuple(pins), evidence, suggested, tuple(left_out), len(pinned) - len(pins), graphs)


def _received_graphs(store: Store, graphs: Sequence[CarriedGraph], target: Target, left_out: list[str]) -> int:
    """Keep those whose kernels can all be built, and count the new ones; the others are added to `left_out`."""
    new = 0
    for graph in graphs:
        kernels = [kernel for kernel, _ in graph.grouping.kernel_counts().values()]
        built = [(kernel, graph.schedules[kernel.key]) for kernel in kernels if kernel.key in graph.schedules]
        reason = next((why for kernel, schedule in built if (why := illegal_because(kernel, schedule, target))), None)
        if reason:
            left_out.append(f"the graph of {graph.program.target[:80]!r}: {reason}")
            continue
        for kernel in kernels:
            store.record_kernel(kernel)
        new += store.record_graph(graph)
    return new


def _pinned(store: Store, one: FileSchedule, who: str) -> PinChange | None:
    if one.pin is None:
        return None
    stored = in_place_of(store, one.kernel_key, one.context.key)
    if stored is not None and stored.pin.schedule == one.schedule:
        return None
    note = renamed(one.pin.note, one.pin.author, who)
    return store.record_pin(one.kernel_key, one.schedule, one.context.key, author=who, note=note)


def _suggestion(one: FileSchedule, here: Context | None) -> Suggestion:
    did = f"pinned by {one.pin.author or 'somebody'}" if one.pin else "measured"
    fastest = one.evidence[0] if one.evidence else None
    return Suggestion(
        one.kernel_key,
        one.schedule,
        one.context,
        f"{did} {where_text(one.context, here)}",
        us=fastest.us if fastest else None,
        regime=str(fastest.regime) if fastest else "",
        author=one.pin.author if one.pin else "",
        note=one.pin.note if one.pin else "",
        at=time.time(),
    )
