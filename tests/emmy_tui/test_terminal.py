"""The application on a pseudo-terminal: what it leaves behind however it ends, and what never reaches the screen."""

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
from collections.abc import Iterator
from pathlib import Path

import pytest

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
source = Noisy(search_events()[:200], capabilities=() if how == "idle" else ("pause", "stop"))
begin = lambda: None
if how == "hang":
    drain, calls = source.drain, iter(range(100))

    def hanging(limit):
        if next(calls) == 8:
            Path(sys.argv[2] + ".hung").touch()
            hang()
        return drain(limit)

    source.drain = hanging
if how == "thread":
    begin = threading.Thread(target=hang, daemon=True).start
    source.close = hang
if how == "engine":
    from emmy_tui.source import Mode, SessionSource
    from engine.session import TuningSession
    from engine.tune import Settings

    def broken(host):
        raise RuntimeError("the engine broke on purpose")

    open_broken = lambda: SessionSource(lambda: TuningSession(broken, Settings()), Mode.LIVE, "a program", "x.db")
if how == "compile":
    from engine.measure.compile_pool import CompileLimits, CompilePool
    from engine.measure.process import Nursery
    from engine.vocabulary import Target
    from tests.runtime.sources import add_source
    from tests.measure.rig import script

    def begin():
        nursery = Nursery()
        pool = CompilePool(nursery, script("fake_compiler"), 1, CompileLimits())
        pool.submit(add_source("compile-hang"), Target(), 3)

        def close():
            pool.close()
            nursery.close()

        source.close = close
        Path(sys.argv[2] + ".folder").write_text(str(nursery.folder))
if how == "fail":
    source = ScriptedSource([*search_events()[:200], FAILED], capabilities=("start",))

def open_source(options):
    begin()
    Path(sys.argv[2] + ".pid").write_text(str(os.getpid()))
    return open_broken() if how == "engine" else source

