"""Forbidding a corner: the knob values that only failures share, kept out of the next run's search.

Asked before, with what the database says of the corner; listed; and undone one step at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType

from emmy_tui import format as fmt
from emmy_tui.desk import Desk
from emmy_tui.dialogs import ChoiceList, Dialog, TextPanel
from emmy_tui.filter import parse_filter
from emmy_tui.knob_words import long_words, value_text
from emmy_tui.outlet import Outlet
from emmy_tui.pinning import author
from emmy_tui.text import Glyphs, Line, Tone, clean, crop, wrap
from emmy_tui.view import View
from engine.store import CandidateQuery, Compared, Condition, FailureCluster, ForbiddenCorner, Store, StoreError
from engine.vocabulary import KnobValue

Knobs = dict[str, KnobValue]


@dataclass(frozen=True, slots=True)
class Corner:
    """What a cluster would forbid: its kernels by key with their names and families, and what was measured there."""

    knobs: Knobs
    kernels: tuple[tuple[str, str, str], ...]
    candidates: int
    worked: int

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(family for _, _, family in self.kernels))


def read_corner(cluster: FailureCluster) -> Callable[[Store], Corner]:
    """The question that a desk answers."""

    def question(store: Store) -> Corner:
        knobs: Knobs = {knob.name: knob.value for knob in cluster.shared}
        within = tuple(Condition(name, Compared.IS, value_text(value)) for name, value in knobs.items())
        kernels, candidates, worked = [], 0, 0
        for key in dict.fromkeys(row.kernel for row in cluster.rows):
            kernel = store.kernel(key)
            kernels.append((key, kernel.label or kernel.family, kernel.family))
            candidates += len(store.candidate_numbers(CandidateQuery(key, conditions=within)))
            fine = (*within, *parse_filter("st:ok").conditions)
            worked += len(store.candidate_numbers(CandidateQuery(key, conditions=fine)))
        return Corner(knobs, tuple(kernels), candidates, worked)

    return question


def corner_lines(corner: Corner, width: int, glyphs: Glyphs) -> list[Line]:
    """What is about to be forbidden, and what that costs."""
    names = ", ".join(dict.fromkeys(name for _, name, _ in corner.kernels))
    one = "" if corner.candidates == 1 else "s"
    measured = f"{corner.candidates} candidate{one} measured there, {corner.worked} of them worked"
    rows: list[Line] = [[(f"  {row}", Tone.ACCENT)] for row in wrap(clean(long_words(corner.knobs), glyphs), width)]
    rows += [[(f"  {row}", Tone.PLAIN)] for row in wrap(clean(f"of {names}: {measured}.", glyphs), width)]
    families = clean(", ".join(corner.families), glyphs)
    return [
        [],
        *rows,
        [("  The next run proposes nothing with all of these values.", Tone.DIM)],
        [],
        [("  enter ", Tone.KEY), (f"forbid it for {fmt.plural(len(corner.kernels), 'kernel')}", Tone.PLAIN)],
        [("  f     ", Tone.KEY), (f"forbid it for every kernel of {families}", Tone.PLAIN)],
        [("  esc   ", Tone.KEY), ("leave it", Tone.PLAIN)],
        [],
    ]


class ForbidQuestion(Dialog):
    """Answers "kernels", "families" or ""."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,y", "answer('kernels')", show=False),
        Binding("f", "answer('families')", show=False),
        Binding("escape,n,q", "answer", show=False),
    ]

    def __init__(self, view: View, corner: Corner) -> None:
        lines = partial(corner_lines, corner, glyphs=view.glyphs)
        super().__init__(TextPanel(view, lines, "Forbid this corner?", widest=90))


