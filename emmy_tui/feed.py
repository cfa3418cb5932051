"""Events from a source into the snapshot, in bounded bites, so that a flood of them never holds up a key press.

Frozen, the feed goes on taking events and keeps them in order; unfrozen, it folds them all: the view then equals one
that was never frozen.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from itertools import islice

from emmy_tui.run_clock import RunClock
from emmy_tui.source import Anew, Source
from engine.events import CandidateStarted, Event, Measured, NodeOpened, NodeVisited, RunState, StateChanged
from engine.snapshot import Snapshot, apply

BITE_EVENTS = 5000
BITE_S = 0.008
CHUNK = 256
HELD_LIMIT = 200_000
SETTLED_EVENTS = 20_000


class Feed:
    """Owned by the screen's thread. `state` and `reason` are the run's newest, also while the view is frozen."""

    def __init__(self, source: Source, bite_s: float = BITE_S) -> None:
        self.source = source
        self._bite_s = bite_s
        self.snapshot = Snapshot()
        self.clock = RunClock()
        self.frozen = False
        self.state: str = RunState.IDLE
        self.reason = ""
        self._held: deque[Event] = deque()
        self._touched: set[str] = set()
        self._unsettled = 0

    @property
    def held(self) -> int:
        return len(self._held)

    def bite(self) -> bool:
        """Take one bite of what waits; True if more may be waiting.

        A view frozen for so long that the held events reach their limit is unfrozen: memory is bounded.
        """
        if self.frozen and self.held >= HELD_LIMIT:
            self.frozen = False
        return self._hold() if self.frozen else self._fold()

    def _hold(self) -> bool:
        events = self._drain(BITE_EVENTS)
        self._held.extend(events)
        return len(events) >= BITE_EVENTS

    def _fold(self) -> bool:
        ends = time.perf_counter() + self._bite_s
        folded = 0
        while folded < BITE_EVENTS:
            events = self._next(min(CHUNK, BITE_EVENTS - folded))
            if not events:
                return False
            for event in events:
                self._fold_one(event)
            folded += len(events)
            self._settle(len(events))
            if time.perf_counter() > ends:
                return True
        return True

    def _settle(self, folded: int) -> None:
        """Spare the garbage collector what was folded: rows stay, and walking a million of them stops the screen."""
        self._unsettled += folded
        if self._unsettled >= SETTLED_EVENTS:
            self._unsettled = 0
            gc.freeze()

    def _fold_one(self, event: Event) -> None:
        if isinstance(event, Anew):
            self.snapshot, self.clock = Snapshot(), RunClock()
            self._touched.clear()
            return
        if isinstance(event, NodeVisited | NodeOpened | CandidateStarted | Measured):
            self._touched.add(event.node)
        apply(self.snapshot, event)
        self.clock.note(event)

    def _next(self, limit: int) -> list[Event]:
        if not self._held:
            return self._drain(limit)
        events = list(islice(self._held, limit))
        for _ in events:
            self._held.popleft()
        return events

    def _drain(self, limit: int) -> list[Event]:
        events = self.source.drain(limit)
        for event in reversed(events):
            if isinstance(event, StateChanged):
                self.state, self.reason = event.state, event.reason
                break
        return events

    def take_touched(self) -> set[str]:
        """The tree nodes that changed since the last call."""
        touched, self._touched = self._touched, set()
        return touched
