"""What the screens cost in a real terminal: keys, stalls, CPU and bytes; and a database with a million measurements.

`screens.py` runs it and prints each figure beside its budget. Other programs disturb a time of the wall: beside keys
and stalls stands what is left without the time that the process waited for a core, beside the first frame its CPU time.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from emmy_tui.format import count
from tests.bench.large_database import FIRST_ROWS, write_rows

HERE = Path(__file__).parent

CHILD = [sys.executable, str(HERE / "screens_child.py")]
WARM_S = 2.5


class Terminal:
    """A program on a terminal of `size` (columns, rows)."""

    def __init__(self, command: Sequence[str], size: tuple[int, int]) -> None:
        self.began = time.monotonic()
        self._drawing: int | None = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", "COLORTERM": "truecolor"})
            os.execvp(command[0], list(command))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    @property
    def drawing(self) -> int:
        """The process that draws: emmy-tui's own child, whose parent only waits; else the program itself."""
        if self._drawing is None:
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            self._drawing = int(children[0]) if children else None
        return self._drawing or self.pid

    def read(self, seconds: float, until: bytes = b"") -> bytes:
        """What is written within the time, or until `until` was."""
        data = b""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                try:
                    data += os.read(self.fd, 1 << 16)
                except OSError:
                    break
                if until and until in data:
                    break
        return data

    def key(self, key: bytes, until: bytes) -> tuple[float, float]:
        """Seconds from a key to the paint of what it changes, and those of them that the process waited for a core."""
        began, waited = time.monotonic(), waited_s(self.drawing)
        os.write(self.fd, key)
        self.read(2.0, until)
        return time.monotonic() - began, waited_s(self.drawing) - waited

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.drawing}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self, which: str = "VmRSS") -> float:
        """Of the program that draws; with VmHWM the most that it ever was."""
        lines = Path(f"/proc/{self.drawing}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(which))

    def close(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        self.read(1.0)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def waited_s(pid: int | str) -> float:
    """Seconds that a process was ready to run and had no core (Linux, Documentation/scheduler/sched-stats.rst)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def told(name: str, figure: float, unit: str, budget: float) -> None:
    print(f"{name:<58} {figure:9.1f} {unit:<6} budget {budget:g}")


def keys_under_events(rate: float) -> None:
    terminal = Terminal([*CHILD, str(rate), "60", os.devnull], (160, 45))
    terminal.read(20.0, b"Search tree")
    terminal.read(WARM_S)
    spent, own = [], []
    for number in range(40):
        key_until = b"near" if number % 2 == 0 else b"log"
        wall, waited = terminal.key(b"L", key_until)
        spent.append(wall * 1000)
        own.append((wall - waited) * 1000)
        terminal.read(0.07)
    terminal.close()
    told(f"key to paint at {rate:,.0f} events/s, p95", sorted(spent)[len(spent) * 95 // 100], "ms", 60)
    told("  without waiting for a core", sorted(own)[len(own) * 95 // 100], "ms", 60)
    print(f"{'  median':<58} {statistics.median(spent):9.1f} ms")


def loop_under_events(rate: float, folder: Path) -> None:
    report = folder / "report.json"
    terminal = Terminal([*CHILD, str(rate), "6", str(report)], (160, 45))
    terminal.read(12.0)
    os.waitpid(terminal.pid, 0)
    found = json.loads(report.read_text())
    told(f"loop stall at {rate:,.0f} events/s, longest", found["stall_ms"], "ms", 100)
    told("  without waiting for a core", found["own_stall_ms"], "ms", 100)
    told(f"CPU at {rate:,.0f} events/s, 160x45, of a core", found["cpu"] * 100, "%", 15)
    print(f"  {found['events']:,} candidates shown")


def bytes_of_the_demo(size: tuple[int, int], budget_kb: float) -> None:
    """A live replay, from its first candidates on."""
    terminal = Terminal([sys.executable, "-m", "emmy_tui.main", "--demo"], size)
    terminal.read(4.0)
    cpu, began = terminal.cpu_s(), time.monotonic()
    data = terminal.read(8.0)
    seconds = time.monotonic() - began
    share = (terminal.cpu_s() - cpu) / seconds
    terminal.close()
    told(f"demo live at {size[0]}x{size[1]}, to the terminal", len(data) / seconds / 1024, "KB/s", budget_kb)
    told(f"demo live at {size[0]}x{size[1]}, CPU with the search", share * 100, "%", 15)


def large_database(path: Path, rows: int) -> None:
    terminal = Terminal([sys.executable, "-m", "emmy_tui.main", "--read-only", str(path)], (160, 45))
    terminal.read(20.0, b"Search tree")
    told("database: first frame", (time.monotonic() - terminal.began) * 1000, "ms", 1500)
    print(f"{'  its CPU time':<58} {terminal.cpu_s() * 1000:9.1f} ms")
    terminal.read(3.0)
    os.write(terminal.fd, b"2")
    began = time.monotonic()
    terminal.read(60.0, count(rows + FIRST_ROWS).encode())
    print(f"{'  variants sorted':<58} {(time.monotonic() - began) * 1000:9.1f} ms")
    terminal.read(2.0)
    os.write(terminal.fd, b"G")
    terminal.read(1.0)
    spent = []
    for _ in range(30):
        before = terminal.cpu_s()
        for _ in range(5):
            os.write(terminal.fd, b"\x1b[5~")
            terminal.read(0.06)
        spent.append((terminal.cpu_s() - before) * 1000 / 5)
    told("  a page of variants up, mean CPU", statistics.mean(spent), "ms", 25)
    told("  resident memory", terminal.resident_mb(), "MB", 250)
    os.write(terminal.fd, b"3")
    began = time.monotonic()
    terminal.read(60.0, b"hung")
    print(f"{'  failures in clusters':<58} {(time.monotonic() - began) * 1000:9.1f} ms")
    told("  resident memory, at most", terminal.resident_mb("VmHWM"), "MB", 250)
    terminal.close()


def measure_terminal(rows: int) -> None:
    """All of it; `rows` are the measurements of the large database."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keys_under_events(1000)
        loop_under_events(1000, folder)
        loop_under_events(5000, folder)
        bytes_of_the_demo((80, 24), 8)
        bytes_of_the_demo((160, 45), 20)
        path = write_rows(folder / "large.db", rows)
        print(f"database of {rows:,} measurements, {path.stat().st_size / 2**20:,.0f} MB")
        large_database(path, rows)
