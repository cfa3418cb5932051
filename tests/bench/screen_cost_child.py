"""What `screen_cost` runs in a terminal of its own: one process that tunes the same program again and again.

    python -m tests.bench.screen_cost_child FOLDER SECONDS CODE DEVICE

The GPU is opened and the program captured once; each round is a run of its own into an empty database, without the
screen as `emmy tune -q` drives it, or with it as `emmy-tui` does, in the thread that Python began with. Which is which
follows `order`. The round before those that count compiles the candidates and loads what drawing takes.

FOLDER/rounds.jsonl gets a line a round, and one with what the start took, in seconds. The last line is a failure where
there was one.
"""

from __future__ import annotations

import gc
import io
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import emmy_tui.app
from emmy_tui.app import EmmyApp
from emmy_tui.look import Look
from emmy_tui.source import Mode, Session, SessionSource
from engine.capture import capture
from engine.cli.drive import run_session
from engine.cli.progress import Detail, Progress
from engine.events import RunFinished
from engine.ir.plan import Program
from engine.measure import Device, Starts, open_device
from engine.session import TuningSession
from engine.store import Store
from engine.tune import Host, LiveRequest, Settings
from engine.tune.live import record_run
from engine.tune.problem import CapturedProblem
from engine.tune.run import rare_collections
from tests.bench.screen_cost_rounds import Cpu
from tests.bench.screen_cost_statistics import order

PATIENCE = 1_000_000
QUIET_S = 0.3
"""Between a screen's first frame and the run, and before a run without one."""
LINES, DATABASE = "rounds.jsonl", "tune.db"
UNCOUNTED = 1
MOST_TURNS = 1000


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


class Rounds:
    """One device and one program; the runs of one process. `changes` replace settings of a run."""

    def __init__(
        self, folder: Path, device: Device, program: Program, name: str, changes: Mapping[str, Any] | None = None
    ) -> None:
        self._folder = folder
        self._device = device
        self._program = program
        self._name = name
        # a deploy time takes as long as seven ranking times, and how many are taken differs from run to run
        alone: dict[str, Any] = {"deploy_band": 0.0, "finalists": 1, "in_place": 0, "surrogate": True}
        self._settings = Settings(**{"patience": PATIENCE, **alone, **(changes or {})})

    def round(self, number: int, *, on: bool) -> None:
        """One run, and its line. Raises RuntimeError with the sentence of a run that failed."""
        path = self._folder / str(number) / DATABASE
        path.parent.mkdir()
        taken: list[Cpu] = []
        session = TuningSession(partial(self._tune, path, taken), self._settings)
        (self._with_screen if on else self._without_screen)(session, path)
        if session.failure is not None or not taken:
            raise RuntimeError(session.failure or "the screen was left before the run had ended")
        self.tell({"round": number, "on": on, **asdict(taken[0])})
        gc.unfreeze()  # what a screen sets aside is no advantage of the next round
        gc.collect()

    def tell(self, line: Mapping[str, object]) -> None:
        with (self._folder / LINES).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")

    def _tune(self, path: Path, taken: list[Cpu], host: Host) -> list[RunFinished]:
        """The work of a session, on its thread."""
        request = LiveRequest(self._program.target, path, self._name)
        problem = CapturedProblem(self._program, self._device.target)
        with rare_collections(), Store.open(path) as store:
            before = _clocks()
            done = record_run(request, host, store, self._device, self._program, problem, host.settings)
            taken.append(Cpu(*(now - then for now, then in zip(_clocks(), before, strict=True))))
        return [done]

    def _without_screen(self, session: TuningSession, path: Path) -> None:
        time.sleep(QUIET_S)
        run_session(session, Progress(Detail.QUIET, io.StringIO(), io.StringIO()))

    def _with_screen(self, session: TuningSession, path: Path) -> None:
        opened = threading.Event()

        def wait_for_the_screen() -> Session:
            opened.wait()
            return session

        source = SessionSource(wait_for_the_screen, Mode.LIVE, self._program.target, str(path), locate=lambda: path)
        app = Watching(source, Look())
        app.begin, app.is_over = opened.set, partial(session.wait, 0.0)
        app.run()
        opened.set()
        source.close()
        session.close()
        if app.crash:
            raise RuntimeError(f"the screen failed: {app.crash}")


def _clocks() -> tuple[float, float, float]:
    """Now: the wall's seconds, and the CPU seconds of the thread that Python began with and of the process."""
    main = time.pthread_getcpuclockid(threading.main_thread().ident or 0)
    return time.monotonic(), time.clock_gettime(main), time.process_time()


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


def main(
    arguments: list[str] | None = None,
    open_one: Callable[[str], Device] = open_device,
    read: Callable[[str], Program] = capture,
    changes: Mapping[str, Any] | None = None,
) -> int:
    """Run rounds for about so many seconds from now; returns the exit status. Tests give a device and a program."""
    folder_name, seconds, code, name = arguments or sys.argv[1:]
    began, folder = time.monotonic(), Path(folder_name)
    try:
        device = open_one(name)
        try:
            opened = time.monotonic()
            if isinstance(device, Starts):
                device.start()
            rounds = Rounds(folder, device, read(code), name, changes)
            rounds.tell({"opened_s": opened - began, "captured_s": time.monotonic() - opened})
            run_rounds(rounds, began + float(seconds))
        finally:
            device.close()
    except Exception as error:
        with (folder / LINES).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"failure": f"{type(error).__name__}: {' '.join(str(error).split())}"}) + "\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
