"""Pins as every surface makes and checks them: may a schedule be pinned, does it hold here, and was it really built.

A pin decides in the context that it was made for. On another GPU, with another toolchain or for another shape of the
kernel it is a suggestion: it is shown with the reason, tried first by the next search, and decides nothing.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterable
from dataclasses import replace

from engine.codegen import FAMILIES, KernelSource, illegal_because, render
from engine.deploy.controls import controls_unusable_because
from engine.ir.kernel import Kernel
from engine.knobs import KNOBS, WITHOUT_EFFECT, BadKnobs, near_names
from engine.store import Store, StoredPin, StoreError, Suggestion
from engine.vocabulary import Context, Schedule, Target


class SilentFallbackError(RuntimeError):
    """What was built isn't what was pinned; the text names the kernel, the pin and the difference."""


def user_name() -> str:
    """The name that runs, acts and pins are kept under: the user's, as far as the machine knows one."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


def pin_context(store: Store, kernel_key: str) -> str:
    """The context that a new pin of the kernel is for: the one it was measured in last, else the newest run's.

    Raises StoreError for a database without any.
    """
    contexts = store.kernel_contexts(kernel_key)
    run = store.latest_run()
    if not contexts and run is None:
        raise StoreError(f"{store.path} holds no run, so it isn't known for which GPU to pin")
    return contexts[0][0] if contexts else run.context_key if run else ""


def completed_schedule(kernel: Kernel, typed: Schedule, best: Schedule | None) -> Schedule:
    """What a person typed, and for every knob that was left away, optional ones too, the value of the best schedule.

    Raises BadKnobs for a name that is no knob of the kernel, and where there is no best one to complete it.
    """
    family = FAMILIES.get(kernel.family)
    own = family.knobs if family is not None and kernel.foreign is None else ()
    begun = best.as_dict() if best is not None else {}
    known = dict.fromkeys([*own, *(("ACF",) if own else ()), *begun, *WITHOUT_EFFECT])
    for name in typed.as_dict():
        if (own or begun) and name not in known:
            near = near_names(name, known)
            meant = f"near it are {', '.join(near)}" if near else f"its knobs are {', '.join(own or begun)}"
            raise BadKnobs(f"{name} is no knob of a {kernel.family} kernel; {meant}")
    missing = [name for name in own if name not in typed.as_dict() and not KNOBS[name].optional]
    if best is None and missing:
        raise BadKnobs(
            f"nothing was measured of this kernel in this context, so every knob is to be given: {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing"
        )
    return Schedule.of({**begun, **typed.as_dict()})


def unpinnable_because(kernel: Kernel, schedule: Schedule, store: Store, context_key: str) -> str:
    """A sentence why the schedule can't be pinned for the kernel in this context, or "". Raises StoreError."""
    if kernel.foreign is None:
        illegal = illegal_because(kernel, schedule, store.target(context_key))
        return illegal or controls_unusable_because(schedule, store, context_key)
    if store.ranking(kernel.key, schedule, context_key) is None:
        return "The kernel was imported from another tuner: only a schedule that it measured can be pinned."
    return ""


def difference_text(origin: Context, here: Context) -> str:
    """What of the GPU and the toolchain differs, in words; "" if nothing does."""
    parts = [] if origin.gpu == here.gpu else [f"on {origin.gpu or 'an unnamed GPU'}, not {here.gpu or 'this one'}"]
    for name in ("capability", "driver", "torch", "triton", "ptxas"):
        there, own = getattr(origin, name), getattr(here, name)
        if there != own and not (name == "capability" and parts):
            parts.append(f"with {name} {there or 'unknown'}, not {own or 'unknown'}")
    if origin.cold_l2 != here.cold_l2:
        parts.append("with a cold L2" if origin.cold_l2 else "with a warm L2")
    return ", ".join(parts)


def where_text(origin: Context, here: Context | None) -> str:
    """Where a schedule comes from, as what differs from here; the GPU alone where nothing is known of here."""
    return difference_text(origin, here) if here else f"on {origin.gpu or 'an unnamed GPU'}"


def suggestions_now(store: Store) -> tuple[Suggestion, ...]:
    """What came from elsewhere, with the reasons why each decides nothing in the context that its kernel is in now.

    What came before the database was in the context that it is from: without the rows that were timed or pinned there
    since, as these are what they were elsewhere. Raises StoreError.
    """
    run = store.latest_run()
    contexts = {context.key: context for context in store.contexts()}
    found = []
    for one in store.suggestions():
        own = store.kernel_contexts(one.kernel_key)
        here = contexts.get(own[0][0] if own else run.context_key if run else "")
        if not _is_known(one, store, here):
            found.append(_as_of(one, here, contexts.values()))
    return tuple(found)


def _is_known(one: Suggestion, store: Store, here: Context | None) -> bool:
    """Whether it is from here, and is timed, failed or pinned here by now."""
    if here is None or one.origin != here:
        return False
    place = (one.kernel_key, one.schedule, here.key)
    pin = in_place_of(store, one.kernel_key, here.key)
    pinned = pin is not None and pin.pin.schedule == one.schedule
    return pinned or store.ranking(*place) is not None or store.deploy(*place) is not None


