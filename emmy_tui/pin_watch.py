"""Whether a pin was set or taken away elsewhere: other screens and `emmy pin` write the same file without a word."""

from __future__ import annotations

import time
from collections.abc import Callable

from emmy_tui.desk import Desk
from engine.store import Store

WATCH_S = 0.5
"""How often it is asked."""

Changes = tuple[int, int]
Pins = tuple[int, ...]


class PinWatch:
    """`changed` is called where other pins are in force than at the last look."""

    def __init__(self, desk: Desk, changed: Callable[[], None]) -> None:
        self._desk = desk
        self._changed = changed
        self._waiting = False
        self._looked_at = 0.0
        self._seen: Changes | None = None
        self._pins: Pins | None = None

    def look(self) -> None:
        """Call it on every pulse while the pins are seen. The rows are read only after something was committed."""
        if self._waiting or time.monotonic() - self._looked_at < WATCH_S:
            return
        self._waiting, self._looked_at, seen = True, time.monotonic(), self._seen

        def question(store: Store) -> tuple[Changes, Pins | None]:
            changes = (id(store), store.changes())
            return changes, None if changes == seen else tuple(one.id for one in store.pins())

        self._desk.ask("pin watch", question, self._found, self._blind)

    def _found(self, found: tuple[Changes, Pins | None]) -> None:
        self._waiting, (self._seen, pins) = False, found
        if pins is None or pins == self._pins:
            return
        first, self._pins = self._pins is None, pins
        if not first:
            self._changed()

    def _blind(self, sentence: str) -> None:
        self._waiting = False
