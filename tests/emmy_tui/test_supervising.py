"""The two processes as one job of a shell: stopped, called back, put in the background, ended while it is stopped."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import shutil
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emmy_tui.pseudo_terminal import (
    ALTERNATE_OFF,
    APPLICATION,
    ROOT,
    Terminal,
    children,
    gone,
    on_terminal,
    program,
    written,
)

BASH = shutil.which("bash") or ""
PROMPT = b"PROMPT> "
pytestmark = pytest.mark.skipif(not BASH, reason="no bash here")


@contextlib.contextmanager
def in_a_shell(tmp_path: Path, how: str = "idle") -> Iterator[Terminal]:
    """The screen is up, as a job of bash."""
    (tmp_path / "app.py").write_text(APPLICATION)
    command = (sys.executable, str(tmp_path / "app.py"), ROOT, str(tmp_path / "log.txt"), how)
    shell = (BASH, "--norc", "--noprofile", "-i")
    with on_terminal(tmp_path, how, shell, PS1=PROMPT.decode(), HISTFILE="/dev/null") as terminal:
        terminal.read_until(PROMPT)
        say(terminal, shlex.join(command))
        terminal.read_until(b"Search tree")
        try:
            yield terminal
        finally:
            for pid in (*children(terminal.pid), program(tmp_path)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def say(terminal: Terminal, line: str) -> None:
    terminal.output = b""
    os.write(terminal.master, line.encode() + b"\r")


def suspend(terminal: Terminal) -> None:
    terminal.output = b""
    os.write(terminal.master, b"\x1a")
    terminal.read_until(b"Stopped")
    terminal.read_until(PROMPT)


def call_back(terminal: Terminal) -> None:
    """The screen is whole after `fg`, and takes keys as they are pressed."""
    say(terminal, "fg")
    terminal.read_until(b"Search tree")
    terminal.output = b""
    os.write(terminal.master, b"?")
    terminal.read_until(b"Keys of emmy-tui")
    os.write(terminal.master, b"\x1b")


def leave(terminal: Terminal) -> None:
    terminal.output = b""
    os.write(terminal.master, b"q")
    terminal.read_until(PROMPT)
    say(terminal, "echo status=$?")
    terminal.read_until(b"status=0")


def state(pid: int) -> str:
    """T for a process that is stopped, S for one that waits."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def stopped(terminal: Terminal, *pids: int) -> None:
    ends = time.monotonic() + 20
    while any(state(pid) != "T" for pid in pids):
        assert time.monotonic() < ends, "the job goes on"
        terminal.read_on(0.05)


@pytest.mark.parametrize("how", ["idle", "waits"])
def test_a_job_that_is_stopped_ends_by_kill(how: str, tmp_path: Path) -> None:
    with in_a_shell(tmp_path, how) as terminal:
        (first,) = children(terminal.pid)
        mine = [first, program(tmp_path)]
        if how == "waits":
            mine.append(int(written(tmp_path / "log.txt.engine", terminal)))
        suspend(terminal)
        say(terminal, "kill %1")
        for pid in mine:
            gone(pid, terminal)
        say(terminal, "wait %1; echo status=$?")
        terminal.read_until(b"status=143")
        assert ALTERNATE_OFF not in terminal.output, "the shell's screen is left alone"
    log = (tmp_path / "log.txt").read_text()
    assert "SIGTERM came: leaving" in log
    assert "Traceback" not in log


def test_a_job_in_the_background_stops_again_and_comes_back(tmp_path: Path) -> None:
    with in_a_shell(tmp_path) as terminal:
        (first,) = children(terminal.pid)
        suspend(terminal)
        say(terminal, "bg")
        terminal.read_until(PROMPT)
        terminal.read_on(0.2)
        stopped(terminal, first, program(tmp_path))
        say(terminal, "")  # the shell hears of it
        terminal.read_until(b"Stopped")
        call_back(terminal)
        leave(terminal)


def test_a_job_stops_in_a_dialog_and_comes_back_to_it_at_another_size(tmp_path: Path) -> None:
    with in_a_shell(tmp_path) as terminal:
        terminal.output = b""
        os.write(terminal.master, b"?")
        terminal.read_until(b"Keys of emmy-tui")
        suspend(terminal)
        fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        say(terminal, "fg")
        terminal.read_until(b"Keys of emmy-tui")
        terminal.output = b""
        os.write(terminal.master, b"\x1b")
        terminal.read_until(b"Tree")
        leave(terminal)


def test_stopping_the_first_process_alone_leaves_a_screen_that_comes_back(tmp_path: Path) -> None:
    with in_a_shell(tmp_path) as terminal:
        (first,) = children(terminal.pid)
        terminal.output = b""
        os.kill(first, signal.SIGSTOP)
        terminal.read_until(PROMPT)
        call_back(terminal)
        leave(terminal)


def test_interrupts_change_nothing_once_the_screen_is_down(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "slow end") as terminal:
        terminal.read_until(b"Search tree")
        os.write(terminal.master, b"q")
        terminal.read_until(ALTERNATE_OFF)
        written(tmp_path / "log.txt.closing", terminal)
        os.write(terminal.master, b"\x03")
        assert terminal.ended() == 0
        assert terminal.restored()
    assert "CRITICAL" not in (tmp_path / "log.txt").read_text()
