"""What is said of rows that can't be read: one sentence for all that are bad in the same way, and how many more there
are.

One such row must not end a command, a search or a screen, nor be missing from it in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.store.connection import MOST_LEFT_OUT
from engine.store.errors import BadRow
from engine.store.store import Store

SHOWN = 5
"""Sentences that are said at most."""


def unlike(rows: Iterable[BadRow]) -> list[BadRow]:
    """The first of the rows that are bad in each way."""
    first: dict[tuple[str, str], BadRow] = {}
    for row in rows:
        first.setdefault(row.alike, row)
    return list(first.values())


class LeftOut:
    """Tells, each once, the sentences about rows that a store left out; `say` takes one.

    `words` are how many are left out, as it was told last: 1 row, 3 rows, 1000 or more rows; "" for none.
    """

    def __init__(self, store: Store, say: Callable[[str], None]) -> None:
        self._store = store
        self._say = say
        self._met: set[str] = set()
        self._told: set[tuple[str, str]] = set()
        self.words = ""

    def tell(self) -> None:
        """Say what was met since the last call."""
        rows = self._store.bad_rows
        few = "" if len(rows) < MOST_LEFT_OUT else " or more"
        self.words = f"{len(rows)}{few} {'row' if len(rows) == 1 else 'rows'}" if rows else ""
        new = [row for row in unlike(rows) if row.alike not in self._told][: SHOWN - len(self._told)]
        for row in new:
            self._say(f"left out: {row}")
        others = len({str(row) for row in rows} - self._met) - len(new)
        self._met.update(map(str, rows))
        self._told.update(row.alike for row in new)
        if others > 0:
            one = "row" if others == 1 and not few else "rows"
            self._say(f"left out: {others}{few} other {one} that can't be read")
