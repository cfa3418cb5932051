"""What an engine's process can be given to do in tests: it tells, waits, breaks, dies, prints, compiles or tunes."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

from engine.events import Logged, NodeVisited, RunFinished, RunState
from engine.measure.compile_pool import CompileLimits, CompilePool
from engine.measure.process import Nursery
from engine.session import TuningSession
from engine.tune import Host, LiveRequest, Settings, tune_live, tune_queue
from engine.vocabulary import Target
from tests.measure.rig import script
from tests.runtime.sources import add_source
from tests.tune.fake_device import FakeDevice

LIMIT_S = 60.0
ROOT = str(Path(__file__).parents[2])


def begun(host: Host, note: Path | None = None) -> None:
    """It runs from now on; `note` gets the number of this process."""
    if note is not None:
        coming = note.with_name(note.name + ".coming")
        coming.write_text(str(os.getpid()))
        coming.rename(note)
    host.change_state(RunState.RUNNING)


def wait(host: Host) -> None:
    ends = time.monotonic() + LIMIT_S
    while not host.control.stopping and time.monotonic() < ends:
        time.sleep(0.01)


def waits(note: Path | None, host: Host) -> list[RunFinished]:
    """Until it is asked to stop; each patience and skip that is asked for is told."""
    begun(host, note)
    while not host.control.stopping:
        for act in host.control.take_acts():
            host.emit(Logged(at=act.at, level="info", text=f"{act.verb} {act.kernel} {act.value}"))
        time.sleep(0.01)
    return []


def tells(count: int, host: Host) -> list[RunFinished]:
    """So many lines of the log, in order, and a summary."""
    begun(host)
    for number in range(count):
        host.emit(Logged(at=float(number), level="info", text=str(number)))
    return [finished(count)]


def floods(visits: int, note: Path, host: Host) -> list[RunFinished]:
    """Visits of nodes without end; `note` says when so many were told."""
    begun(host)
    for number in range(visits):
        host.emit(
            NodeVisited(
                at=0.0, node=f"a node with a name that fills a pipe {number}", visits=1, best_us=None, state="open"
            )
        )
    note.touch()
    wait(host)
    return []


def finished(measured: int) -> RunFinished:
    return RunFinished(
        at=1.0,
        measured=measured,
        cached=0,
        failed=0,
        best_us=2.5,
        sum_us=None,
        assembled_us=None,
        search_share=0.0,
        gpu_idle_share=0.0,
        wall_s=1.0,
    )


def breaks(host: Host) -> list[RunFinished]:
    raise RuntimeError("the engine broke on purpose")


def refuses(host: Host) -> list[RunFinished]:
    raise ValueError("there is no such GPU")


def dies(number: int, host: Host) -> list[RunFinished]:
    """Of a signal, after a word; SIGSEGV by a real access."""
    begun(host)
    host.emit(Logged(at=1.0, level="info", text="last words"))
    time.sleep(0.5)
    if number == signal.SIGSEGV:
        ctypes.string_at(0)
    os.kill(os.getpid(), number)
    return []


def noisy(host: Host) -> list[RunFinished]:
    """As drivers, compilers and libraries are."""
    os.write(1, b"driver: noise on descriptor one\n")
    os.write(2, b"ptxas: noise on descriptor two\n")
    os.system("echo child noise >&2")
    print("printed noise", flush=True)
    logging.getLogger("engine").info("a line of the log")
    return []


def surroundings(host: Host) -> list[RunFinished]:
    """Where it runs: folder, a variable of the environment, and whether an input is there."""
    host.emit(Logged(at=1.0, level="info", text=os.getcwd()))
    host.emit(Logged(at=1.0, level="info", text=os.environ.get("OF_THE_TEST", "")))
    host.emit(Logged(at=1.0, level="info", text=repr(sys.stdin.read() if sys.stdin else None)))
    return []


def compiles(note: Path, host: Host) -> list[RunFinished]:
    """A compile that never ends; `note` gets the folder whose name its processes have in their commands."""
    nursery = Nursery()
    pool = CompilePool(nursery, script("fake_compiler"), 1, CompileLimits())
    pool.submit(add_source("compile-hang"), Target(), 3)
    begun(host)
    coming = note.with_name(note.name + ".coming")
    coming.write_text(str(nursery.folder))
    coming.rename(note)
    try:
        wait(host)
    finally:
        pool.close()
        nursery.close()
    return []


def open_fake(name: str, jobs: int | None, **more: object) -> FakeDevice:
    return FakeDevice()


def tuning(code: str, database: Path, patience: int) -> TuningSession:
    """A whole run over a GPU that is none."""
    request = LiveRequest(code, database, "fake:0", "emmy-tui", open_fake)
    return TuningSession(partial(tune_live, request, then=tune_queue), Settings(patience=patience), queues=True)
