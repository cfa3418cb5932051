"""What code does besides computing while it is captured: print, log, files, sockets, processes, clocks, random numbers.

A capture runs the code once more than the caller asked for, and kernels repeat only what it computes. So whatever
leaves the code is stopped before it happens. Python names each function of C's before it is called, to this thread
alone; who called is told by the files of the frames. What torch and installed packages do on their own isn't counted:
they log and look for files all the time.
"""

from __future__ import annotations

import functools
import io
import logging
import pickle
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import torch

_STANDARD = str(Path(functools.__file__).parent)
_OWN = (str(Path(torch.__file__).parent), str(Path(__file__).resolve().parents[1]))
_PACKAGES = ("site-packages", "dist-packages")

_PRINTS = "prints"
_FILES = "reaches files, sockets or other processes"
_CLOCK = "asks the clock"
_RANDOM = "draws random numbers outside of torch"

_BUILTIN = {"print": _PRINTS, "input": _PRINTS, "breakpoint": _PRINTS}
_CLOCKS = frozenset(
    {
        *("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time", "sleep"),
        *("process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns"),
        *("localtime", "gmtime", "ctime", "strftime", "now", "utcnow", "today"),
    }
)
_PURE_OF_SYSTEM = frozenset({"fspath", "getpid", "getppid", "cpu_count", "sched_getaffinity", "get_terminal_size"})
_OUTSIDE = frozenset({"_posixsubprocess", "_socket", "_sqlite3", "sqlite3", "mmap", "fcntl", "select"})
_THREADS = frozenset({"start_new_thread", "start_joinable_thread"})
_STREAMS = (io.RawIOBase, io.BufferedIOBase, io.TextIOBase)
_IN_MEMORY = (io.StringIO, io.BytesIO)
_OF_STREAMS = frozenset(
    {"write", "writelines", "read", "read1", "readinto", "readline", "readlines", "readall", "truncate", "__next__"}
)
_DRAWING = (random.Random, np.random.RandomState, np.random.Generator)


class Leaves(BaseException):
    """Raised in the code in place of what it was about to do; no `except Exception` of the code's catches it."""


@contextmanager
def kept_inside() -> Iterator[None]:
    """Raises Leaves, whose text is a sentence, where code in the block would do something outside of it.

    A profiler of the user's is called as before; one that is written in C can't be, and then nothing is seen.
    """
    prior: Any = sys.getprofile()
    if prior is not None and not callable(prior):
        yield
        return
    drawn = _drawn()
    sys.setprofile(_Watching(prior))
    try:
        yield
    finally:
        sys.setprofile(prior)
    # Python isn't told of functions that were made by Cython
    if _drawn() != drawn:
        raise Leaves(_text(_RANDOM, "numpy.random"))


def _drawn() -> bytes:
    """How far NumPy's own random numbers have come."""
    return pickle.dumps(np.random.get_state(legacy=False))


class _Watching:
    """Called by Python at each call in this thread."""

    def __init__(self, prior: Callable[..., Any] | None) -> None:
        self._prior = prior
        self._codes = {logging.Logger.makeRecord.__code__: "writes a log"}
        for stream in (sys.stdout, sys.stderr):
            code = getattr(getattr(type(stream), "write", None), "__code__", None)
            if isinstance(code, CodeType):
                self._codes[code] = _PRINTS

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        does, caller = "", frame
        if event == "c_call":
            does = _done_by(arg)
        elif event == "call" and frame.f_code in self._codes and frame.f_back is not None:
            does, caller = self._codes[frame.f_code], frame.f_back
        if does and _is_asked_by_user(caller):
            raise Leaves(_text(does, arg.__name__ if event == "c_call" else ""))
        if self._prior is not None:
            self._prior(frame, event, arg)


def _text(does: str, name: str) -> str:
    return f"It {does} while it runs{f' ({name})' if name else ''}, which kernels don't repeat."


def _done_by(function: Any) -> str:
    """What calling this function of C's does outside of the code, in words; "" if nothing."""
    name, owner = function.__name__, function.__self__
    module = str(getattr(function, "__module__", None) or getattr(owner, "__name__", ""))
    if module == "builtins":
        return _BUILTIN.get(name, "")
    if module == "time" or (isinstance(owner, type) and owner.__module__ == "datetime"):
        return _CLOCK if name in _CLOCKS else ""
    if isinstance(owner, _DRAWING):
        return _RANDOM
    if isinstance(owner, _STREAMS):
        if owner in (sys.stdout, sys.stderr):
            return _PRINTS if name in _OF_STREAMS else ""
        return _FILES if name in _OF_STREAMS and not isinstance(owner, _IN_MEMORY) else ""
    if module == "posix":
        return "" if name in _PURE_OF_SYSTEM else _FILES
    if name == "open" and module in ("io", "_io"):
        return _FILES
    if module == "_thread":
        return "starts a thread" if name in _THREADS else ""
    return _FILES if module in _OUTSIDE or type(owner).__module__ in ("socket", "_socket", "sqlite3") else ""


def _is_asked_by_user(frame: FrameType | None) -> bool:
    """Whether the user's own code is the first on the way up that is not Python's."""
    while frame is not None:
        file = frame.f_code.co_filename
        if "importlib" in file or any(folder in file for folder in _PACKAGES) or file.startswith(_OWN):
            return False
        if not file.startswith((_STANDARD, "<frozen ")):
            return True
        frame = frame.f_back
    return False