class Forbidding:
    """One session's forbidden corners. `changed` is called with those in force when they are others than before."""

    def __init__(self, desk: Desk, outlet: Outlet, changed: Callable[[Sequence[ForbiddenCorner]], None]) -> None:
        self._desk = desk
        self._outlet = outlet
        self._changed = changed
        self._done: list[tuple[str, tuple[int, ...], bool]] = []
        self.names: Mapping[str, str] = {}
        """Label and shape of the kernels that corners are forbidden for, by their keys."""

    @property
    def undoable(self) -> bool:
        return bool(self._done)

    def forbid(self, corner: Corner, *, whole_families: bool) -> None:
        who, words = author(), long_words(corner.knobs)

        def act(store: Store) -> tuple[int, ...]:
            before = {one.id for one in store.forbidden()}
            if whole_families:
                made = [store.forbid(corner.knobs, family=family, author=who) for family in corner.families]
            else:
                made = [
                    store.forbid(corner.knobs, kernel_key=key, family=family, author=who)
                    for key, _, family in corner.kernels
                ]
            return tuple(one.id for one in made if one.id not in before)

        def then(numbers: tuple[int, ...]) -> None:
            lists = f"{self._outlet.key('list_corners')} lists what is forbidden"
            if numbers:
                self._done.append((f"forbade {words}", numbers, True))
                self._outlet.say(f"forbidden: {words}; {self._outlet.key('undo_forbid')} undoes it, {lists}")
            else:
                self._outlet.say(f"forbidden already: {words}; {lists}")
            self.ask()

        self._desk.write(act, then, self._outlet.warn, what=f"forbade {words}")

    def allow(self, corner: ForbiddenCorner) -> None:
        def then(_: None) -> None:
            self._done.append((f"allowed {corner}", (corner.id,), False))
            self._outlet.say(f"allowed again: {corner}; {self._outlet.key('undo_forbid')} undoes it")
            self.ask()

        self._desk.write(lambda store: store.allow(corner.id), then, self._outlet.warn, what=f"allowed {corner}")

    def undo(self) -> None:
        if not self._done:
            self._outlet.warn("no forbidding or allowing is left to undo")
            return
        what, numbers, forbade = done = self._done.pop()

        def act(store: Store) -> None:
            for number in numbers:
                (store.allow if forbade else store.forbid_again)(number)

        def then(_: None) -> None:
            self._outlet.say(f"undone: {what}")
            self.ask()

        again = f"the undoing of: {what}"
        self._desk.write(act, then, self._outlet.warn, lambda: self._done.append(done), what=again)

    def ask(self) -> None:
        """Read what is forbidden now."""
        self._desk.ask("forbidden", _read_forbidden, self._found, self._outlet.warn)

    def _found(self, found: tuple[Sequence[ForbiddenCorner], Mapping[str, str]]) -> None:
        corners, self.names = found
        self._changed(corners)


def _read_forbidden(store: Store) -> tuple[Sequence[ForbiddenCorner], Mapping[str, str]]:
    """The corners in force, and what their kernels are called."""
    corners = store.forbidden()
    return corners, {key: _name(store, key) for key in {one.kernel_key for one in corners if one.kernel_key}}


def _name(store: Store, key: str) -> str:
    try:
        kernel = store.kernel(key)
    except StoreError:
        return f"kernel {key[:12]}"
    return f"{kernel.label or kernel.family} {kernel.shape_text}"


class CornerChoice(Dialog):
    """Lists what is forbidden; `a` answers with the number of the corner under the cursor, to be allowed again."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "take", show=False),
        Binding("escape,q,enter", "answer", show=False),
    ]

    def __init__(
        self,
        view: View,
        corners: Sequence[ForbiddenCorner],
        names: Mapping[str, str],
        *,
        writable: bool,
    ) -> None:
        self._corners = corners
        self._writable = writable
        texts = [
            f"{one}  for {names.get(one.kernel_key) or f'every {one.family}'}  by {one.author}  {fmt.moment(one.at)}"
            for one in corners
        ]

        def lines(width: int) -> list[Line]:
            return [[(crop(clean(text, view.glyphs), width, view.glyphs), Tone.PLAIN)] for text in texts]

        note = "a allows it again, esc closes" if writable else "esc closes"
        super().__init__(ChoiceList(view, lines, "Forbidden corners", note))

    def action_take(self) -> None:
        if self._corners and self._writable:
            self.dismiss(str(self._corners[self._panel.cursor].id))
