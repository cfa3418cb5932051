"""The first lines of every child process: die with the parent, ignore the terminal, open the channel."""

from __future__ import annotations

import ctypes
import os
import signal

from engine.measure.channel import Channel

_PR_SET_PDEATHSIG = 1


def open_channel(read_fd: int, write_fd: int, parent: int) -> Channel:
    """Tie this process's life to `parent` and return the channel to it. Exits at once if the parent is gone already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for fd in (read_fd, write_fd):
        os.set_inheritable(fd, False)
    return Channel(read_fd, write_fd)
