"""What `screen_cost` runs in a terminal of its own: the process that draws, and has the same program tuned repeatedly.

    python -m tests.bench.screen_cost_child FOLDER SECONDS CODE DEVICE [MODULE [ORDER]]

As under `emmy-tui` the tuner is a process of its own, `screen_cost_engine` unless MODULE names another. It opens the
GPU and captures the program once; each round is a run into an empty database, with a screen here or while this process
waits. Which is which follows `order`. The round before those that count compiles the candidates and loads what drawing
takes. ORDER is JSON with what a test changes of `screen_cost_engine.Order`.

FOLDER/rounds.jsonl gets a line a round, and one with what the start took, in seconds. The last line is a failure where
there was one. What the tuner's process prints is in FOLDER/engine.log.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path

import emmy_tui.app
from emmy_tui.app import EmmyApp
from emmy_tui.look import Look
from emmy_tui.source import Mode, Session, SessionSource
from engine.events import RunFinished
from engine.measure import Message
from engine.measure.channel import Channel
from engine.session import EngineProcess, SeparateSession, TuningSession
from engine.tune import Host, Settings, packed, unpacked
from tests.bench.screen_cost_engine import QUIET_S, Order
from tests.bench.screen_cost_rounds import Cpu
from tests.bench.screen_cost_statistics import order

ENGINE = "tests.bench.screen_cost_engine"
LINES, DATABASE, LOG = "rounds.jsonl", "tune.db", "engine.log"
UNCOUNTED = 1
MOST_TURNS = 1000


class RoundFailed(Exception):
    """The text is one sentence."""


class Watching(EmmyApp):
    """Lets the run begin when the screen has been drawn, and leaves when it has ended."""

    CSS_PATH = str(Path(emmy_tui.app.__file__).with_name("emmy.tcss"))
    begin: Callable[[], None]
    is_over: Callable[[], bool]

    def on_mount(self) -> None:
        super().on_mount()
        self.set_timer(QUIET_S, self.begin)

    def tick(self) -> None:
        super().tick()
        if self.is_over():
            self.exit(return_code=0)


class Lent:
    """The tuner's process for one session, after which it goes on."""

    def __init__(self, engine: EngineProcess) -> None:
        self._engine = engine

    @property
    def pid(self) -> int:
        return self._engine.pid

    @property
    def channel(self) -> Channel:
        return self._engine.channel

    def kill(self) -> None:
        self._engine.kill()

    def how_it_ended(self) -> str:
        return self._engine.how_it_ended()

    def close(self) -> None:
        return None


def as_the_engine_knows(host: Host) -> list[RunFinished]:
    """What is done is known to the tuner's process of the rounds beforehand."""
    raise AssertionError("nothing is tuned in the process that draws")


class Rounds:
    """The rounds of one tuner's process, from the process that draws."""

    def __init__(self, folder: Path, engine: EngineProcess, wanted: Order) -> None:
        """Returns when the program is captured."""
        self._folder = folder
        self._engine = engine
        self._code = wanted.code
        engine.channel.send({"order": packed(wanted)})
        tell(folder, self._said())

    def round(self, number: int, *, on: bool) -> None:
        """One run, and its line. Raises RoundFailed."""
        path = self._folder / str(number) / DATABASE
        path.parent.mkdir()
        self._engine.channel.send({"path": str(path.absolute()), "on": on})
        if on:
            self._draw(path)
        cpu: Cpu = unpacked(self._said()["cpu"])
        tell(self._folder, {"round": number, "on": on, **asdict(cpu)})
        gc.unfreeze()  # what a screen sets aside is no advantage of the next round
        gc.collect()

    def _said(self) -> Message:
        """What the tuner's process answers. Raises RoundFailed with its sentence."""
        answer = self._engine.channel.receive()
        if "failure" in answer:
            raise RoundFailed(answer["failure"])
        return answer

    def _draw(self, path: Path) -> None:
        session = SeparateSession(TuningSession(as_the_engine_knows, Settings()), begin=lambda: Lent(self._engine))
        opened = threading.Event()

        def wait_for_the_screen() -> Session:
            opened.wait()
            return session

        source = SessionSource(wait_for_the_screen, Mode.LIVE, self._code, str(path), locate=lambda: path)
        app = Watching(source, Look())
        app.begin, app.is_over = opened.set, partial(session.wait, 0.0)
        app.run()
        opened.set()
        source.close()
        session.close()
        if app.crash:
            raise RoundFailed(f"the screen failed: {app.crash}")


def tell(folder: Path, line: Mapping[str, object]) -> None:
    with (folder / LINES).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")


def run_rounds(rounds: Rounds, until: float) -> None:
    """A round that doesn't count, then pairs of rounds as long as another one fits; `until` is of `time.monotonic`."""
    for number in range(UNCOUNTED):
        rounds.round(number, on=True)
    longest, began = 0.0, time.monotonic()
    for number, on in enumerate(order(MOST_TURNS)):
        if number % 2 == 0:
            now = time.monotonic()
            longest, began = (max(longest, now - began), now) if number else (0.0, now)
            if now + longest > until:
                return
        rounds.round(UNCOUNTED + number, on=on)


def main() -> int:
    """Run rounds for about so many seconds from now; returns the exit status."""
    folder_name, seconds, code, name, *more = sys.argv[1:]
    began, folder = time.monotonic(), Path(folder_name)
    changes = json.loads(more[1]) if more[1:] else {"changes": {}}
    try:
        log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        engine = EngineProcess(log, more[0] if more else ENGINE)
        try:
            run_rounds(Rounds(folder, engine, Order(code, name, **changes)), began + float(seconds))
        finally:
            engine.close()
    except Exception as error:
        kind = "" if isinstance(error, RoundFailed) else f"{type(error).__name__}: "
        tell(folder, {"failure": f"{kind}{' '.join(str(error).split())}"})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
