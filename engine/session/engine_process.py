"""The process that an engine has to itself, and how its end is put into words."""

from __future__ import annotations

import os
import subprocess

from engine.measure import Nursery, entry_command
from engine.measure.channel import Channel

CHILD = "engine.session.child"


class EngineProcess:
    """Begins at once. Owned by the thread that makes it, which talks to it, closes it, and outlives it.

    The process has this one's environment and folder. It dies with the thread, and its own children with it.
    """

    def __init__(self, log: int | None = None, module: str = CHILD) -> None:
        """`log` is the fd that it prints to, and whatever a library prints in it; None: what it prints is lost.

        Raises OSError when the process can't be started.
        """
        self._nursery = Nursery()
        try:
            self._child = self._nursery.start(
                entry_command(module),
                "engine",
                output=subprocess.DEVNULL if log is None else log,
                environment=os.environ,
            )
        except BaseException:
            self._nursery.close()
            raise

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def channel(self) -> Channel:
        return self._child.channel

    def kill(self) -> None:
        """End it now. For any thread."""
        self._child.kill()

    def how_it_ended(self) -> str:
        """Of one whose channel closed: "was ended by SIGSEGV", "ended with exit code 3"."""
        death = self._child.death()
        return f"was ended by {death}" if death.startswith(("SIG", "signal")) else f"ended with {death}"

    def close(self) -> None:
        """Leave nothing of it behind."""
        self._nursery.bury(self._child)
        self._nursery.close()
