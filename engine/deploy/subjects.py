"""Which programs a command speaks of: those of a database by the text they were tuned as, or one that is captured."""

from __future__ import annotations

from dataclasses import dataclass

from engine.capture import capture
from engine.deploy.place import Place
from engine.ir.plan import Program
from engine.store import Store, StoredRun
from engine.vocabulary import Context, Target


@dataclass(frozen=True, slots=True)
class Subject:
    """A program with the context whose evidence counts for it, and the chip. `gpu` names the context's GPU, "" for no
    context: nothing is measured then, and predictions decide. `context` is this machine's, where it has a GPU."""

    text: str
    program: Program
    context_key: str
    target: Target
    gpu: str = ""
    context: Context | None = None


def find_subjects(store: Store, text: str, place: Place | None, *, partly: bool = False) -> list[Subject]:
    """The recorded programs of that text, newest run first; all for "", and with `partly` those that contain it.

    One that isn't recorded is captured, which needs torch: its context is `place`'s, or the newest run's. With a
    `place`, its evidence counts for every program. Raises StoreError, and CaptureError.
    """
    latest = {run.target: run for run in store.runs()}
    found = [run for name, run in latest.items() if not text or name == text or (partly and text in name)]
    if found:
        return [_recorded(store, run, place) for run in reversed(found)]
    if not text:
        return []
    program = capture(text)
    if place is not None:
        return [Subject(text, program, place.context.key, place.target, place.context.gpu, place.context)]
    newest = store.latest_run()
    if newest is None:
        return [Subject(text, program, "", Target())]
    return [Subject(text, program, newest.context_key, store.target(newest.context_key), newest.gpu)]


def _recorded(store: Store, run: StoredRun, place: Place | None) -> Subject:
    program = store.program(run.id)
    if place is not None:
        return Subject(run.target, program, place.context.key, place.target, place.context.gpu, place.context)
    return Subject(run.target, program, run.context_key, store.target(run.context_key), run.gpu)
