"""What leaves a database in a file of schedules, and what comes of one here.

A schedule whose context this database knows is what it was there: its times are evidence, its pin is a pin. One from
another GPU or toolchain becomes a suggestion, with the reason, and decides nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from engine import __version__
from engine.codegen import acf_of, illegal_because
from engine.deploy.controls import controls_unusable_because
from engine.deploy.pinning import difference_text, in_place_of, renamed
from engine.deploy.reproducing import measuring_command
from engine.deploy.schedule_file import FileSchedule, ScheduleFile, schedule_file_text, sorted_schedules
from engine.ir.kernel import Kernel
from engine.store import PinChange, Store, StoredPin, StoreError, Suggestion
from engine.vocabulary import Context, Measurement, Regime, Schedule, Status


class Carried(StrEnum):
    """Which schedules leave: what people chose, what is fastest, or both."""

    PINS = "pins"
    BEST = "best"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Exported:
    """The file's text, how many schedules it holds, and a sentence for each kernel that could not be read.

    `controls` counts the controls files of ptxas that it names.
    """

    text: str
    schedules: int
    left_out: tuple[str, ...]
    controls: int = 0


@dataclass(frozen=True, slots=True)
class Received:
    """What a file came to. `evidence` counts new rows; `left_out` says what was not taken, and why.

    `in_force` counts the pins of the file that were in force here before.
    """

    pins: tuple[PinChange, ...]
    evidence: int
    suggestions: int
    left_out: tuple[str, ...]
    in_force: int = 0


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
    used = {one.context.key for one in found.values()}
    measuring = [measuring_command(store, key, one.context.key, one.schedule) for (key, _, _), one in found.items()]
    tuning = [run.command for run in store.runs() if run.command and run.context_key in used]
    content = ScheduleFile(
        kernels,
        sorted_schedules(list(found.values())),
        {key: store.target(key) for key in used},
        tuple(dict.fromkeys(command for command in (*measuring, *tuning) if command)),
        controls=_names(store, [one.schedule for one in found.values()]),
    )
    text = schedule_file_text(content, emmy=__version__, command=command, at=time.time())
    return Exported(text, len(found), tuple(left_out), len(content.controls))


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
    """The best of a kernel; where it has ptxas controls, of which only the hash travels, also the best without."""
    best = store.best_known(key, context)
    if best is None or not acf_of(best.schedule):
        return [best] if best is not None else []
    without = [store.best_without_controls(key, context, regime) for regime in (Regime.DEPLOY, Regime.RANKING)]
    return [best, *[one for one in without if one is not None][:1]]


def _entry(store: Store, key: str, schedule: Schedule, context: Context) -> FileSchedule:
    results = (store.deploy(key, schedule, context.key), store.ranking(key, schedule, context.key))
    evidence = tuple(one for one in results if one is not None and _is_evidence(one))
    return FileSchedule(key, schedule, context, None, evidence)


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
    own = [one for one in fits if one.context.key in contexts]
    # a file carries the hash of ptxas controls, and a person their bytes
    asked = [(one, controls_unusable_because(one.schedule, store, one.context.key)) for one in own if one.pin]
    left_out += [f"the pin of {one.schedule}: {reason}" for one, reason in asked if reason]
    evidence = store.record_evidence([result for one in own for result in one.evidence])
    pinned = [one for one, reason in asked if not reason]
    pins = [change for one in pinned if (change := _pinned(store, one, who)) is not None]
    strange = [one for one in fits if one.context.key not in contexts]
    suggested = store.suggest([_suggestion(one, here) for one in strange])
    return Received(tuple(pins), evidence, suggested, tuple(left_out), len(pinned) - len(pins))


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
    where = difference_text(one.context, here) if here else f"on {one.context.gpu or 'an unnamed GPU'}"
    fastest = one.evidence[0] if one.evidence else None
    return Suggestion(
        one.kernel_key,
        one.schedule,
        one.context,
        f"{did} {where}",
        us=fastest.us if fastest else None,
        regime=str(fastest.regime) if fastest else "",
        author=one.pin.author if one.pin else "",
        note=one.pin.note if one.pin else "",
        at=time.time(),
    )
