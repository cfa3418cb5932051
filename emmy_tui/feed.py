"""Events from a source into the snapshot, in bounded bites, so that a flood of them never holds up a key press.

Frozen, the feed goes on taking events and keeps them in order; unfrozen, it folds them all: the view then equals one
that was never frozen. Where a source begins anew while it still reads, what was shown stays until all was read: a past
that is played through in seconds is no state of anything.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from itertools import islice

from emmy_tui.known import fold
from emmy_tui.run_clock import RunClock
from emmy_tui.source import Anew, Source
from engine.events import CandidateStarted, Event, Measured, NodeOpened, NodeVisited, RunState, StateChanged
from engine.snapshot import Snapshot

BITE_EVENTS = 5000
BITE_S = 0.008
CHUNK = 256
HELD_LIMIT = 200_000
_OF_A_NODE = (NodeVisited, NodeOpened, CandidateStarted, Measured)


@dataclass(slots=True)
class _Folded:
    """What the events since the last `Anew` come to, with the tree nodes that changed."""

    snapshot: Snapshot = field(default_factory=Snapshot)
    clock: RunClock = field(default_factory=RunClock)
    touched: set[str] = field(default_factory=set)

    def take(self, event: Event) -> None:
        if isinstance(event, _OF_A_NODE):
            self.touched.add(event.node)
        fold(self.snapshot, event)
        self.clock.note(event)


class Feed:
    """Owned by the screen's thread. `state` and `reason` are the run's newest, also while the view is frozen."""

    def __init__(self, source: Source, bite_s: float = BITE_S) -> None:
        self.source = source
        self._bite_s = bite_s
        self._shown = _Folded()
        self._coming: _Folded | None = None
        self.frozen = False
        self.state: str = RunState.IDLE
        self.reason = ""
        self._held: deque[Event] = deque()

    @property
    def snapshot(self) -> Snapshot:
        return self._shown.snapshot

    @property
    def clock(self) -> RunClock:
        return self._shown.clock

    @property
    def reading(self) -> bool:
        """Whether what the source holds already is on its way to the snapshot; a frozen view waits for nothing."""
        coming = self._coming is not None and not (self.frozen or self.source.trouble)
        return coming or self.source.reading

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
            self._show_what_came()
            if not events:
                return False
            for event in events:
                self._fold_one(event)
            folded += len(events)
            if time.perf_counter() > ends:
                return True
        return True

    def _fold_one(self, event: Event) -> None:
        if isinstance(event, Anew):
            self._coming = _Folded()
        else:
            (self._coming or self._shown).take(event)

    def _show_what_came(self) -> None:
        """Show what was read since the last `Anew`, once it is all of it."""
        if self._coming is not None and not (self._held or self.source.reading or self.source.trouble):
            self._shown, self._coming = self._coming, None

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
        touched, self._shown.touched = self._shown.touched, set()
        return touched
