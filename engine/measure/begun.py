"""A benchmark process from its start to its hello: it imports, says that it is ready, and opens the GPU when told to.

The two halves are apart because only the second touches the GPU. A process that imports may stand beside one that
times; one that opens a context may not, so whoever begins it decides when that is.
"""

from __future__ import annotations

import time
from contextlib import suppress

from engine.measure.channel import ChannelClosed, Message
from engine.measure.process import Child


class Begun:
    """For the thread that owns the child. Each method raises ChannelClosed when the process is gone."""

    def __init__(self, child: Child, first: Message) -> None:
        """`first` is what tells it to open the GPU."""
        self.child = child
        self.since = time.monotonic()
        self._first = first
        self._ready = False
        self._told = False
        self._hello: Message | None = None

    @property
    def opening(self) -> bool:
        """Whether it is at the GPU right now."""
        return self._told and self._hello is None

    @property
    def pending(self) -> bool:
        """Whether it has not said hello yet."""
        return self._hello is None

    def prepare(self) -> None:
        """Tell it to open the GPU if its imports are done; returns at once."""
        self.look()
        if self._ready:
            self._tell()

    def look(self) -> None:
        """Take in what it has said; returns at once."""
        with suppress(TimeoutError):
            while True:
                self._hear(self.child.channel.receive(0.0))

    def hello(self, limit_s: float) -> Message:
        """What it says once the GPU is open, or the sentence under "unusable". Raises TimeoutError after `limit_s`."""
        deadline = time.monotonic() + limit_s
        self._tell()
        while self._hello is None:
            self._hear(self.child.channel.receive(max(0.0, deadline - time.monotonic())))
        return self._hello

    def settled(self, limit_s: float) -> bool:
        """Whether it is of use, and leaves the GPU alone: one that opens it is waited for."""
        try:
            if self.opening:
                self.hello(limit_s)
            else:
                self.look()
        except (ChannelClosed, TimeoutError):
            return False
        return self._hello is None or "unusable" not in self._hello

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            self.child.channel.send(self._first)

    def _hear(self, message: Message) -> None:
        if "ready" in message:
            self._ready = True
        else:
            self._hello = message
