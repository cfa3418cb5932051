"""How a person's requests reach the engine's threads: they look at a checkpoint between two candidates."""

from __future__ import annotations

import threading
import time


class Stopped(Exception):
    """The run was asked to stop; what is measured is already recorded."""


class Control:
    """Pause, resume, stop and abort, safe from any thread. `paused_s` is how long it has been paused, in seconds."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._paused = False
        self._stop = False
        self._aborted = False
        self._paused_s = 0.0
        self._paused_since = 0.0

    def pause(self) -> None:
        with self._condition:
            if not self._paused:
                self._paused = True
                self._paused_since = time.monotonic()

    def resume(self) -> None:
        with self._condition:
            self._go_on()
            self._condition.notify_all()

    def stop(self) -> None:
        """Stop at the next checkpoint."""
        with self._condition:
            self._go_on()
            self._stop = True
            self._condition.notify_all()

    def abort(self) -> None:
        """Stop without waiting for the candidate in flight."""
        with self._condition:
            self._go_on()
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

    @property
    def paused_s(self) -> float:
        with self._condition:
            return self._paused_s + (time.monotonic() - self._paused_since if self._paused else 0.0)

    def checkpoint(self) -> None:
        """Block while paused; raises Stopped once a stop was asked for."""
        with self._condition:
            self._condition.wait_for(lambda: self._stop or not self._paused)
            if self._stop:
                raise Stopped

    def wait_paused(self, limit_s: float) -> None:
        """Block while paused, for `limit_s` seconds at most; raises Stopped once a stop was asked for."""
        with self._condition:
            self._condition.wait_for(lambda: self._stop or not self._paused, limit_s)
            if self._stop:
                raise Stopped

    def _go_on(self) -> None:
        if self._paused:
            self._paused = False
            self._paused_s += time.monotonic() - self._paused_since
