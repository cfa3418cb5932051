"""Pins as the tabs change them: who, the undo of this session, the sentences, and knob values that are typed.

Every change goes through the desk's writer; nothing here runs while the database is opened for reading only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emmy_tui.desk import Desk
from emmy_tui.knob_words import BadKnobs, parse_knobs, short_words
from emmy_tui.outlet import Outlet
from engine.codegen import illegal_because
from engine.deploy import completed_schedule, pin_context, unpinnable_because
from engine.deploy import user_name as author
from engine.ir.kernel import Kernel
from engine.store import PinChange, Store, StoreError
from engine.vocabulary import Schedule, Target

__all__ = ["Pinnable", "Pinning", "author", "read_pinnable"]


@dataclass(frozen=True, slots=True)
class Pinnable:
    """A kernel for which knob values can be typed: where a pin goes, and what judges it. `best` is where to begin."""

    kernel: Kernel
    context_key: str
    target: Target
    best: Schedule | None

    def read(self, text: str) -> tuple[Schedule, str]:
        """Knob values, those that are left away from the best one, and after a # a note. Raises BadKnobs."""
        knobs, _, note = text.partition("#")
        return completed_schedule(self.kernel, parse_knobs(knobs), self.best), note.strip()

    def judge(self, text: str) -> str:
        """Why what was typed can't be pinned, or ""."""
        try:
            schedule, _ = self.read(text)
        except BadKnobs as error:
            return str(error)
        if self.kernel.foreign is not None:
            return "This kernel was imported from another tuner: only a row of the Variants tab can be pinned"
        return illegal_because(self.kernel, schedule, self.target) or ""


def read_pinnable(kernel_key: str) -> Callable[[Store], Pinnable]:
    """The question that a desk answers. The context is the one that the kernel was measured in last."""

    def question(store: Store) -> Pinnable:
        kernel = store.kernel(kernel_key)
        context = pin_context(store, kernel_key)
        best = store.best_known(kernel_key, context)
        return Pinnable(kernel, context, store.target(context), best.schedule if best else None)

    return question


class Pinning:
    """One session's changes of pins. `changed` is called when the database has another pin than before."""

    def __init__(self, desk: Desk, outlet: Outlet, changed: Callable[[], None]) -> None:
        self._desk = desk
        self._outlet = outlet
        self._changed = changed
        self._done: list[tuple[str, PinChange]] = []

    @property
    def undoable(self) -> bool:
        return bool(self._done)

    def pin(self, label: str, kernel_key: str, context_key: str, schedule: Schedule, note: str) -> None:
        who = author()
        self._do(
            f"pinned {label} {short_words(schedule.as_dict())}",
            lambda store: store.record_pin(kernel_key, schedule, context_key, author=who, note=note),
        )

    def pin_typed(self, pinnable: Pinnable, text: str) -> None:
        """Pin what was typed; what only the database knows of it, such as a controls file that it names, is judged."""
        kernel, context = pinnable.kernel, pinnable.context_key
        schedule, note = pinnable.read(text)

        def judged(reason: str) -> None:
            if reason:
                self._outlet.warn(reason)
            else:
                self.pin(kernel.label or kernel.family, kernel.key, context, schedule, note)

        self._desk.ask(
            "pinnable", lambda store: unpinnable_because(kernel, schedule, store, context), judged, self._outlet.warn
        )

    def unpin(self, label: str, kernel_key: str, context_key: str) -> None:
        again = self._outlet.key("pin")

        def act(store: Store) -> PinChange:
            places = ((one.pin.kernel_key, one.context_key) for one in store.pins())
            if (kernel_key, context_key) not in places:
                raise StoreError(
                    f"{label} has no pin here any more: somebody else took it away, and {again} pins it again"
                )
            return store.unpin(kernel_key, context_key)

        self._do(f"unpinned {label}", act)

    def undo(self) -> None:
        if not self._done:
            self._outlet.warn("no change of a pin is left to undo")
            return
        what, change = done = self._done.pop()

        def act(store: Store) -> None:
            store.undo_pin(change)

        def then(_: None) -> None:
            self._outlet.say(f"undone: {what}")
            self._changed()

        self._desk.write(act, then, self._outlet.warn, lambda: self._done.append(done), what=f"the undoing of: {what}")

    def _do(self, what: str, act: Callable[[Store], PinChange]) -> None:
        def then(change: PinChange) -> None:
            self._done.append((what, change))
            self._outlet.say(f"{what}; {self._outlet.key('undo_pin')} undoes it")
            self._changed()

        self._desk.write(act, then, self._outlet.warn, what=what)

    def did_many(self, what: str, changes: list[PinChange]) -> None:
        """Changes that were made elsewhere, one by one undone."""
        self._done += [(what, change) for change in changes]
        self._changed()
