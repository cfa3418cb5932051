"""The engine's end of the stem: benchmark processes at once as long as there is one, else as slowly as they import.

The stem is the parent of what branches off from it, so it is the one that reaps; but the engine kills, by the number
of a group that the stem has not reaped yet. A process that branched off dies with the stem, and the stem with the
thread that owns it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from engine.measure.channel import ChannelClosed, Message
from engine.measure.process import Child, Nursery, holds_within

ANSWER_S = 30.0
"""A stem that doesn't answer for so long is given up."""


class Stem:
    """Starts the benchmark processes of one device. For the thread that owns them; `interrupt` is for any."""

    def __init__(self, nursery: Nursery, command: Sequence[str], stem_command: Sequence[str], name: str) -> None:
        """`command` runs a benchmark process that imports for itself: what there is without a stem.

        Without a `stem_command` no stem is ever tried.
        """
        self._nursery = nursery
        self._command = tuple(command)
        self._stem_command = tuple(stem_command)
        self._name = name
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._files: socket.socket | None = None
        self._given_up = not stem_command
        self._interrupted = False
        self._bears = False
        self.missing = ""
        """Why there is none; "" as long as there is one, and where none was asked for."""

    @property
    def stands(self) -> bool:
        """Whether the next process starts at once."""
        return self._child is not None and not self._given_up and not self._child.ended

    def start(self, name: str, limit_s: float) -> Child:
        """A benchmark process; `name` is that of its log. The first waits for the stem's imports, `limit_s` at most.

        Raises OSError when it can't be started in either way.
        """
        if not self._given_up:
            try:
                self._grow(limit_s)
                child = self._nursery.begin(self._branch, name)
            except (ChannelClosed, TimeoutError, OSError) as error:
                self._given_up = True
                if not self._interrupted:
                    self.missing = self._why(error, limit_s)
            else:
                self._bears = True
                return child
        if self._interrupted:
            raise OSError("the device is closed")
        return self._nursery.start(self._command, name)

    def has_fallen(self) -> bool:
        """Whether the stem has died and taken along what branched off from it; True once."""
        fallen = self._bears and not self._interrupted and self._child is not None and self._child.ended
        if fallen:
            self._bears = False
        return fallen

    def reap(self, pid: int) -> int | None:
        """How a process that has branched off and ended did end; None where nobody can tell. From any thread."""
        with suppress(ChannelClosed, TimeoutError, KeyError, TypeError):
            return int(self._ask({"reap": pid})["code"])
        return None

    def interrupt(self) -> None:
        """From any thread, for good: the stem dies, and takes along what branched off from it."""
        self._interrupted = True
        child = self._child
        if child is not None:
            child.kill()

    def close(self) -> None:
        """Once nothing that branched off is left."""
        self.interrupt()
        if self._child is not None:
            self._nursery.bury(self._child)
        if self._files is not None:
            self._files.close()

    def _grow(self, limit_s: float) -> None:
        """See to it that there is a stem. Raises OSError, ChannelClosed or TimeoutError."""
        if self._child is not None:
            return
        self._files, theirs = socket.socketpair()
        with theirs:
            child = self._child = self._nursery.start(self._stem_command, self._name, (theirs.fileno(),))
            if self._interrupted:
                child.kill()
            child.channel.send({"files": theirs.fileno()})
        try:
            answer = child.channel.receive(limit_s)
        except TimeoutError:
            child.kill()
            raise
        if "unusable" in answer:
            raise OSError(answer["unusable"])

    def _why(self, error: Exception, limit_s: float) -> str:
        if isinstance(error, TimeoutError):
            return f"its imports did not end within {limit_s:.0f} s"
        if isinstance(error, ChannelClosed | ConnectionError) and self._child is not None:
            death, line = self._child.death(), self._child.last_line()
            return f"it died of {death}" + (f" after printing: {line}" if line else "")
        return str(error)

    def _branch(self, read_fd: int, write_fd: int, log_fd: int) -> _Branched:
        if self._files is None:
            raise ChannelClosed("there is no stem")
        socket.send_fds(self._files, [b"."], [read_fd, write_fd, log_fd])
        answer = self._ask({"branch": True})
        if "pid" not in answer:
            raise OSError(answer["error"])
        return _Branched(self, int(answer["pid"]))

    def _ask(self, request: Message) -> Message:
        """One that doesn't answer is killed: its next answer would be taken for another request's."""
        child = self._child
        if child is None:
            raise ChannelClosed("there is no stem")
        with self._lock:
            child.channel.send(request)
            try:
                return child.channel.receive(ANSWER_S)
            except TimeoutError:
                child.kill()
                raise


class _Branched:
    """A process that branched off from the stem and leads a group of its own."""

    def __init__(self, stem: Stem, pid: int) -> None:
        self.pid = pid
        self._stem = stem

    def ends(self, limit_s: float) -> bool:
        """By what /proc says of it: it is another process's child."""
        return holds_within(limit_s, self._is_over)

    def reap(self, limit_s: float) -> int | None:
        return self._stem.reap(self.pid) if self.ends(limit_s) else None

    def _is_over(self) -> bool:
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return True
        return text.rpartition(")")[2].split()[0] in ("Z", "X")
