"""JSON messages over a pair of pipes: how the engine and its child processes talk.

File descriptors of their own, because stdout and stderr of a child belong to the driver, to ptxas and to whoever
prints.
"""

from __future__ import annotations

import json
import os
import select
import time
from typing import Any

Message = dict[str, Any]


class ChannelClosed(Exception):
    """The process at the other end is gone."""


class Channel:
    """One end. Used by one thread; `close` may come from another once the process at the other end is dead."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._buffer = bytearray()

    def send(self, message: Message) -> None:
        """Raises ChannelClosed when nobody reads any more."""
        data = memoryview(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        try:
            while data:
                data = data[os.write(self._write_fd, data) :]
        except OSError as error:
            raise ChannelClosed(str(error)) from None

    def receive(self, timeout_s: float | None = None) -> Message:
        """The next message. Raises TimeoutError after `timeout_s`, ChannelClosed when the other end is gone."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            self._fill(deadline)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        try:
            message = json.loads(line)
        except ValueError:
            raise ChannelClosed("unreadable message") from None
        if not isinstance(message, dict):
            raise ChannelClosed("unreadable message")
        return message

    def close(self) -> None:
        for fd in (self._read_fd, self._write_fd):
            try:
                os.close(fd)
            except OSError:
                continue

    def _fill(self, deadline: float | None) -> None:
        poll = select.poll()
        poll.register(self._read_fd, select.POLLIN | select.POLLHUP)
        left_ms = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1e3
        if not poll.poll(left_ms):
            raise TimeoutError
        try:
            data = os.read(self._read_fd, 1 << 16)
        except OSError as error:
            raise ChannelClosed(str(error)) from None
        if not data:
            raise ChannelClosed("end of file")
        self._buffer += data