def _as_of(one: Suggestion, here: Context | None, contexts: Iterable[Context]) -> Suggestion:
    """The suggestion with a reason that names this context, not another one of this database that it came to."""
    if here is None:
        return one
    texts = (where_text(one.origin, other) for other in (*contexts, None))
    before = next((text for text in texts if text and one.reason.endswith(text)), "")
    did = one.reason.removesuffix(before).rstrip()
    if one.origin == here:
        return replace(one, reason=f"{did} on this GPU with these versions, but not in this database")
    return replace(one, reason=f"{did} {where_text(one.origin, here)}") if before else one


def suggestions_for(kernel: Kernel, store: Store, context_key: str) -> tuple[Suggestion, ...]:
    """Legal schedules from elsewhere for a kernel, each once: pins of other contexts, then what was imported, then pins
    of the same kernel for other shapes. `reason` says why each decides nothing here. Raises StoreError.
    """
    here = store.context(context_key)
    imported = [one for one in store.suggestions(kernel.key) if not _is_known(one, store, here)]
    return _legal_suggestions(kernel, store, here, imported)


def _legal_suggestions(
    kernel: Kernel, store: Store, here: Context | None, imported: Iterable[Suggestion]
) -> tuple[Suggestion, ...]:
    if here is None or kernel.foreign is not None:
        return ()
    elsewhere, shapes = _pins_elsewhere(kernel, store, here)
    target = store.target(here.key)
    contexts = store.contexts()
    found: dict[str, Suggestion] = {}
    for one in (*elsewhere, *(_as_of(one, here, contexts) for one in imported), *shapes):
        if illegal_because(kernel, one.schedule, target) is None:
            found.setdefault(one.schedule.key, one)
    return tuple(found.values())


def schedules_to_try(kernel: Kernel, store: Store, context_key: str) -> tuple[Schedule, ...]:
    """What a search of the kernel should try first: its pin here, then the suggestions, also those that were timed here
    since: a search that runs again walks the same path. Raises StoreError.
    """
    stored = in_place_of(store, kernel.key, context_key)
    pinned = [stored.pin.schedule] if stored is not None else []
    suggested = _legal_suggestions(kernel, store, store.context(context_key), store.suggestions(kernel.key))
    return tuple(dict.fromkeys([*pinned, *(one.schedule for one in suggested)]))


def _pins_elsewhere(kernel: Kernel, store: Store, here: Context) -> tuple[list[Suggestion], list[Suggestion]]:
    contexts = {context.key: context for context in store.contexts()}
    places = [
        (stored, contexts[stored.context_key])
        for stored in store.pins()
        if stored.context_key in contexts and (stored.pin.kernel_key, stored.context_key) != (kernel.key, here.key)
    ]
    own = [(stored, context) for stored, context in places if stored.pin.kernel_key == kernel.key]
    others = [(stored, context) for stored, context in places if stored.pin.kernel_key != kernel.key]
    shapes = []
    for stored, context in others:
        other = _readable(store, stored.pin.kernel_key)
        if other is not None and kernel.label and (other.family, other.label) == (kernel.family, kernel.label):
            reason = f"pinned by {_who(stored)} for {other.shape_text}, not {kernel.shape_text}"
            shapes.append(_suggested(kernel, stored, context, reason))
    pinned = [
        _suggested(kernel, stored, context, f"pinned by {_who(stored)} {difference_text(context, here)}")
        for stored, context in own
    ]
    return pinned, shapes


def _readable(store: Store, kernel_key: str) -> Kernel | None:
    try:
        return store.kernel(kernel_key)
    except StoreError:
        return None


def _who(stored: StoredPin) -> str:
    return stored.pin.author or "somebody"


def _suggested(kernel: Kernel, stored: StoredPin, origin: Context, reason: str) -> Suggestion:
    pin = stored.pin
    return Suggestion(kernel.key, pin.schedule, origin, reason, author=pin.author, note=pin.note, at=pin.at)


def check_source_built(kernel: Kernel, pin: Schedule, built: KernelSource, target: Target) -> None:
    """Compare the very source that was compiled with what the pin renders to on `target`.

    Raises SilentFallbackError.
    """
    wanted = render(kernel, pin, target, pdl=built.pdl)
    if wanted.fingerprint == built.fingerprint:
        return
    facts = ("num_warps", "num_stages", "grid", "arguments", "text")
    differs = next((fact for fact in facts if getattr(wanted, fact) != getattr(built, fact)), "text")
    said = (
        f"{getattr(built, differs)} instead of {getattr(wanted, differs)}" if differs in facts[:3] else "another text"
    )
    raise SilentFallbackError(
        f"{kernel.label or kernel.family} {kernel.shape_text} is pinned to {pin}, and its source was built with "
        f"{differs.replace('_', ' ')} {said}: the pin was not followed"
    )


def in_place_of(store: Store, kernel_key: str, context_key: str) -> StoredPin | None:
    """The pin in force for the kernel in this context."""
    place = (kernel_key, context_key)
    return next((one for one in store.pins() if (one.pin.kernel_key, one.context_key) == place), None)


def renamed(note: str, author: str, who: str) -> str:
    """The note of a pin that `who` takes over from `author`."""
    return note if author in ("", who) else f"{note} (from {author})".strip()
