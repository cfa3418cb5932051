"""When Python's garbage collector looks at what: a look at everything stops the screen.

By itself it looks at everything each time a quarter more objects live, on the thread that made the last of them, while
every other thread waits: 50 to 100 ms as a database of 100,000 events is first read. Hardly anything of it is garbage:
events, rows and tree nodes are in no cycles, and go as soon as nobody holds them. Here only the young are looked at by
themselves; the rest is on the screen's pulse, and where many have stayed then, they are not looked at again. So a look
is at what has come since the one before, and what was in a cycle, as a dialog is, goes with it.
"""

from __future__ import annotations

import gc

YOUNG, MIDDLE, NEVER = 5000, 2, 1 << 30
"""After how many new objects the youngest are looked at, and every how many looks those that stayed; and all: never."""
LOOKS = 2
"""Looks at those that stayed from which on a pulse looks at all."""
MANY, VERY_MANY = 10_000, 100_000
"""Objects whose look takes a few ms, and one that is felt."""


def begin() -> None:
    """Once per process, as the screen begins: what was imported stays, and isn't looked at again."""
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, NEVER)


def look(*, covered: bool) -> None:
    """Call it on the screen's pulse, or more often; without `begin` it does nothing.

    Where a dialog has `covered` the screen, only very many are spared: the dialog would stay with them.
    """
    if gc.get_threshold()[2] == NEVER and gc.get_count()[2] >= LOOKS:
        gc.collect()
        if len(gc.get_objects(generation=2)) >= (VERY_MANY if covered else MANY):
            gc.freeze()
