"""Whether pins were set or taken away elsewhere: other screens and `emmy pin` write the same file without a word."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

from emmy_tui.desk import Desk
from engine.store import Store

T = TypeVar("T")
Changes = tuple[int, int]


class PinWatch(Generic[T]):
    """`read` runs where something was committed since the look before; `seen` gets what it read before, None at first,
    and now. The desk is asked under `topic`, at most every `every_s` seconds."""

    def __init__(
        self,
        desk: Desk,
        topic: str,
        read: Callable[[Store], T],
        seen: Callable[[T | None, T], None],
        every_s: float = 0.0,
    ) -> None:
        self._desk = desk
        self._topic = topic
        self._read = read
        self._seen = seen
        self._every_s = every_s
        self._waiting = False
        self._looked_at = 0.0
        self._changes: Changes | None = None
        self._last: T | None = None

    def look(self) -> None:
        """Call it on every pulse while the pins are seen."""
        if self._waiting or time.monotonic() - self._looked_at < self._every_s:
            return
        self._waiting, self._looked_at, before = True, time.monotonic(), self._changes

        def question(store: Store) -> tuple[Changes, T | None]:
            changes = (id(store), store.changes())
            return changes, None if changes == before else self._read(store)

        self._desk.ask(self._topic, question, self._found, self._blind)

    def _found(self, found: tuple[Changes, T | None]) -> None:
        self._waiting, (self._changes, now) = False, found
        if now is not None:
            before, self._last = self._last, now
            self._seen(before, now)

    def _blind(self, sentence: str) -> None:
        self._waiting = False
