"""How a person's requests reach the engine's threads: they look at a checkpoint between two candidates."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.vocabulary import Schedule


class Stopped(Exception):
    """The run was asked to stop; what is measured is already recorded."""


class Skipped(Exception):
    """The kernel that is being tuned was asked to end; the run goes on with the next one."""


class Verb(StrEnum):
    """What a person can ask of a run."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    SKIP = "skip"
    PATIENCE = "patience"
    RETUNE = "retune"
    KILL = "end a compile"


@dataclass(frozen=True, slots=True)
class Act:
    """One request as it was made: `at` is seconds since 1970 (UTC), `value` the new patience where that changed."""

    verb: Verb
    at: float
    kernel: str = ""
    value: int = 0
    detail: str = ""
    author: str = ""


@dataclass(frozen=True, slots=True)
class Retune:
    """A kernel to tune again, by its structural key; with `schedule`, that one candidate is measured instead."""

    kernel: str
    schedule: Schedule | None = None


class Control:
    """Pause, resume, stop, abort, skip, patience and queue, safe from any thread.

    `paused_s` is how long it has been paused, in seconds. `author` is put down with what is asked.
    """

    def __init__(self, author: str = "") -> None:
        self._condition = threading.Condition()
        self._author = author
        self._paused = False
        self._stop = False
        self._aborted = False
        self._ended = False
        self._paused_s = 0.0
        self._paused_since = 0.0
        self._skipped: set[str] = set()
        self._patience: dict[str, int] = {}
        self._acts: deque[Act] = deque()
        self._queue: deque[Retune] = deque()

    def pause(self) -> None:
        with self._condition:
            if not self._paused:
                self._paused = True
                self._paused_since = time.monotonic()
                self._note(Verb.PAUSE)

    def resume(self) -> None:
        with self._condition:
            if self._paused:
                self._note(Verb.RESUME)
            self._go_on()
            self._condition.notify_all()

    def stop(self) -> None:
        """Stop at the next checkpoint; what is queued is let go."""
        with self._condition:
            if not self._stop:
                self._note(Verb.STOP)
            self._go_on()
            self._stop = True
            self._queue.clear()
            self._condition.notify_all()

    def abort(self) -> None:
        """Stop without waiting for the candidate in flight."""
        with self._condition:
            self._go_on()
            self._stop = self._aborted = True
            self._queue.clear()
            self._condition.notify_all()

    def skip(self, kernel: str) -> None:
        """End the kernel's search with what it has, also while a candidate of it hangs."""
        with self._condition:
            if kernel not in self._skipped:
                self._skipped.add(kernel)
                self._note(Verb.SKIP, kernel)
            self._condition.notify_all()

    def note(self, verb: Verb, kernel: str = "", detail: str = "") -> None:
        """Put down what was done beside the checkpoints."""
        with self._condition:
            self._note(verb, kernel, 0, detail)

    def begin(self, kernel: str) -> None:
        """The kernel is tuned again: that its earlier search was skipped doesn't end this one."""
        with self._condition:
            self._skipped.discard(kernel)

    def set_patience(self, kernel: str, patience: int) -> None:
        """The kernel's patience from now on. Raises ValueError below 1."""
        if patience < 1:
            raise ValueError(f"patience must be at least 1, not {patience}")
        with self._condition:
            self._patience[kernel] = patience
            self._note(Verb.PATIENCE, kernel, patience, str(patience))

    def patience(self, kernel: str, usual: int) -> int:
        """What was asked for this kernel, else the usual one."""
        with self._condition:
            return self._patience.get(kernel, usual)

    def enqueue(self, wanted: Sequence[Retune]) -> bool:
        """Put kernels after what is on now; False when nothing is on that could take them, or a stop was asked for."""
        with self._condition:
            if self._ended or self._stop:
                return False
            waiting = set(self._queue)
            for one in wanted:
                if one not in waiting:
                    waiting.add(one)
                    self._queue.append(one)
                    self._note(Verb.RETUNE, one.kernel, 0, str(one.schedule or ""))
            return True

    def take(self) -> Retune | None:
        """The next of the queue; None when it is empty, after which nothing can be queued any more."""
        with self._condition:
            if self._queue and not self._stop:
                return self._queue.popleft()
            self._ended = True
            return None

    def take_acts(self) -> list[Act]:
        """What was asked since the last call, in order."""
        with self._condition:
            taken = list(self._acts)
            self._acts.clear()
            return taken

    @property
    def queue(self) -> tuple[Retune, ...]:
        with self._condition:
            return tuple(self._queue)

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

    def check_skip(self, kernel: str) -> None:
        """Raises Skipped once the kernel was asked to end."""
        with self._condition:
            if kernel in self._skipped:
                raise Skipped

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

    def _note(self, verb: Verb, kernel: str = "", value: int = 0, detail: str = "") -> None:
        self._acts.append(Act(verb, time.time(), kernel, value, detail, self._author))

    def _go_on(self) -> None:
        if self._paused:
            self._paused = False
            self._paused_s += time.monotonic() - self._paused_since
