"""A terminal that takes nothing, that is gone, or that says anything of its size: the program ends, and stays small."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import struct
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emmy_tui.pseudo_terminal import Terminal, on_terminal, program, written

SMALL, LARGE = (24, 80), (200, 300)
REPAINTS = 30
MEMORY = 4 << 30
"""Bytes that the program may have, so that one that takes more fails, and nothing beside it."""


def resize(terminal: Terminal, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def flow(terminal: Terminal, action: int) -> None:
    """Ctrl+s and ctrl+q, as it were, of the terminal itself."""
    screen = os.open(f"/proc/{terminal.pid}/fd/0", os.O_RDWR | os.O_NOCTTY)
    termios.tcflow(screen, action)
    os.close(screen)


@contextlib.contextmanager
def unread(tmp_path: Path, how: str = "idle") -> Iterator[Terminal]:
    """A terminal that takes nothing any more, and for which much waits."""
    with on_terminal(tmp_path, how) as terminal:
        terminal.read_until(b"Search tree")
        flow(terminal, termios.TCOOFF)
        for number in range(REPAINTS):
            resize(terminal, *(LARGE if number % 2 else SMALL))
            terminal.read_on(0.05)
        yield terminal


def hang_up(terminal: Terminal) -> None:
    os.close(terminal.master)
    terminal.master = os.open(os.devnull, os.O_RDWR)


def ended_unread(terminal: Terminal, seconds: float = 10.0) -> int:
    """Wait for the end without reading; the exit status."""
    ends = time.monotonic() + seconds
    while not (found := os.waitpid(terminal.pid, os.WNOHANG))[0]:
        assert time.monotonic() < ends, "the application did not end"
        time.sleep(0.05)
    terminal.pid = 0
    return os.waitstatus_to_exitcode(found[1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_terminal_that_takes_nothing_holds_no_end(number: signal.Signals, tmp_path: Path) -> None:
    with unread(tmp_path) as terminal:
        drawing = program(tmp_path)
        os.kill(drawing if number is signal.SIGKILL else terminal.pid, number)
        assert ended_unread(terminal) == 128 + number
        assert not Path(f"/proc/{drawing}").exists()
    assert number.name in (tmp_path / "log.txt").read_text()


@pytest.mark.parametrize("how", ["idle", "non-blocking"])
def test_what_was_missed_is_painted_once_the_terminal_is_read(how: str, tmp_path: Path) -> None:
    """Also where whatever ran in the terminal before has left it non-blocking."""
    with unread(tmp_path, how) as terminal:
        resize(terminal, *SMALL)
        os.write(terminal.master, b"?")
        flow(terminal, termios.TCOON)
        terminal.read_until(b"Keys of emmy-tui")
        os.write(terminal.master, b"\x1bq")
        assert terminal.ended() == 0
        assert terminal.restored()


def test_a_program_that_is_stopped_as_its_terminal_goes_ends(tmp_path: Path) -> None:
    """The stop comes after the signals of the hang-up: no shell calls it back."""
    with unread(tmp_path) as terminal:
        os.kill(program(tmp_path), signal.SIGTSTP)
        hang_up(terminal)
        assert ended_unread(terminal) == 128 + signal.SIGHUP


@pytest.mark.parametrize("how", ["idle", "run", "hang"])
def test_a_program_whose_terminal_is_gone_ends(how: str, tmp_path: Path) -> None:
    """Also one whose loop hangs, and that hears of nothing."""
    with on_terminal(tmp_path, how) as terminal:
        terminal.read_until(b"Search tree")
        if how == "hang":
            written(tmp_path / "log.txt.hung", terminal)
        drawing = program(tmp_path)
        hang_up(terminal)
        assert ended_unread(terminal) == 128 + signal.SIGHUP
        assert not Path(f"/proc/{drawing}").exists()
    log = (tmp_path / "log.txt").read_text()
    assert ("in hang" if how == "hang" else "leaving") in log


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ((65535, 65535), b""),
        ((65535, 80), b""),
        (SMALL, b"\x1b[48;99999999;99999999;1;1t"),
        (SMALL, b"\x1b[48;0;0;0;0t"),
    ],
)
def test_a_size_that_no_terminal_has_takes_no_memory(size: tuple[int, int], said: bytes, tmp_path: Path) -> None:
    with on_terminal(tmp_path, "idle") as terminal:
        terminal.read_until(b"Search tree")
        resource.prlimit(program(tmp_path), resource.RLIMIT_AS, (MEMORY, MEMORY))
        resize(terminal, *size)
        os.write(terminal.master, said)
        terminal.read_on(0.5)  # what is asked for next comes after it
        resize(terminal, *LARGE)
        os.write(terminal.master, b"\x1b[48;200;300;1;1t?")
        terminal.read_until(b"Keys of emmy-tui")
        os.write(terminal.master, b"\x1bq")
        assert terminal.ended() == 0
        assert terminal.restored()
