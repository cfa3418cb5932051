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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from engine.disk import is_scarce
from engine.measure.channel import Channel

LOG_LIMIT_BYTES = 8 << 20
KILL_WAIT_S = 10.0
END_WAIT_S = 2.0
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
        "OPENBLAS_NUM_THREADS": "1",  # its threads start at the import, and a process with threads can't fork safely
    }


class Process(Protocol):
    """What a child's owner has to know of the process, whoever its parent is."""

    @property
    def pid(self) -> int: ...

    def ends(self, limit_s: float) -> bool:
        """Whether it has ended within `limit_s`. It stays unreaped, so that its number belongs to nobody else."""
        ...

    def reap(self, limit_s: float) -> int | None:
        """Its exit code, the negative number of a signal; None where that can't be known, or it has not ended."""
        ...


Begin = Callable[[int, int, int], Process]
"""Starts a process on three fds of the caller's: the one that it reads, the one that it writes, and its log."""


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
            env=dict(os.environ),
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

    def start(
        self,
        command: Sequence[str],
        name: str,
        keep: Sequence[int] = (),
        *,
        output: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Child:
        """Start a child; it gets three numbers: the fd it reads, the fd it writes, the process id of its parent.

        The fds in `keep` stay open in it. It prints to the fd `output` if that is given, else to a file of its own;
        `environment` takes the place of that of compilers and workers. Call it from a thread that lives as long as the
        child should: PR_SET_PDEATHSIG follows the thread. Raises OSError when the process can't be started.
        """
        given = {**(child_environment(self.folder) if environment is None else environment), **self._settings}

        def begin(reads: int, writes: int, log: int) -> Process:
            return _Started(command, (reads, writes, *keep), log if output is None else output, given)

        return self.begin(begin, name)

    def begin(self, begin: Begin, name: str) -> Child:
        """A child whose process `begin` starts, as the leader of a group. Raises what `begin` raises."""
        child = _connected(begin, self.folder / f"{name}.log")
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

    def __init__(self, process: Process, channel: Channel, log: Path) -> None:
        self.channel = channel
        self._process = process
        self._log = log
        self._lock = threading.Lock()
        self._dead = False
        self._code: int | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the process is gone, of itself or killed."""
        with self._lock:
            return self._dead or self._process.ends(0.0)

    def kill(self) -> None:
        """SIGKILL to the whole group. The leader is reaped last, so that its number can't belong to another group."""
        with self._lock:
            if self._dead:
                return
            self._dead = True
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
            self._code = self._process.reap(KILL_WAIT_S)

    def death(self) -> str:
        """How a child whose channel closed ended: "SIGABRT", "exit code 3". Kills what is left of its group."""
        with self._lock:
            if not self._dead:
                # The channel closes a moment before the process is a zombie.
                self._process.ends(END_WAIT_S)
        self.kill()
        code = self._code
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


class _Started:
    """A process of our own making, in a session of its own."""

    def __init__(self, command: Sequence[str], fds: Sequence[int], log: int, environment: Mapping[str, str]) -> None:
        """Of `fds`, which it keeps open, it reads the first and writes the second."""
        self._process = subprocess.Popen(
            [*command, *map(str, fds[:2]), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=tuple(fds),
            start_new_session=True,
            env=dict(environment),
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ends(self, limit_s: float) -> bool:
        return holds_within(limit_s, self._is_over)

    def reap(self, limit_s: float) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(limit_s)
        return None

    def _is_over(self) -> bool:
        """By WNOWAIT, which leaves it unreaped."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except OSError:
            return True


def holds_within(limit_s: float, condition: Callable[[], bool]) -> bool:
    """Whether it holds within `limit_s`; it is looked at once at least, and then every few milliseconds."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.005)
    return True


def _connected(begin: Begin, log: Path) -> Child:
    child_reads, to_child = os.pipe()
    from_child, child_writes = os.pipe()
    try:
        with _log_of(log) as output:
            process = begin(child_reads, child_writes, output.fileno())
    except BaseException:
        os.close(to_child)
        os.close(from_child)
        raise
    finally:
        os.close(child_reads)
        os.close(child_writes)
    return Child(process, Channel(from_child, to_child), log)


def _log_of(path: Path) -> BinaryIO:
    """Where a child prints to; nowhere, where the disk has no space for another file: a child can do without."""
    try:
        return path.open("ab")
    except OSError:
        return Path(os.devnull).open("ab")
