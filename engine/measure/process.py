"""Child processes that can be killed without a trace: own process group, own log file, a channel, a caretaker."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from engine.disk import is_scarce
from engine.measure.channel import Channel

LOG_LIMIT_BYTES = 8 << 20
KILL_WAIT_S = 10.0
ROOM_RETRY_S = 2.0
"""How often a child is asked again for what it had no space on the disk for, in seconds."""

_FORBIDDEN_SETTINGS = (
    *("TRITON_INTERPRET", "TRITON_DEBUG", "TRITON_ALWAYS_COMPILE", "TRITON_KERNEL_OVERRIDE", "TRITON_KERNEL_DUMP"),
    *("TRITON_OVERRIDE_ARCH", "TRITON_F32_DEFAULT", "TRITON_CACHE_MANAGER", "TRITON_REMOTE_CACHE_BACKEND"),
    *("PTXAS_OPTIONS", "DISABLE_PTXAS_OPT", "CUDA_LAUNCH_BLOCKING", "PYTHONSTARTUP"),
)
"""A user's environment must not change what is measured; all of these do, silently."""


def entry_command(module: str) -> tuple[str, ...]:
    """The command that runs `main` of one of our modules in a fresh interpreter.

    It never executes the user's script again, as multiprocessing's spawn does, and our package is found even where a
    user's folder has a module of the same name.
    """
    root = str(Path(__file__).resolve().parents[2])
    code = f"import sys; sys.path.insert(0, {root!r}); from {module} import main; main(*map(int, sys.argv[1:4]))"
    return (sys.executable, "-P", "-c", code)


def child_environment(folder: Path) -> dict[str, str]:
    """The environment of compilers and workers: equal in both, so that they share Triton's cache in `folder`."""
    environment = {name: value for name, value in os.environ.items() if name not in _FORBIDDEN_SETTINGS}
    return environment | {
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "TRITON_STORE_BINARY_ONLY": "1",
        "PYTHONUNBUFFERED": "1",
    }


class Nursery:
    """Starts the children of one device in one temporary folder, and leaves neither behind, however the run ends."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        """`settings` join the environment of every child."""
        self._settings = dict(settings or {})
        self.folder = Path(tempfile.mkdtemp(prefix="emmy-"))
        read_fd, self._write_fd = os.pipe()
        self._lock = threading.Lock()
        self._closed = False
        self._caretaker = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", str(Path(__file__).with_name("caretaker.py"))),
                *(str(read_fd), str(self.folder)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(read_fd,),
            start_new_session=True,
        )
        os.close(read_fd)

    @property
    def sources(self) -> Path:
        """Where kernels' texts, and what they are assembled with, are kept for the children."""
        return self.folder / "sources"

    @property
    def full(self) -> str:
        """Where the children have no space on the disk, as a sentence; "" while there is some.

        A full disk takes down processes that have done nothing wrong: what maps a file there dies of SIGBUS.
        """
        return f"no space is left under {self.folder}, where candidates are compiled" if is_scarce(self.folder) else ""

    def start(self, command: Sequence[str], name: str) -> Child:
        """Start a child; it gets three numbers: the fd it reads, the fd it writes, the process id of its parent.

        Call it from a thread that lives as long as the child should: PR_SET_PDEATHSIG follows the thread.
        Raises OSError when the process can't be started.
        """
        environment = child_environment(self.folder) | self._settings
        child = Child(command, self.folder / f"{name}.log", environment)
        self._tell(f"+{child.pid}\n")
        return child

    def bury(self, child: Child) -> None:
        """Kill the child and its process group and close its channel. For the thread that owns the child."""
        child.kill()
        child.channel.close()
        self._tell(f"-{child.pid}\n")

    def close(self) -> None:
        """Remove the folder. The caretaker does it, kills what is not buried, and may outlive a long removal."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.close(self._write_fd)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._caretaker.wait(KILL_WAIT_S)

    def _tell(self, line: str) -> None:
        with self._lock, contextlib.suppress(OSError):
            if not self._closed:
                os.write(self._write_fd, line.encode())


class Child:
    """One running child. Only the thread that owns it talks to it; any thread may kill it."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._dead = False
        child_reads, to_child = os.pipe()
        from_child, child_writes = os.pipe()
        try:
            with _log_of(log) as output:
                self._process = subprocess.Popen(
                    [*command, str(child_reads), str(child_writes), str(os.getpid())],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(child_reads, child_writes),
                    start_new_session=True,
                    env=dict(environment),
                )
        except OSError:
            os.close(to_child)
            os.close(from_child)
            raise
        finally:
            os.close(child_reads)
            os.close(child_writes)
        self.channel = Channel(from_child, to_child)

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL to the whole group. The leader is reaped last, so that its number can't belong to another group."""
        with self._lock:
            if self._dead:
                return
            self._dead = True
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(KILL_WAIT_S)

    def death(self) -> str:
        """How a child whose channel closed ended: "SIGABRT", "exit code 3". Kills what is left of its group."""
        with self._lock:
            if not self._dead:
                # The channel closes a moment before the process is a zombie; WNOWAIT leaves it unreaped.
                with contextlib.suppress(OSError):
                    _wait_unreaped(self.pid)
        self.kill()
        code = self._process.returncode
        if code is None:
            return "no exit code"
        if code < 0:
            try:
                return signal.Signals(-code).name
            except ValueError:
                return f"signal {-code}"
        return f"exit code {code}"

    def last_line(self) -> str:
        """The last line it printed, for a message to a person; "" if it printed nothing."""
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))
                lines = log.read().decode(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1].strip() if lines else ""

    def trim_log(self) -> None:
        """A run with thousands of failing candidates must not fill the disk with what compilers print."""
        with contextlib.suppress(OSError):
            if self._log.stat().st_size > LOG_LIMIT_BYTES:
                os.truncate(self._log, 0)


def _log_of(path: Path) -> BinaryIO:
    """Where a child prints to; nowhere, where the disk has no space for another file: a child can do without."""
    try:
        return path.open("ab")
    except OSError:
        return Path(os.devnull).open("ab")


def _wait_unreaped(pid: int, limit_s: float = 2.0) -> None:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.005)
