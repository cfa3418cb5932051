"""Leaving while an act waits to be stored, or a file or a copy is on its way: a moment is waited for it, then a person
is asked, and what act is let go is named where the terminal was given back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from emmy_tui import format as fmt
from emmy_tui.dialogs import UNBOUNDED, Dialog, TextPanel
from emmy_tui.pressing import Pressing
from emmy_tui.text import Line, Tone, clean, crop
from emmy_tui.verbs import EXIT_FAILED
from emmy_tui.view import View

MOMENT_S = 0.4
"""How long an act without a lock in its way may take."""
LOOK_S = 0.05
LISTED = 5
"""Acts that are named in the question."""
STORED = "stored"


class Unstored(Dialog):
    """Answers "wait", "leave", or "" to stay. One that `waits` is dismissed once all is stored."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "answer('wait')", show=False),
        Binding("d", "answer('leave')", show=False),
        Binding("escape,n,q", "answer", show=False),
    ]

    def __init__(self, view: View, acts: Sequence[str], because: str, *, waits: bool = False) -> None:
        told = [(what, Tone.ACCENT) for what in acts[:LISTED]]
        told += [(f"and {len(acts) - LISTED} more", Tone.PLAIN)] if len(acts) > LISTED else []
        told += [(because, Tone.DIM)] if because else []
        asking: list[Line] = [[("  enter ", Tone.KEY), ("wait for it, then quit", Tone.PLAIN)]]
        self._waits = waits

        def lines(width: int) -> list[Line]:
            return [
                [],
                *([(crop(clean(f"  {text}", view.glyphs), width, view.glyphs), tone)] for text, tone in told),
                [],
                *([] if waits else asking),
                [("  d     ", Tone.KEY), ("quit now, and let it go", Tone.PLAIN)],
                [("  esc   ", Tone.KEY), ("stay", Tone.PLAIN)],
                [],
            ]

        title = "Waits, then quits" if waits else f"{fmt.plural(len(acts), 'act')} not stored yet. Quit?"
        super().__init__(TextPanel(view, lines, title, widest=UNBOUNDED))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enter asks for what is done already where it `waits`."""
        return not (self._waits and action == "answer" and parameters == ("wait",))


class Leaving(Pressing):
    """`unstored` says what was let go, once the screen is gone."""

    unstored: tuple[str, ...] = ()
    _waits = False

    @property
    def _undone(self) -> tuple[str, ...]:
        """Acts, files and copies that a person asked for and that are on their way, in words."""
        return (*self.desk.unwritten, *self.outlet.expected)

    @property
    def _refused(self) -> int:
        return self.desk.refused + self.outlet.refused

    def action_leave(self) -> None:
        if not self._undone:
            super().action_leave()
        elif not self._waits:
            self._leave_once_stored(time.monotonic() + MOMENT_S, self._refused)

    def _leave_once_stored(self, asks_at: float, refused: int) -> None:
        """An act that can't be stored keeps the screen, which says why."""
        self._waits = False
        if self._refused != refused or len(self.screen_stack) > 1:
            return
        if not self._undone:
            super().action_leave()
        elif time.monotonic() >= asks_at:
            self.push_screen(Unstored(self.view, self._undone, self.desk.waiting), self._decided)
        else:
            self._waits = True
            self.set_timer(LOOK_S, lambda: self._leave_once_stored(asks_at, refused))

    def _decided(self, answer: str | None) -> None:
        if answer == "wait":
            self._wait_for_it()
        elif answer == "leave":
            self.leave_now(EXIT_FAILED)
        elif answer == STORED:
            super().action_leave()
        else:
            self.desk.patient = False

    def _wait_for_it(self) -> None:
        """As long as it takes: a lock that stays is waited for until a person decides otherwise."""
        self.desk.patient = True
        waiting = Unstored(self.view, self._undone, self.desk.waiting, waits=True)
        self.push_screen(waiting, self._decided)
        self._look_whether_stored(waiting, self._refused)

    def _look_whether_stored(self, waiting: Unstored, refused: int) -> None:
        if waiting not in self.screen_stack:
            return
        ended = not self._undone or self._refused != refused
        if ended and waiting is self.screen:
            waiting.dismiss(STORED if self._refused == refused else "")
        else:
            self.set_timer(LOOK_S, lambda: self._look_whether_stored(waiting, refused))

    async def let_go(self) -> None:
        """End the desk; what is stored within a moment still is."""
        self.unstored = await asyncio.to_thread(self.desk.close, MOMENT_S)
