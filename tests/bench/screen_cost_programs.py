"""The two commands of `screen_cost --turns`, from start to end: `emmy tune --json -q` and `emmy-tui --code`.

Each run begins with an empty database in a folder of its own, with the same program, seed and patience. What is written
to the terminal, of 160x45, is read and thrown away.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.bench.screen_cost_child import DATABASE
from tests.bench.screen_cost_engine import PATIENCE
from tests.bench.screen_cost_rounds import Round, read_round
from tests.bench.screen_cost_statistics import order
from tests.bench.screens_terminal import Terminal

SIZE = (160, 45)
EMMY = [sys.executable, "-c", "import sys; from engine.cli import main; sys.exit(main())"]
EMMY_TUI = [sys.executable, "-m", "emmy_tui.main"]
POLL_S = 0.1
LIMIT_S = 120.0
LEAVE_S = 10.0
CLOSES_S = 1.5
"""What a run may take to close its device: until then the screen answers q with a question, which the next q denies."""


class RunFailed(Exception):
    """One of the runs didn't come to its end; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is tuned, and on which device."""

    code: str
    device: str


class Screen:
    """A command in a terminal that nobody looks at."""

    def __init__(self, command: Sequence[str]) -> None:
        self._terminal = Terminal(command, SIZE)
        self._status: int | None = None
        self._end = b""

    def alive(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self._terminal.pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status is None

    @property
    def status(self) -> int | None:
        """The exit status; None while it is alive."""
        return None if self.alive() else self._status

    def spend(self, seconds: float) -> None:
        """Read for so long; only what was written last is kept."""
        began = time.monotonic()
        self._end = (self._end + self._terminal.read(seconds))[-2000:]
        time.sleep(max(0.0, seconds - (time.monotonic() - began)))  # a terminal that has gone ends a read at once

    def leave(self) -> int:
        """Press q, as a person does, until the program has ended; its exit status. Raises RunFailed."""
        until, pressed = time.monotonic() + LEAVE_S, 0.0
        while self.alive():
            now = time.monotonic()
            if now > until:
                raise RunFailed(f"emmy-tui did not leave within {LEAVE_S:.0f} s of q")
            if now - pressed > CLOSES_S:
                pressed = now
                with suppress(OSError):
                    os.write(self._terminal.fd, b"q")
            self.spend(POLL_S)
        assert self._status is not None
        return self._status

    def close(self) -> None:
        if self.alive():
            self._terminal.close()
        else:
            os.close(self._terminal.fd)

    @property
    def last_words(self) -> str:
        lines = [line.strip() for line in self._end.decode(errors="replace").splitlines() if line.strip()]
        return lines[-1][-300:] if lines else "nothing"


def run_turns(program: Program, turns: int, folder: Path) -> list[Round]:
    """Both commands so many times, in turns; prints a line a run. Raises RunFailed."""
    found = []
    for number, on in enumerate(order(turns)):
        place = folder / f"{number}-{'on' if on else 'off'}"
        found.append(run_command(program, place, on=on))
    return found


def run_command(program: Program, folder: Path, *, on: bool) -> Round:
    """Tune from an empty database in `folder`, and say where the time went. Raises RunFailed."""
    folder.mkdir(parents=True)
    path = folder / DATABASE
    arguments = ["--code", program.code, "--db", str(path), "--patience", str(PATIENCE), "--device", program.device]
    began = time.time()
    (_with_screen if on else _without_screen)(arguments, path)
    ended = time.time()
    try:
        found = read_round(path, on=on)
    except ValueError as error:
        raise RunFailed(str(error)) from None
    first, last = found.arrivals[0].at, found.arrivals[-1].at
    print(
        f"{'on ' if on else 'off'}  {found.candidates} candidates, {found.failed} failed, "
        f"{found.whole_rate:.2f} a second; {found.began - began:.1f} s to the run, {first - found.began:.1f} to its "
        f"first result, {last - first:.1f} to its last, {found.ended - last:.1f} to its end, "
        f"{ended - found.ended:.1f} to that of the command",
        flush=True,
    )
    return found


def has_ended(path: Path) -> bool:
    """Whether the database's run has."""
    if not path.exists():
        return False
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1.0)) as found:
        return found.execute("SELECT 1 FROM run WHERE ended_at IS NOT NULL").fetchone() is not None
    return False


def _watch(path: Path, alive: Callable[[], bool], spend: Callable[[float], object]) -> None:
    """Wait until the run has ended, or the program. `spend` waits for seconds."""
    until = time.monotonic() + LIMIT_S
    while not has_ended(path) and alive():
        if time.monotonic() > until:
            raise RunFailed(f"a run took longer than {LIMIT_S:.0f} s: give a --code with fewer schedules")
        spend(POLL_S)


def _without_screen(arguments: Sequence[str], path: Path) -> None:
    with (path.parent / "stderr").open("wb") as said:
        child = subprocess.Popen([*EMMY, "tune", *arguments, "--json", "-q"], stdout=subprocess.DEVNULL, stderr=said)
        try:
            _watch(path, lambda: child.poll() is None, time.sleep)
            child.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            raise RunFailed(f"emmy tune did not end within {LEAVE_S:.0f} s of its run") from None
        finally:
            child.kill()
    if child.returncode:
        lines = (path.parent / "stderr").read_text(errors="replace").splitlines() or ["nothing"]
        raise RunFailed(f"emmy tune ended with {child.returncode} and said: {lines[-1]}")


def _with_screen(arguments: Sequence[str], path: Path) -> None:
    screen = Screen([*EMMY_TUI, *arguments, "--fps", "4", "--log-file", str(path.parent / "log")])
    try:
        _watch(path, screen.alive, screen.spend)
        screen.spend(POLL_S)
        status = screen.leave()
    finally:
        screen.close()
    if status:
        raise RunFailed(f"emmy-tui ended with {status} and said: {screen.last_words}")
