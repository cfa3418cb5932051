"""A disk without space holds a run and ends none: the write that met it waits, and is written when there is room."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from engine.events import RunState
from engine.store import StoreFull
from engine.tune.control import Control, Stopped

RETRY_S = 2.0
"""How often a run that waits for space looks whether there is some, in seconds."""

Answer = TypeVar("Answer")


class FullDisk:
    """Pauses the run while a write finds no space. `change_state` tells people, with the reason.

    The run goes on by itself, or as soon as a person resumes it. A pause that a person asked for before stays.
    """

    def __init__(self, control: Control, change_state: Callable[[RunState, str], None]) -> None:
        self._control = control
        self._change_state = change_state

    def outlast(self, write: Callable[[], Answer]) -> Answer:
        """What `write` returns once it succeeds. Raises StoreFull when the run is stopped meanwhile."""
        asked_before = self._control.paused
        waited = told = False
        while True:
            try:
                answer = write()
            except StoreFull as error:
                waited = True
                if not told:
                    self._control.pause()
                    cause = str(error).partition(";")[0]
                    self._change_state(
                        RunState.PAUSED, f"{cause}; the run waits, and goes on by itself when there is space"
                    )
                try:
                    self._control.wait_paused(RETRY_S)
                except Stopped:
                    raise error from None
                told = self._control.paused
            else:
                if waited and not asked_before:
                    self._control.resume()
                    self._change_state(RunState.RUNNING, "there is space on the disk again")
                return answer
