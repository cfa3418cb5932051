"""Which programs a command speaks of: those of a database by the text they were tuned as, or one that is captured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.capture import capture
from engine.deploy.place import Place
from engine.ir.plan import Program
from engine.store import BadRow, Store, StoredRun, StoreError
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


def find_subjects(
    store: Store, text: str, place: Place | None, *, partly: bool = False, containing: str = ""
) -> list[Subject]:
    """The recorded programs of that text, newest run first; all for "", and with `partly` those that contain it.

    Of all, `containing` (case doesn't matter) keeps those that have it. One that isn't recorded is captured, which
    needs torch: its context is `place`'s, or the newest run's. With a `place`, its evidence counts for every program. A
    run that can't be read is left out. Raises StoreError, and CaptureError.
    """
    runs: dict[str, list[StoredRun]] = {}
    for run in store.runs():
        runs.setdefault(run.target, []).append(run)
    wanted = containing.casefold()
    found = [
        of_program
        for name, of_program in runs.items()
        if (not text or name == text or (partly and text in name)) and wanted in name.casefold()
    ]
    if found:
        recorded = [_recorded(store, of_program, place) for of_program in reversed(found)]
        subjects = [subject for subject in recorded if subject is not None]
        if subjects:
            return subjects
        if not text:
            raise StoreError(f"no program of {store.path} can be read: name another database, or give a program's text")
    if not text:
        return []
    program = capture(text)
    if place is not None:
        return [Subject(text, program, place.context.key, place.target, place.context.gpu, place.context)]
    newest = store.latest_run()
    if newest is None:
        return [Subject(text, program, "", Target())]
    return [Subject(text, program, newest.context_key, store.target(newest.context_key), newest.gpu)]


def _recorded(store: Store, runs: Sequence[StoredRun], place: Place | None) -> Subject | None:
    """The program of its newest run that can be read; None where none can."""
    for run in reversed(runs):
        try:
            program = store.program(run.id)
            if place is not None:
                return Subject(run.target, program, place.context.key, place.target, place.context.gpu, place.context)
            return Subject(run.target, program, run.context_key, store.target(run.context_key), run.gpu)
        except BadRow as error:
            store.leave_out(error)
    return None
