"""Signals while the program starts, a terminal that is closed, and a first process that is killed."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from emmy_tui.terminal import quiet_descriptors
from tests.emmy_tui.pseudo_terminal import (
    ALTERNATE_OFF,
    APPLICATION,
    ROOT,
    children,
    gone,
    on_terminal,
    program,
    written,
)


@pytest.mark.parametrize("how", ["loading", "put up"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_starts_restores_the_terminal(number: signal.Signals, how: str, tmp_path: Path) -> None:
    with on_terminal(tmp_path, how) as terminal:
        written(tmp_path / "log.txt.loading", terminal)
        os.kill(terminal.pid, number)
        assert terminal.ended() == 128 + number
        if how == "loading":
            assert b"\x1b" not in terminal.output
        else:
            assert terminal.restored()
    log = (tmp_path / "log.txt").read_text()
    assert log.count(f"{number.name} came: leaving") == 1
    assert "CRITICAL" not in log


@pytest.mark.parametrize("how", ["loading", "put up"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_killing_the_first_process_while_it_starts_leaves_nothing_on(
    number: signal.Signals, how: str, tmp_path: Path
) -> None:
    with on_terminal(tmp_path, how) as terminal:
        written(tmp_path / "log.txt.loading", terminal)
        (drawing,) = children(terminal.pid)
        os.kill(terminal.pid, number)
        gone(drawing, terminal)
        if how == "loading":
            assert b"\x1b" not in terminal.output
        else:
            assert terminal.restored()


def test_a_terminal_that_is_closed_leaves_no_traceback(tmp_path: Path) -> None:
    with on_terminal(tmp_path) as terminal:
        terminal.read_until(b"Search tree")
        (drawing,) = children(terminal.pid)
        os.close(terminal.master)
        terminal.master = os.open(os.devnull, os.O_RDONLY)
        os.waitpid(terminal.pid, 0)
        terminal.pid = 0
        ends = time.monotonic() + 10
        while Path(f"/proc/{drawing}").exists():
            assert time.monotonic() < ends, "the program is left"
            time.sleep(0.05)
    log = (tmp_path / "log.txt").read_text()
    assert log.count("SIGHUP came: leaving") == 1
    assert "Traceback" not in log


def test_a_thread_that_writes_to_a_closed_terminal_is_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(number: int) -> None:
        raise OSError(number, os.strerror(number))

    with (tmp_path / "log.txt").open("w") as log, capsys.disabled(), quiet_descriptors(log.fileno()):
        for number in (errno.EIO, errno.ENOSPC):
            thread = threading.Thread(target=write, args=(number,), name="textual-output")
            thread.start()
            thread.join()
    assert [record.getMessage() for record in caplog.records] == ["the terminal is gone: textual-output ends"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_after_a_kill_it_says_how_to_get_the_prompt_that_went_with_the_screen(tmp_path: Path) -> None:
    command = ["bash", "--norc", "--noprofile", "-i"]
    with on_terminal(tmp_path, "run", command=command, PS1="READY> ") as terminal:
        terminal.read_until(b"READY> ")
        words = [sys.executable, str(tmp_path / "program.py"), ROOT, str(tmp_path / "log.txt"), "run"]
        (tmp_path / "program.py").write_text(APPLICATION)
        os.write(terminal.master, (shlex.join(words) + "\n").encode())
        terminal.read_until(b"Search tree")
        drawing = program(tmp_path)
        first = int(Path(f"/proc/{drawing}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(first, signal.SIGKILL)
        gone(drawing, terminal)
        after = terminal.output[terminal.output.rfind(ALTERNATE_OFF) :]
        assert b"emmy-tui: ended, since the process above it was killed; press enter" in after
        for mode in (b"1000", b"1003", b"1006", b"1015"):
            on, off = (terminal.output.rfind(b"\x1b[?" + mode + end) for end in (b"h", b"l"))
            assert on < off, mode
        os.write(terminal.master, b"\n")
        terminal.output = b""
        terminal.read_until(b"READY> ")
