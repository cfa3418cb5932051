"""Whether a run that never told of its end is taken for ended: one rule for lists of runs and for the status line.

A run's silence is reckoned by the clock of whoever listens: what arrives while one listens is heard when it arrives,
as the writer's clock may be another machine's. Only of what was there at the first look there is no other word than the
writer's. Either clock may be set back: what has passed since a word was heard has passed all the same.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field

from emmy_tui.source import ENDED
from engine.events import RunState
from engine.store import Store, StoredRun

GONE_S = 600.0
"""A run that wrote nothing for so long is taken for ended."""
WITHOUT_A_WORD = "ended without a word"


def heard_at(said_at: float, now: float, *, first_look: bool) -> float:
    """When a word of a run was heard that was said at `said_at` by the writer's clock."""
    return min(said_at, now) if first_look else now


def silent_words(seconds: float) -> str:
    """How long nothing was heard, in whole units that have passed: 11m, 3h, 2d."""
    if seconds < 3600:
        return f"{seconds // 60:.0f}m"
    return f"{seconds // 3600:.0f}h" if seconds < 48 * 3600 else f"{seconds // 86400:.0f}d"


class Onward:
    """The time of a clock that may be set back, as one that goes on from where it was; several threads may tell it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = -math.inf
        self._behind = 0.0

    def at(self, now: float) -> float:
        """Seconds since 1970, and what the clock was set back by since the first look."""
        with self._lock:
            self._behind += max(0.0, self._last - now)
            self._last = now
            return now + self._behind


@dataclass(slots=True)
class Listener:
    """Listens to one run by looking again and again at what it wrote last."""

    run: StoredRun
    _said_at: float | None = None
    _heard_at: float = 0.0
    _onward: Onward = field(default_factory=Onward)

    def lost(self, store: Store, now: float) -> bool:
        """Whether the run ended without a word, by all that was heard up to this look. Raises StoreError."""
        said_at = store.last_heard(self.run.id) or self.run.started_at
        now = self._onward.at(now)
        if said_at != self._said_at:
            self._heard_at = heard_at(said_at, now, first_look=self._said_at is None)
            self._said_at = said_at
        newest = store.latest_run()
        silent = now - self._heard_at > GONE_S
        return is_lost(store.run(self.run.id), newest=newest is None or newest.id == self.run.id, silent=silent)


def is_lost(run: StoredRun, *, newest: bool, silent: bool) -> bool:
    """Whether a run that has no end is taken for ended: a newer one has begun, or it is silent and owes a word, as one
    that is paused does not."""
    ended = run.state in ENDED or run.ended_at is not None
    return not ended and (not newest or (silent and run.state != RunState.PAUSED))


def state_word(run: StoredRun, lost: bool) -> str:
    """A run's state in words."""
    return WITHOUT_A_WORD if lost else run.state
