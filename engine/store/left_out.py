"""What is said of rows that can't be read: one sentence a row, and of many how many more.

One such row must not end a command, a search or a screen, nor be missing from it in silence.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.store.connection import MOST_LEFT_OUT
from engine.store.store import Store

SHOWN = 5


class LeftOut:
    """Tells, each once, the sentences about rows that a store left out; `say` takes one."""

    def __init__(self, store: Store, say: Callable[[str], None]) -> None:
        self._store = store
        self._say = say
        self._met = 0

    def tell(self) -> None:
        """Say what was met since the last call."""
        fresh = self._store.left_out[self._met :]
        room = max(0, SHOWN - self._met)
        self._met += len(fresh)
        for sentence in fresh[:room]:
            self._say(f"left out: {sentence}")
        if len(fresh) > room:
            few = "" if self._met < MOST_LEFT_OUT else " or more"
            self._say(f"left out: {len(fresh) - room}{few} other rows that can't be read")
