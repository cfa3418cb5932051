"""Whether a process was stopped by a signal, as SIGSTOP and Ctrl-Z do: it says nothing, and goes on by SIGCONT.

Linux tells in /proc, of the processes of this machine that are this user's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


def is_stopped(pid: int) -> bool:
    """Whether the process is stopped now; False where nobody can tell."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[:1] == ["T"]


def stopped_words(whose: str, pid: int) -> str:
    """A badge."""
    return f"{whose} STOPPED BY A SIGNAL, kill -CONT {pid}"


def stopped_writer(path: Path) -> int | None:
    """The process that has the file open to write and is stopped; None without one."""
    return next((pid for pid in _processes() if is_stopped(pid) and _writes(pid, path)), None)


def _processes() -> Iterator[int]:
    names = []
    with suppress(OSError):
        names = os.listdir(_PROC)
    return map(int, filter(str.isdecimal, names))


def _writes(pid: int, path: Path) -> bool:
    folder, wanted = _PROC / str(pid), os.path.realpath(path)
    try:
        for fd in os.listdir(folder / "fd"):
            if os.readlink(folder / "fd" / fd) == wanted:
                flags = (folder / "fdinfo" / fd).read_text().partition("flags:")[2].split()[0]
                if int(flags, 8) & os.O_ACCMODE != os.O_RDONLY:
                    return True
    except (OSError, ValueError, IndexError):  # another user's, or it has just ended
        return False
    return False
