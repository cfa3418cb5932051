"""A small process above the program, which gives the terminal back when the program can't: after a crash or a kill -9.

It is this program before anything heavy is loaded: it forks, the child draws and tunes, and the parent waits. It hands
signals on, stops and goes on with its child, restores what the child left behind, writes the cause to the log and ends
with the child's status, 128 + n after a signal. A child whose parent is gone leaves as it does on SIGTERM.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
import threading
from pathlib import Path
from typing import Any

from emmy_tui.terminal import STUCK_S, is_ours, tell_log, within

HANDED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
"""SIGCONT among them: while this process was stopped alone, the shell wrote on the child's screen."""
FROM_KEYS_TOO = (signal.SIGINT, signal.SIGTSTP)
"""What a terminal sends to both processes while keys are signals; a screen takes the keys as they are."""

RESTORE = (
    b"\x1b[?2026l"  # a frame that was begun is shown
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"  # no mouse
    b"\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[<u"  # no focus, paste and size reports, plain keys
    b"\x1b[0m\x1b[?7h\x1b[?1049l\x1b[?25h"  # the main screen, with its cursor
)


def supervise(log: int, log_file: Path) -> int | None:
    """Fork. None in the child, which goes on with the program; in the parent the exit status, once the child ended."""
    if not hasattr(os, "fork"):
        return None
    before = termios.tcgetattr(sys.stdin.fileno())
    alive, held = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(held)
        threading.Thread(target=_leave_with_the_parent, args=(alive,), name="emmy-parent", daemon=True).start()
        return None
    os.close(alive)
    _hand_on(child)
    status = _wait(child, before)
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if not ended_by:
        _give_back(before, always=False)
        return os.waitstatus_to_exitcode(status)
    name = signal_name(ended_by)
    tell_log(log, f"CRITICAL emmy_tui: the program was ended by {name}")
    _give_back(before, always=True, saying=f"emmy-tui: ended by {name}; what is known is in {log_file}\n")
    return 128 + ended_by


def signal_name(number: int) -> str:
    """SIGTERM for 15."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _leave_with_the_parent(alive: int) -> None:
    """Nobody writes to the pipe: it ends with the parent, and with it the one who could give the terminal back."""
    with contextlib.suppress(OSError):
        os.read(alive, 1)
    main = threading.main_thread().ident  # to this thread: it may sleep, and no other one wakes it
    signal.pthread_kill(main or 0, signal.SIGTERM)


def _hand_on(child: int) -> None:
    def hand_on(number: int, frame: object) -> None:
        if number not in FROM_KEYS_TOO or not _keys_are_signals():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)

    for number in (*HANDED_ON, *FROM_KEYS_TOO):
        signal.signal(number, hand_on)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)


def _keys_are_signals() -> bool:
    try:
        return bool(termios.tcgetattr(sys.stdin.fileno())[3] & termios.ISIG)
    except (termios.error, OSError):
        return False


def _wait(child: int, before: list[Any]) -> int:
    """The child's wait status at its end. While it is stopped this process is, so that a shell sees one job, on the
    terminal as it was `before`: after a SIGSTOP the child gives nothing back. A stop that is over already is none."""
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return status
        found, status = os.waitpid(child, os.WNOHANG | os.WCONTINUED)
        if not found:
            _give_back(before, always=False)
            os.kill(os.getpid(), signal.SIGSTOP)
        elif not os.WIFCONTINUED(status):
            return status


def _give_back(before: list[Any], *, always: bool, saying: str = "") -> None:
    """The terminal as it was; one that the child gave back itself, or that a shell has taken, stays as it is. One that
    takes nothing isn't waited for."""

    def give_back() -> None:
        with contextlib.suppress(termios.error, OSError):
            terminal = sys.stdin.fileno()
            if is_ours(terminal) and (always or termios.tcgetattr(terminal) != before):
                os.write(sys.stdout.fileno(), RESTORE)
                termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
        with contextlib.suppress(OSError):
            os.write(sys.stderr.fileno(), saying.encode(errors="backslashreplace"))

    within(STUCK_S, give_back)


def outlived(parent: int) -> bool:
    """Whether the parent ended before its child: the shell wrote its prompt on the screen that the child takes down."""
    return os.getppid() != parent
