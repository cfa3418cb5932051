"""The tuner's process of `screen_cost`: the GPU is opened and the program captured once, and then tuned in rounds.

The process that may draw asks for them over a channel. A round without the screen is driven here, as `emmy tune -q`
drives a session; one with it is served, as the engine of `emmy-tui` is. All else is the same in both.
"""

from __future__ import annotations

import gc
import io
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from engine.capture import capture
from engine.cli.drive import run_session
from engine.cli.progress import Detail, Progress
from engine.events import RunFinished
from engine.ir.plan import Program
from engine.measure import ChannelClosed, Device, Starts, open_channel, open_device
from engine.measure.channel import Channel
from engine.session import TuningSession, serve
from engine.store import Store
from engine.tune import Host, LiveRequest, Settings, packed, unpacked
from engine.tune.live import record_run
from engine.tune.problem import CapturedProblem
from engine.tune.run import rare_collections
from tests.bench.screen_cost_rounds import Cpu

PATIENCE = 1_000_000
QUIET_S = 0.3
"""Before a run without a screen, and between a screen's first frame and the run."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the rounds tune, and on which device; `changes` replace settings of a run, `run_s` is a test's."""

    code: str
    device: str
    changes: Mapping[str, Any]
    run_s: float = 0.0


class Rounds:
    """One device and one program; `screen` is the number of the process that may draw."""

    def __init__(self, order: Order, device: Device, program: Program, channel: Channel, screen: int) -> None:
        self._device = device
        self._program = program
        self._name = order.device
        self._channel = channel
        self._screen = screen
        # a deploy time takes as long as seven ranking times, and how many are taken differs from run to run
        alone: dict[str, Any] = {"deploy_band": 0.0, "finalists": 1, "in_place": 0, "surrogate": True}
        self._settings = Settings(**{"patience": PATIENCE, **alone, **order.changes})

    def round(self, path: Path, *, on: bool) -> Cpu:
        """One run into an empty database. Raises RuntimeError with the sentence of a run that failed."""
        taken: list[Cpu] = []
        session = TuningSession(partial(self._tune, path, taken), self._settings)
        if on:
            self._channel.receive()  # what a process of the usual kind would have to do
            serve(self._channel, session)
        else:
            time.sleep(QUIET_S)
            run_session(session, Progress(Detail.QUIET, io.StringIO(), io.StringIO()))
        if session.failure is not None or not taken:
            raise RuntimeError(session.failure or "the screen was left before the run had ended")
        gc.collect()
        return taken[0]

    def _tune(self, path: Path, taken: list[Cpu], host: Host) -> list[RunFinished]:
        """The work of a session, on its thread."""
        request = LiveRequest(self._program.target, path, self._name)
        problem = CapturedProblem(self._program, self._device.target)
        with rare_collections(), Store.open(path) as store:
            before = self._clocks()
            done = record_run(request, host, store, self._device, self._program, problem, host.settings)
            taken.append(Cpu(*(now - then for now, then in zip(self._clocks(), before, strict=True))))
        return [done]

    def _clocks(self) -> tuple[float, float, float]:
        """Seconds now: of the wall, and of the CPU that this process and the one that may draw have taken."""
        return time.monotonic(), time.process_time(), time.clock_gettime(_clock_of(self._screen))


def _clock_of(pid: int) -> int:
    """Linux' number of the clock of a process's CPU time, by nanoseconds; clock_getcpuclockid(3) computes it so."""
    return (~pid << 3) | 2


def main(
    read_fd: int,
    write_fd: int,
    parent: int,
    open_one: Callable[[Order], Device] = lambda order: open_device(order.device),
    read: Callable[[str], Program] = capture,
) -> NoReturn:
    """Rounds as they are asked for. What goes wrong is told in a sentence. Tests give a device and a program."""
    channel = open_channel(read_fd, write_fd, parent)
    try:
        order: Order = unpacked(channel.receive()["order"])
        try:
            _serve(channel, order, open_one, read, parent)
        except ChannelClosed:
            raise
        except Exception as error:
            channel.send({"failure": f"{type(error).__name__}: {' '.join(str(error).split())}"})
    except ChannelClosed:
        pass
    raise SystemExit(0)


def _serve(
    channel: Channel, order: Order, open_one: Callable[[Order], Device], read: Callable[[str], Program], parent: int
) -> None:
    began = time.monotonic()
    device = open_one(order)
    try:
        opened = time.monotonic()
        if isinstance(device, Starts):
            device.start()
        rounds = Rounds(order, device, read(order.code), channel, parent)
        channel.send({"opened_s": opened - began, "captured_s": time.monotonic() - opened})
        while "path" in (asked := channel.receive()):
            channel.send({"cpu": packed(rounds.round(Path(asked["path"]), on=asked["on"]))})
    finally:
        device.close()
