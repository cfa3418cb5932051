"""What code does besides computing while it is captured: print, log, files, sockets, processes, clocks, random numbers.

A capture runs the code once more than the caller asked for, and kernels repeat only what it computes. So whatever
leaves the code is stopped before it happens. Python names each function of C's before it is called, to this thread
alone; who called is told by the files of the frames. What torch and installed packages do on their own isn't counted:
they log and look for files all the time.
"""

from __future__ import annotations

import inspect
import io
import logging
import pickle
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import numpy as np
import torch

from engine.capture.folders import OURS, STANDARD, TORCH, in_packages

_WRAPPERS = tuple(str(Path(TORCH) / name) for name in ("_compile.py", "_dynamo"))

_PRINTS = "prints"
_FILES = "reaches files, sockets or other processes"
_CLOCK = "asks the clock"
_RANDOM = "draws random numbers outside of torch"
_SETTING = "changes a setting of torch's"
_CACHE = "computes what a cache of functools' keeps"
_OF_SETTINGS = (
    *("manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state", "set_rng_state_all", "set_default_dtype"),
    *("set_default_device", "set_default_tensor_type", "set_float32_matmul_precision", "set_warn_always"),
    *("use_deterministic_algorithms", "set_deterministic_debug_mode", "set_printoptions", "set_device"),
)
_OF_SETTINGS_IN_C = frozenset(
    {
        *("set_num_threads", "set_num_interop_threads", "set_flush_denormal", "set_anomaly_enabled"),
        *("set_autocast_enabled", "set_autocast_dtype", "set_autocast_cache_enabled"),
    }
)
_OF_GENERATORS = frozenset({"manual_seed", "seed", "set_state", "set_offset"})

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


class Fills(Leaves):
    """What it was about to do is to compute an entry of a cache, which would be no real one."""


@contextmanager
def kept_inside(cached: frozenset[CodeType] = frozenset()) -> Iterator[None]:
    """Raises Leaves, whose text is a sentence, where code in the block would do something outside of it, and Fills
    where it would run one of `cached`, the code that computes what a cache keeps.

    A profiler of the user's is called as before; one that is written in C can't be, and then nothing is seen.
    """
    if not can_watch():
        yield
        return
    prior: Any = sys.getprofile()
    drawn, learns = _drawn(), torch.is_grad_enabled()
    sys.setprofile(_Watching(prior, cached))
    try:
        yield
    finally:
        sys.setprofile(prior)
        switched = torch.is_grad_enabled() is not learns
        torch._C._set_grad_enabled(learns)
    if switched:
        raise Leaves(_text(_SETTING, "set_grad_enabled"))
    # Python isn't told of functions that were made by Cython
    if _drawn() != drawn:
        raise Leaves(_text(_RANDOM, "numpy.random"))


def can_watch() -> bool:
    """Whether no profiler is on that is written in C."""
    prior: object = sys.getprofile()
    return prior is None or callable(prior)


def _drawn() -> bytes:
    """How far NumPy's own random numbers have come."""
    return pickle.dumps(np.random.get_state(legacy=False))


class _Watching:
    """Called by Python at each call in this thread."""

    def __init__(self, prior: Callable[..., Any] | None, cached: frozenset[CodeType]) -> None:
        self._prior = prior
        self._cached = cached
        self._codes = {logging.Logger.makeRecord.__code__: "writes a log"}
        self._setters = _setters()
        for stream in (sys.stdout, sys.stderr):
            code = getattr(getattr(type(stream), "write", None), "__code__", None)
            if isinstance(code, CodeType):
                self._codes[code] = _PRINTS

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        does, caller, name = "", frame, ""
        if event == "call" and frame.f_code in self._cached:
            raise Fills(_text(_CACHE, frame.f_code.co_name))
        if event == "c_call":
            does, name = _done_by(arg), arg.__name__
        elif event == "call" and frame.f_code in self._codes and frame.f_back is not None:
            does, caller = self._codes[frame.f_code], frame.f_back
        elif event == "call" and frame.f_code in self._setters and frame.f_back is not None:
            does, caller, name = _SETTING, _without_wrappers(frame.f_back), self._setters[frame.f_code]
        if does and _is_asked_by_user(caller):
            raise Leaves(_text(does, name))
        if self._prior is not None:
            self._prior(frame, event, arg)


def _setters() -> dict[CodeType, str]:
    """The code of torch's functions that change how all later calls compute, and what they are called."""
    named = ((name, getattr(module, name, None)) for module in (torch, torch.cuda) for name in _OF_SETTINGS)
    functions = [(name, inspect.unwrap(one)) for name, one in named if isinstance(one, FunctionType)]
    found = {one.__code__: name for name, one in functions}
    backends = (torch.backends.ContextProp.__set__, type(torch.backends.cuda.matmul).__setattr__)
    return found | {one.__code__: "torch.backends" for one in backends if isinstance(one, FunctionType)}


def _without_wrappers(frame: FrameType) -> FrameType:
    """Who called what torch wraps, to keep its own compiler away from it."""
    while frame.f_code.co_filename.startswith(_WRAPPERS) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _text(does: str, name: str) -> str:
    return f"It {does} while it runs{f' ({name})' if name else ''}, which kernels don't repeat."


def _done_by(function: Any) -> str:
    """What calling this function of C's does outside of the code, in words; "" if nothing."""
    name, owner = function.__name__, function.__self__
    module = str(getattr(function, "__module__", None) or getattr(owner, "__name__", ""))
    if module == "builtins":
        return _BUILTIN.get(name, "")
    if name in _OF_SETTINGS_IN_C and module.partition(".")[0] == "torch":
        return _SETTING
    if module == "time" or (isinstance(owner, type) and owner.__module__ == "datetime"):
        return _CLOCK if name in _CLOCKS else ""
    if isinstance(owner, torch.Generator):
        return _SETTING if name in _OF_GENERATORS else ""
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
        if "importlib" in file or in_packages(file) or file.startswith((TORCH, OURS)):
            return False
        if not file.startswith((STANDARD, "<frozen ")):
            return True
        frame = frame.f_back
    return False
