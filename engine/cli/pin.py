"""`emmy pin`: a schedule that a person chooses for a kernel, kept with who, when and why."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.database import chosen_database, opened
from engine.cli.errors import complain, refuse
from engine.cli.knob_text import schedule_line
from engine.cli.options import Database, Json
from engine.cli.output import json_text, printable
from engine.deploy import completed_schedule, difference_text, pin_context, unpinnable_because, user_name
from engine.ir.kernel import Kernel
from engine.knobs import BadKnobs, parse_knobs
from engine.store import Store, StoreError
from engine.vocabulary import Schedule

KernelName = Annotated[
    str, typer.Argument(metavar="KERNEL", help="A text that one kernel's name, family, shape or key has.")
]
Knobs = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME=VALUE...", help="Knobs; those left away are the best schedule's.", show_default=False),
]
Note = Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept with the pin.")]
ContextKey = Annotated[
    str,
    typer.Option("--context", metavar="KEY", help="The recorded context it is for. Default: the one measured last."),
]
NOTE_LIMIT = 10_000


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("pin")(pin)


def pin(
    kernel: KernelName,
    knobs: Knobs = None,
    note: Note = "",
    context: ContextKey = "",
    database: Database = None,
    json: Json = False,
) -> None:
    """Choose a kernel's schedule: it decides before every measurement. It must be legal, and it is checked when built.

    Without knobs the best known schedule is pinned. Another pin of the kernel ends; the history keeps both.
    """
    if len(note) > NOTE_LIMIT:
        raise refuse(f"--note has more than {NOTE_LIMIT} characters")
    with opened(chosen_database(database, False), BadKnobs, read_only=False) as store:
        found = one_kernel(store, kernel)
        place = _context(store, found, context)
        schedule = _completed(store, found, place, knobs or [])
        reason = unpinnable_because(found, schedule, store, place)
        if reason:
            raise refuse(f"{kernel_text(found)} can't be pinned to {schedule_line(str(schedule))}: {reason}")
        change = store.record_pin(found.key, schedule, place, author=user_name(), note=note)
        if json:
            pinned = {"schedule": schedule.as_dict(), "note": note, "replaced": len(change.removed)}
            typer.echo(json_text({**kernel_object(found, place), **pinned}))
        else:
            ended = " in place of another pin" if change.removed else ""
            typer.echo(printable(f"pinned {kernel_text(found)} to {schedule_line(str(schedule))}{ended}"))
        _warn_of_context(store, place)


def one_kernel(store: Store, text: str) -> Kernel:
    """The kernel that a text names; leaves with exit code 2 if it is none or several."""
    keys = store.kernel_keys(text)
    if len(keys) > 1 and text not in keys:
        keys = tuple(key for key in keys if _is_name(store, key, text)) or keys
    if not keys:
        raise refuse(f"no kernel of {store.path} matches {text!r}; `emmy eval variants` shows what is there")
    if len(keys) > 1 and text not in keys:
        shown = "; ".join(f"{label_of(store, key)} {key}" for key in keys[:4])
        more = f" and {len(keys) - 4} more" if len(keys) > 4 else ""
        raise refuse(f"{text!r} is {len(keys)} kernels: give the key of one: {shown}{more}")
    return store.kernel(text if text in keys else keys[0])


def _is_name(store: Store, key: str, text: str) -> bool:
    """Whether the text is all of the kernel's name, with or without the dtype."""
    try:
        kernel = store.kernel(key)
    except StoreError:
        return False
    name, wanted = kernel_text(kernel).casefold(), " ".join(text.casefold().split())
    sizes = kernel.shape_text.partition(" ")[0].casefold()
    return wanted in (name, f"{(kernel.label or kernel.family).casefold()} {sizes}")


def _context(store: Store, kernel: Kernel, named: str) -> str:
    if not named:
        return pin_context(store, kernel.key)
    known = [context.key for context in store.contexts()]
    if named not in known:
        raise refuse(f"no context {named!r} is recorded; the contexts are {', '.join(known[:6]) or 'none'}")
    return named


def _completed(store: Store, kernel: Kernel, context: str, knobs: list[str]) -> Schedule:
    """The knobs that were typed, and for the others those of the best known schedule."""
    best = store.best_known(kernel.key, context)
    if not knobs:
        if best is None:
            raise refuse(f"nothing was measured of {kernel_text(kernel)} in this context: give every knob, NAME=value")
        return best.schedule
    return completed_schedule(kernel, parse_knobs(" ".join(knobs)), best.schedule if best else None)


def _warn_of_context(store: Store, place: str) -> None:
    """A pin for another context than the newest run's decides there; here it is a suggestion."""
    newest = store.latest_run()
    contexts = {context.key: context for context in store.contexts()}
    if newest is None or newest.context_key == place or place not in contexts or newest.context_key not in contexts:
        return
    where = difference_text(contexts[place], contexts[newest.context_key])
    complain(f"the pin is for {where}: in the newest run's context it is a suggestion, which a search tries first")


def label_of(store: Store, key: str) -> str:
    """What people call a recorded kernel; its key where its row can't be read."""
    try:
        return kernel_text(store.kernel(key))
    except StoreError:
        return key


def kernel_object(kernel: Kernel, context: str) -> dict[str, object]:
    """A kernel in a context, for `--json`."""
    return {"kernel": kernel.key, "label": kernel.label, "shape": kernel.shape_text, "context": context}


def kernel_text(kernel: Kernel) -> str:
    """A kernel for people: its label and its shape."""
    return f"{kernel.label or kernel.family} {kernel.shape_text}".strip()
