"""How a person's requests reach the engine thread: it looks at a checkpoint between two candidates."""

from __future__ import annotations

import threading
import time


class Stopped(Exception):
    """The run was asked to stop; what is measured is already recorded."""


class Control:
    """Pause, resume, stop and abort, safe from any thread."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._paused = False
        self._stop = False
        self._aborted = False

    def pause(self) -> None:
        with self._condition:
            self._paused = True

    def resume(self) -> None:
        with self._condition:
            self._paused = False
            self._condition.notify_all()

    def stop(self) -> None:
        """Stop at the next checkpoint."""
        with self._condition:
            self._stop = True
            self._condition.notify_all()

    def abort(self) -> None:
        """Stop without waiting for the candidate in flight."""
        with self._condition:
            self._stop = self._aborted = True
            self._condition.notify_all()

    @property
    def paused(self) -> bool:
        return self._paused and not self._stop

    @property
    def stopping(self) -> bool:
        return self._stop

    @property
    def aborted(self) -> bool:
        return self._aborted

    def checkpoint(self) -> float:
        """Block while paused and return the seconds spent so; raises Stopped once a stop was asked for."""
        started = time.monotonic()
        with self._condition:
            self._condition.wait_for(lambda: self._stop or not self._paused)
            if self._stop:
                raise Stopped
        return time.monotonic() - started
