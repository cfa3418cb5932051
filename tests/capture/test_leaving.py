"""What code does besides computing is stopped before it happens, and refused in words; what packages do is not."""

from __future__ import annotations

import contextlib
import datetime
import functools
import io
import logging
import os
import random
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.capture.errors import EffectError, FilledCacheError
from engine.capture.leaving import Leaves, kept_inside
from engine.capture.live import capture_call

X = torch.ones(4, 4)
LOG = logging.getLogger("tests.capture.leaving")


def shows_on_error_stream() -> None:
    print("seen", file=sys.stderr)


def swallows() -> None:
    with contextlib.suppress(Exception):
        print("seen")


def starts_a_thread() -> None:
    threading.Thread(target=int).start()


LEAVES: dict[str, tuple[Callable[[], Any], str]] = {
    "print": (lambda: print("seen"), "It prints while it runs (print)"),
    "print to the error stream": (shows_on_error_stream, "It prints while it runs (print)"),
    "write to a stream": (lambda: sys.stdout.write("seen"), "It prints while it runs (write)"),
    "write to the error stream": (lambda: sys.stderr.write("seen"), "It prints while it runs"),
    "log": (lambda: LOG.warning("seen"), "It writes a log while it runs"),
    "a process": (lambda: subprocess.run(["true"], check=False), "It reaches files, sockets or other processes"),
    "a folder": (lambda: os.listdir("."), "It reaches files, sockets or other processes while it runs (listdir)"),
    "a clock": (lambda: time.perf_counter(), "It asks the clock while it runs (perf_counter)"),
    "a date": (lambda: datetime.datetime.now(), "It asks the clock while it runs (now)"),
    "random": (lambda: random.random(), "It draws random numbers outside of torch while it runs (random)"),
    "shuffle": (lambda: random.shuffle([1, 2]), "It draws random numbers outside of torch"),
    "NumPy's random": (
        lambda: np.random.rand(),
        "It draws random numbers outside of torch while it runs (numpy.random)",
    ),
    "a thread": (starts_a_thread, "It starts a thread while it runs"),
    "a seed": (lambda: torch.manual_seed(3), "It changes a setting of torch's while it runs (manual_seed)"),
    "a generator's seed": (lambda: torch.default_generator.manual_seed(3), "It changes a setting of torch's"),
    "a default dtype": (lambda: torch.set_default_dtype(torch.float64), "It changes a setting of torch's"),
    "a default device": (lambda: torch.set_default_device("meta"), "It changes a setting of torch's"),
    "deterministic": (lambda: torch.use_deterministic_algorithms(True), "It changes a setting of torch's"),
    "gradients": (lambda: torch.set_grad_enabled(True), "It changes a setting of torch's while it runs (set_grad"),
    "threads": (lambda: torch.set_num_threads(3), "It changes a setting of torch's while it runs (set_num_threads)"),
    "TF32": (lambda: setattr(torch.backends.cuda.matmul, "allow_tf32", True), "It changes a setting of torch's"),
    "cuDNN": (lambda: setattr(torch.backends.cudnn, "benchmark", True), "It changes a setting of torch's"),
    "what is swallowed": (swallows, "It prints while it runs (print)"),
}
STAYS: dict[str, Callable[[], Any]] = {
    "a log that is off": lambda: LOG.debug("unseen"),
    "an import": lambda: __import__("colorsys"),
    "a fixed time": lambda: datetime.datetime(2020, 1, 1).timetuple(),
    "a process id": os.getpid,
    "gradients in a block": lambda: torch.set_grad_enabled(True).__exit__(None, None, None),
    "a text in memory": lambda: io.StringIO().write("seen"),
}


@pytest.mark.parametrize("what", LEAVES)
def test_what_leaves_the_code_is_refused(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    does, words = LEAVES[what]
    profiler, before = sys.getprofile(), (settings(), torch.get_default_device())

    def function(x: torch.Tensor) -> torch.Tensor:
        does()
        return x + 1

    with pytest.raises(EffectError) as refused:
        capture_call(function, (X,), {})
    assert str(refused.value).startswith(words)
    assert str(refused.value).endswith(", which kernels don't repeat.")
    assert "seen" not in "".join(capsys.readouterr())
    assert sys.getprofile() is profiler
    assert (settings(), torch.get_default_device()) == before


def settings() -> list[object]:
    """What torch computes by."""
    return [
        *(torch.get_rng_state().tolist(), torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled()),
        *(torch.is_grad_enabled(), torch.get_num_threads(), torch.backends.cuda.matmul.allow_tf32),
    ]


def test_where_only_the_program_is_wanted_it_may_print() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        print("seen")
        return x + 1

    assert capture_call(function, (X,), {}, stops_effects=False).sources == (0,)


def test_a_file_is_not_touched(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        (tmp_path / "written").write_text("seen")
        return x + 1

    with pytest.raises(EffectError, match=r"files, sockets or other processes while it runs \(open\)"):
        capture_call(function, (X,), {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", STAYS)
def test_what_stays_inside_is_captured(what: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        STAYS[what]()
        return x + 1

    assert capture_call(function, (X,), {}).sources == (0,)


def test_an_installed_package_may_print(capsys: pytest.CaptureFixture[str]) -> None:
    package = types.ModuleType("package")
    exec(compile("def say(): print('seen')", "/somewhere/site-packages/package.py", "exec"), package.__dict__)

    def function(x: torch.Tensor) -> torch.Tensor:
        package.say()
        return x + 1

    assert capture_call(function, (X,), {}).sources == (0,)
    assert "seen" in capsys.readouterr().out


def test_a_profiler_of_the_users_goes_on() -> None:
    calls: list[str] = []

    def profiler(frame: types.FrameType, event: str, _: object) -> None:
        calls.append(f"{event} {frame.f_code.co_name}")

    def inner() -> None:
        pass

    sys.setprofile(profiler)
    try:
        with kept_inside():
            inner()
        kept = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert kept is profiler
    assert "call inner" in calls


def test_another_thread_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    asked, done = threading.Event(), threading.Event()

    def prints() -> None:
        asked.wait()
        print("seen")
        done.set()

    other = threading.Thread(target=prints)
    other.start()
    with kept_inside():
        asked.set()
        done.wait()
    other.join()
    assert capsys.readouterr().out == "seen\n"


def test_what_a_cache_would_keep_is_not_computed() -> None:
    kept = functools.cache(lambda n: torch.ones(n))
    entry = kept(4)
    code = kept.__wrapped__.__code__
    live = capture_call(lambda x: x * kept(4), (X,), {}, cached=frozenset({code}))
    assert any(source is not None and isinstance(source, torch.Tensor) for source in live.sources)
    with pytest.raises(FilledCacheError, match="a cache of functools' keeps"):
        capture_call(lambda x: x * kept(1), (X,), {}, cached=frozenset({code}))
    assert (kept.cache_info().currsize, kept(4) is entry) == (1, True)


def test_it_cannot_be_taken_for_an_error_of_the_code() -> None:
    assert not issubclass(Leaves, Exception)
