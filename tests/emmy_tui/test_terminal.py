"""The application on a pseudo-terminal: what it leaves behind however it ends, and what never reaches the screen."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from tests.emmy_tui.pseudo_terminal import ALTERNATE_OFF, gone, on_terminal, program, written


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
        written(tmp_path / "log.txt.hung", terminal)
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
        gone(drawing, terminal)
        assert terminal.restored()


def log_of_noise(tmp_path: Path, how: str, seen: bytes) -> str:
    """The log of a program that was noisy until something was seen, and whose screen shows nothing of it."""
    with on_terminal(tmp_path, how) as terminal:
        terminal.read_until(seen)
        os.write(terminal.master, b"q")
        assert terminal.ended() == 0
        assert terminal.restored()
        assert b"noise" not in terminal.output
    return (tmp_path / "log.txt").read_text()


def test_noise_goes_to_the_log_and_never_to_the_screen(tmp_path: Path) -> None:
    log = log_of_noise(tmp_path, "idle", b"Search tree")
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


def test_a_source_that_hangs_does_not_hold_the_end_after_a_signal(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "thread") as terminal:
        terminal.read_until(b"Search tree")
        drawing = program(tmp_path)
        os.kill(drawing, signal.SIGHUP)
        assert terminal.ended() == 128 + signal.SIGHUP
        assert terminal.restored()
        assert not Path(f"/proc/{drawing}").exists()


@pytest.mark.parametrize("by", ["keys", "q", "SIGHUP", "SIGTERM", "SIGKILL"])
def test_leaving_in_the_middle_of_a_compile_leaves_no_process_behind(tmp_path: Path, by: str) -> None:
    with on_terminal(tmp_path, "compile") as terminal:
        terminal.read_until(b"Search tree")
        folder = written(tmp_path / "log.txt.folder", terminal)
        (engine,) = [pid for pid in _of_folder("engine.session.child") if _parent(pid) == program(tmp_path)]
        ends = time.monotonic() + 20
        while not _of_folder(folder):
            assert time.monotonic() < ends, "the compiler did not start"
            time.sleep(0.05)
        if by == "keys":
            os.write(terminal.master, b"\x03")
            terminal.read_until(b"stopping")
            os.write(terminal.master, b"\x03")
            assert terminal.ended() == 130
        elif by == "q":
            os.write(terminal.master, b"q")
            terminal.read_until(b"Quit?")
            os.write(terminal.master, b"y")
            assert terminal.ended() == 0
        else:
            number = signal.Signals[by]
            os.kill(program(tmp_path) if by == "SIGKILL" else terminal.pid, number)
            assert terminal.ended() == 128 + number
        assert terminal.restored()
        ends = time.monotonic() + 5
        while _of_folder(folder) or Path(folder).exists() or Path(f"/proc/{engine}").exists():
            assert time.monotonic() < ends, "something is left"
            time.sleep(0.05)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_what_the_engine_prints_goes_to_the_log_and_never_to_the_screen(tmp_path: Path) -> None:
    log = log_of_noise(tmp_path, "noise", b"finished")
    for line in (
        "noise on descriptor two",
        "noise on descriptor one",
        "child noise",
        "printed noise",
        "a line of the log",
    ):
        assert line in log


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_the_screen_outlives_the_engine_and_starts_it_anew(number: signal.Signals, tmp_path: Path) -> None:
    note = tmp_path / "log.txt.engine"
    with on_terminal(tmp_path, "waits") as terminal:
        terminal.read_until(b"Search tree")
        engine = int(written(note, terminal))
        note.unlink()
        os.kill(engine, number)
        terminal.read_until(f"the tuner's process was ended by {number.name}".encode())
        assert not Path(f"/proc/{engine}").exists()
        terminal.output = b""
        os.write(terminal.master, b"R")
        terminal.read_until(b"running")
        again = int(written(note, terminal))
        assert again != engine
        terminal.read_on(1.0)  # what the terminal still holds tells of the first
        terminal.output = b""
        os.kill(again, number)
        terminal.read_until(b"was ended by")
        os.write(terminal.master, b"q")
        assert terminal.ended() == 1
        assert terminal.restored()
        after = terminal.output[terminal.output.rfind(ALTERNATE_OFF) :]
        assert f"emmy-tui: the tuner's process was ended by {number.name}".encode() in after
    if number is signal.SIGSEGV:
        assert 'File "' in (tmp_path / "log.txt").read_text(), "what the engine's threads were at"


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


def test_a_screen_that_was_written_over_is_painted_anew_on_demand(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "idle") as terminal:
        terminal.read_until(b"Search tree")
        terminal.output = b""
        os.write(terminal.master, b"\x0c")
        terminal.read_until(b"Search tree")
        os.write(terminal.master, b"q")
        assert terminal.ended() == 0
