"""Events on their way from the thread that tells them to whoever drains them, bounded."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable

from engine.events import Event, NodeVisited

INBOX_LIMIT = 200_000


class Inbox:
    """Events on their way to whoever drains them. Past the limit, node visits are dropped and counted; nothing else."""

    def __init__(self, limit: int = INBOX_LIMIT) -> None:
        self._events: deque[Event] = deque()
        self._limit = limit
        self._lock = threading.Lock()
        self.dropped = 0

    def put(self, event: Event) -> None:
        self.put_all((event,))

    def put_all(self, events: Iterable[Event]) -> None:
        with self._lock:
            for event in events:
                if len(self._events) >= self._limit and isinstance(event, NodeVisited):
                    self.dropped += 1
                else:
                    self._events.append(event)

    def drain(self, limit: int) -> list[Event]:
        with self._lock:
            return [self._events.popleft() for _ in range(min(limit, len(self._events)))]
