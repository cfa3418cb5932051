"""The application on a pseudo-terminal, with what it wrote there and how it ended."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = str(Path(__file__).parents[2])
ALTERNATE_ON, ALTERNATE_OFF = b"\x1b[?1049h", b"\x1b[?1049l"
MOUSE_OFF = b"\x1b[?1003l"

APPLICATION = """
import os, sys, threading, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from emmy_tui import main, terminal
from tests.emmy_tui.scripted import ScriptedSource, search_events
how = sys.argv[3]

class Noisy(ScriptedSource):
    def drain(self, limit):
        if self.waiting:
            os.write(2, b"ptxas: noise on descriptor two\\n")
            os.write(1, b"driver: noise on descriptor one\\n")
            os.system("echo child noise >&2")
            print("printed noise", flush=True)
            if how == "crash":
                raise RuntimeError("broken on purpose")
        return super().drain(limit)

def hang():
    time.sleep(60)

from engine.events import RunState, StateChanged
FAILED = StateChanged(at=1, state=RunState.FAILED, reason="the GPU is gone: plug it in")
still = how in ("idle", "slow end", "non-blocking")
source = Noisy(search_events()[:200], capabilities=() if still else ("pause", "stop"))
begin = lambda: None
if how == "non-blocking":
    os.set_blocking(2, False)
if how == "hang":
    drain, calls = source.drain, iter(range(100))

    def hanging(limit):
        if next(calls) == 8:
            Path(sys.argv[2] + ".hung").touch()
            hang()
        return drain(limit)

    source.drain = hanging
if how == "slow end":
    def slow_end():
        Path(sys.argv[2] + ".closing").touch()
        time.sleep(1)

    source.close = slow_end
if how == "thread":
    begin = threading.Thread(target=hang, daemon=True).start
    source.close = hang
from functools import partial
from tests.session import works
WORKS = {
    "engine": works.breaks,
    "compile": partial(works.compiles, Path(sys.argv[2] + ".folder")),
    "noise": works.noisy,
    "waits": partial(works.waits, Path(sys.argv[2] + ".engine")),
}

def open_session(options):
    from emmy_tui.source import Mode, SessionSource
    from engine.session import SeparateSession, TuningSession
    from engine.tune import Settings

    def session():
        return SeparateSession(TuningSession(WORKS[how], Settings()), log=options.log)

    return SessionSource(session, Mode.LIVE, "a program", "x.db")

if how == "loading":
    def begin():
        Path(sys.argv[2] + ".loading").touch()
        time.sleep(30)

if how == "put up":
    from textual.drivers.linux_driver import LinuxDriver

    put_up = LinuxDriver.start_application_mode

    def slowly(driver):
        put_up(driver)
        Path(sys.argv[2] + ".loading").touch()
        time.sleep(1)

    LinuxDriver.start_application_mode = slowly
if how == "keys":
    from emmy_tui.driver import Keyboard

    def broken_keys(self, data):
        raise RuntimeError("the keys broke on purpose")

    Keyboard.read = broken_keys
if how == "fail":
    source = ScriptedSource([*search_events()[:200], FAILED], capabilities=("start",))

def open_source(options):
    begin()
    Path(sys.argv[2] + ".pid").write_text(str(os.getpid()))
    return open_session(options) if how in WORKS else source

main.open_source = open_source
sys.exit(main.main(["x.db", "--log-file", sys.argv[2]]))
"""


class Terminal:
    """A pseudo-terminal of 80 x 24 with the application on it."""

    def __init__(self, log: Path, how: str, command: Sequence[str] = (), **environment: str) -> None:
        program = command or (sys.executable, "-c", APPLICATION, ROOT, str(log), how)
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", **environment})
            os.execvp(program[0], program)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.master)
        self.output = b""

    def read_until(self, wanted: bytes, seconds: float = 20.0) -> None:
        ends = time.monotonic() + seconds
        while wanted not in self.output:
            assert time.monotonic() < ends, self.output[-500:]
            self._read(0.1)

    def read_on(self, seconds: float) -> None:
        """Whatever comes for so long."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self._read(0.05)

    def _read(self, seconds: float) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.output += data
        return bool(data)

    def ended(self, seconds: float = 10.0) -> int:
        """Wait for the end; the exit status, as a shell says it."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self._read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                while self._read(0.05) and select.select([self.master], [], [], 0.05)[0]:
                    pass
                return os.waitstatus_to_exitcode(status)
        raise AssertionError("the application did not end")

    def restored(self) -> bool:
        """Whether the screen, the mouse and the line discipline are as before."""
        return (
            self.output.rfind(ALTERNATE_OFF) > self.output.rfind(ALTERNATE_ON)
            and MOUSE_OFF in self.output
            and termios.tcgetattr(self.master)[:4] == self.before[:4]
        )

    def close(self) -> None:
        if self.pid:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        os.close(self.master)


@contextlib.contextmanager
def on_terminal(
    tmp_path: Path, how: str = "run", command: Sequence[str] = (), **environment: str
) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path / "log.txt", how, command, **environment)
    try:
        yield terminal
    finally:
        terminal.close()


def program(tmp_path: Path) -> int:
    """The process that draws, below the one that waits for it."""
    return int((tmp_path / "log.txt.pid").read_text())


def written(path: Path, terminal: Terminal) -> str:
    """What a process of the terminal writes there at some time."""
    ends = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < ends, f"{path.name} was not written"
        terminal.read_on(0.05)
    return path.read_text()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pid: int, terminal: Terminal) -> None:
    """Wait for a process to end, and read what it writes till then."""
    ends = time.monotonic() + 10
    with contextlib.suppress(OSError):
        while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text():
            assert time.monotonic() < ends, "the program is left"
            terminal._read(0.05)
    while select.select([terminal.master], [], [], 0.1)[0] and terminal._read(0.05):
        pass