main.open_source = open_source
sys.exit(main.main(["x.db", "--log-file", sys.argv[2]]))
"""


class Terminal:
    """A pseudo-terminal of 80 x 24 with the application on it."""

    def __init__(self, log: Path, how: str, **environment: str) -> None:
        root = str(Path(__file__).parents[2])
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", **environment})
            os.execv(sys.executable, [sys.executable, "-c", APPLICATION, root, str(log), how])
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.master)
        self.output = b""

    def read_until(self, wanted: bytes, seconds: float = 20.0) -> None:
        ends = time.monotonic() + seconds
        while wanted not in self.output:
            assert time.monotonic() < ends, self.output[-500:]
            self._read(0.1)

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
def on_terminal(tmp_path: Path, how: str = "run", **environment: str) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path / "log.txt", how, **environment)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_terminal(number: signal.Signals, tmp_path: Path) -> None:
    with on_terminal(tmp_path) as terminal:
        terminal.read_until(b"Search tree")
        os.kill(terminal.pid, number)
        assert terminal.ended() == 128 + number
        assert terminal.restored()
    log = (tmp_path / "log.txt").read_text()
    assert f"{number.name} came: leaving" in log


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGQUIT])
def test_a_program_that_dies_of_a_signal_leaves_the_terminal_as_before(number: signal.Signals, tmp_path: Path) -> None:
    with on_terminal(tmp_path) as terminal:
        terminal.read_until(b"Search tree")
        os.kill(program(tmp_path), number)
        assert terminal.ended() == 128 + number
        assert terminal.restored()
        after = terminal.output[terminal.output.rfind(ALTERNATE_OFF) :]
        assert b"\x1b[?25h" in after
        assert f"emmy-tui: ended by {number.name}; what is known is in".encode() in after
    log = (tmp_path / "log.txt").read_text()
    assert f"the program was ended by {number.name}" in log
    if number is not signal.SIGKILL:
        assert 'File "' in log, "what the threads were at"


def test_a_screen_that_hangs_ends_by_sigquit(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "hang") as terminal:
        terminal.read_until(b"Search tree")
        ends = time.monotonic() + 10
        while not (tmp_path / "log.txt.hung").exists():
            assert time.monotonic() < ends, "it did not come to hang"
            time.sleep(0.05)
        os.kill(terminal.pid, signal.SIGQUIT)
        assert terminal.ended() == 128 + signal.SIGQUIT
        assert terminal.restored()
    assert "in hang" in (tmp_path / "log.txt").read_text()


def test_killing_the_first_process_ends_the_program_and_restores_the_terminal(tmp_path: Path) -> None:
    with on_terminal(tmp_path) as terminal:
        terminal.read_until(b"Search tree")
        drawing = program(tmp_path)
        os.kill(terminal.pid, signal.SIGKILL)
        terminal.read_until(ALTERNATE_OFF)
        ends = time.monotonic() + 10
        while Path(f"/proc/{drawing}").exists() and "Z" not in Path(f"/proc/{drawing}/stat").read_text():
            assert time.monotonic() < ends, "the program is left"
            time.sleep(0.05)
        assert terminal.restored()


def program(tmp_path: Path) -> int:
    """The process that draws, below the one that waits for it."""
    return int((tmp_path / "log.txt.pid").read_text())


def test_noise_goes_to_the_log_and_never_to_the_screen(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "idle") as terminal:
        terminal.read_until(b"Search tree")
        os.write(terminal.master, b"q")
        assert terminal.ended() == 0
        assert terminal.restored()
        assert b"noise" not in terminal.output
    log = (tmp_path / "log.txt").read_text()
    assert "noise on descriptor two" in log
    assert "noise on descriptor one" in log
    assert "child noise" in log


def test_interrupts_from_the_keyboard_and_from_outside(tmp_path: Path) -> None:
    with on_terminal(tmp_path) as terminal:
        terminal.read_until(b"Search tree")
        os.kill(terminal.pid, signal.SIGINT)
        terminal.read_until(b"stopping")
        os.write(terminal.master, b"\x03")
        assert terminal.ended() == 130
        assert terminal.restored()


def test_a_crash_is_a_sentence_with_a_status(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "crash") as terminal:
        assert terminal.ended(20) == 1
        assert terminal.restored()
        after = terminal.output[terminal.output.rfind(ALTERNATE_OFF) :]
        assert b"internal error: RuntimeError: broken on purpose" in after
        assert b"Traceback" not in terminal.output
    assert "Traceback" in (tmp_path / "log.txt").read_text()


def test_the_sentence_of_a_failed_run_stays_on_the_terminal(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "fail") as terminal:
        terminal.read_until(b"the GPU is gone")
        os.write(terminal.master, b"q")
        assert terminal.ended() == 1
        after = terminal.output[terminal.output.rfind(ALTERNATE_OFF) :]
        assert b"emmy-tui: the GPU is gone: plug it in" in after


def test_a_source_that_hangs_does_not_hold_the_exit(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "thread") as terminal:
        terminal.read_until(b"Search tree")
        os.write(terminal.master, b"\x03")
        terminal.read_until(b"stopping")
        os.write(terminal.master, b"\x03")
        assert terminal.ended() == 130
        assert terminal.restored()


def test_an_exception_in_the_engine_is_a_sentence_and_its_trace_is_in_the_log(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "engine") as terminal:
        terminal.read_until(b"the engine broke on purpose")
        os.write(terminal.master, b"q")
        assert terminal.ended() == 1
        assert terminal.restored()
        after = terminal.output[terminal.output.rfind(ALTERNATE_OFF) :]
        assert b"internal error: RuntimeError: the engine broke on purpose" in after
        assert b"Traceback" not in terminal.output
    assert "Traceback" in (tmp_path / "log.txt").read_text()


def _of_folder(folder: str) -> list[int]:
    """Processes whose command names the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if folder.encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
    return found


def test_leaving_in_the_middle_of_a_compile_leaves_no_compiler_behind(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "compile") as terminal:
        terminal.read_until(b"Search tree")
        folder = (tmp_path / "log.txt.folder").read_text()
        ends = time.monotonic() + 20
        while not _of_folder(folder):
            assert time.monotonic() < ends, "the compiler did not start"
            time.sleep(0.05)
        os.write(terminal.master, b"\x03")
        terminal.read_until(b"stopping")
        os.write(terminal.master, b"\x03")
        assert terminal.ended() == 130
        assert terminal.restored()
        ends = time.monotonic() + 5
        while _of_folder(folder):
            assert time.monotonic() < ends, "a compiler is left"
            time.sleep(0.05)
        assert not Path(folder).exists()


def test_a_dumb_terminal_is_refused(tmp_path: Path) -> None:
    with on_terminal(tmp_path, TERM="dumb") as terminal:
        assert terminal.ended(20) == 2
        assert b"\x1b" not in terminal.output
        assert b"emmy eval variants --db x.db" in terminal.output


def test_a_log_file_that_can_not_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.txt").mkdir()
    with on_terminal(tmp_path) as terminal:
        assert terminal.ended(20) == 2
        assert b"can't be written" in terminal.output


def test_suspending_gives_the_screen_back_and_resuming_paints_it_again(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "idle") as terminal:
        terminal.read_until(b"Search tree")
        os.write(terminal.master, b"\x1a")
        terminal.read_until(ALTERNATE_OFF)
        assert os.WIFSTOPPED(os.waitpid(terminal.pid, os.WUNTRACED)[1])
        terminal.output = b""
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.read_until(b"Search tree")
        os.write(terminal.master, b"q")
        assert terminal.ended() == 0
        assert terminal.restored()
