"""The stem: a process that has done the benchmark process's imports, and that benchmark processes branch off from.

Imports take seconds, a fork takes a few hundredths of one. To fork is safe here only because the stem runs in a single
thread and never touches the GPU: CUDA can't be used in the child of a process that has opened it. What the stem does
between two forks is to read and write small messages.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from engine.measure.channel import Channel, ChannelClosed, Message
from engine.measure.child_side import open_channel
from engine.runtime import load_ahead

Entry = Callable[[int, int, int], None]
REAP_S = 10.0


def main(read_fd: int, write_fd: int, parent: int) -> None:
    """Import, then branch off benchmark processes until the channel closes."""
    channel = open_channel(read_fd, write_fd, parent)
    from engine.measure import worker

    load_ahead()
    serve(channel, worker.main)


def serve(channel: Channel, entry: Entry) -> None:
    """Say that it is ready, or why it may not fork; then answer requests, each of which is one of two.

    {"branch": true}: a process that runs `entry`; its three fds come over the socket that the first message names.
    {"reap": pid}: how a process ended, {"code": exit code or the negative number of a signal}.
    """
    try:
        files = socket.socket(fileno=int(channel.receive()["files"]))
        files.set_inheritable(False)
        if unsafe := unsafe_because():
            channel.send({"unusable": unsafe})
            return
        gc.freeze()  # a collection in a child would copy every page that all of them share
        channel.send({"ready": True})
        while True:
            request = channel.receive()
            channel.send(_reap(int(request["reap"])) if "reap" in request else _branch(channel, files, entry))
    except ChannelClosed:
        return


def unsafe_because() -> str:
    """Why this process must not fork, as a sentence; "" if it may."""
    if any(_path_of(fd).startswith("/dev/nvidia") for fd in os.listdir("/proc/self/fd")):
        return "the imports have opened the GPU"
    others = len(os.listdir("/proc/self/task")) - 1
    return f"the imports have started {others} thread{'s' if others > 1 else ''}" if others else ""


def _path_of(fd: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""


def _branch(channel: Channel, files: socket.socket, entry: Entry) -> Message:
    """{"pid": of the new process}, which leads a group of its own by then, or {"error": why there is none}."""
    _, fds, _, _ = socket.recv_fds(files, 1, 3)
    stem = os.getpid()
    try:
        pid = os.fork()
        if pid == 0:
            _run(channel, files, entry, fds, stem)
    except OSError as error:
        return {"error": str(error)}
    finally:
        for fd in fds:
            os.close(fd)
    with suppress(OSError):  # which it may have done itself, and ended
        os.setpgid(pid, pid)
    return {"pid": pid}


def _run(channel: Channel, files: socket.socket, entry: Entry, fds: list[int], stem: int) -> NoReturn:
    """What the new process does, to its end."""
    code = 1
    try:
        read_fd, write_fd, log = fds
        os.setpgid(0, 0)
        channel.close()
        files.close()
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        entry(read_fd, write_fd, stem)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # where its log is there may be no space
                stream.flush()
        os._exit(code)


def _reap(pid: int) -> Message:
    """A process is asked for once it has ended, or will any moment."""
    deadline = time.monotonic() + REAP_S
    with suppress(ChildProcessError):
        while time.monotonic() < deadline:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return {"code": os.waitstatus_to_exitcode(status)}
            time.sleep(0.005)
    return {"code": None}
