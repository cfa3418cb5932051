"""A disk without space, or another process's lock on the database, holds a run and ends none: the write that met it
waits, and is written when there is room and the lock is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from engine.events import RunState
from engine.store import StoreFull, StoreLocked
from engine.tune.control import Control, Stopped

RETRY_S = 2.0
"""How often a run that waits for space, or for a lock, looks whether it can go on, in seconds."""

Answer = TypeVar("Answer")


class FullDisk:
    """Pauses the run while a write finds no space or a lock. `change_state` tells people, with the reason.

    The run goes on by itself, or as soon as a person resumes it. A pause that a person asked for before stays.
    """

    def __init__(self, control: Control, change_state: Callable[[RunState, str], None]) -> None:
        self._control = control
        self._change_state = change_state

    def outlast(self, write: Callable[[], Answer]) -> Answer:
        """What `write` returns once it succeeds. Raises StoreFull or StoreLocked when the run is stopped meanwhile."""
        asked_before = self._control.paused
        gone = ""
        told = False
        while True:
            try:
                answer = write()
            except (StoreFull, StoreLocked) as error:
                locked = isinstance(error, StoreLocked)
                gone = "the database isn't locked any more" if locked else "there is space on the disk again"
                if not told:
                    self._control.pause()
                    cause = str(error).partition(";")[0]
                    when = "that has ended" if locked else "there is space"
                    self._change_state(RunState.PAUSED, f"{cause}; the run waits, and goes on by itself when {when}")
                try:
                    self._control.wait_paused(RETRY_S)
                except Stopped:
                    raise error from None
                told = self._control.paused
            else:
                if gone and not asked_before:
                    self._control.resume()
                    self._change_state(RunState.RUNNING, gone)
                return answer
