"""What the screen costs the tuner: the same search with it and without it, in turns, on a GPU.

    python -m tests.bench.screen_cost [--turns 3] [--code TEXT] [--device cuda:0] [--keep FOLDER]

Off is `emmy tune --json -q`, on is `emmy-tui --code` in a pseudo terminal of 160x45 whose output is read and thrown
away. Each run begins with an empty database in a folder of its own, with the same program, seed and patience. The
program is one whose only kernel has a few hundred schedules, and the patience is above their number: every run measures
all of them, whatever it finds on the way. Runs go off, on, on, off, off, on, so that a drift of the GPU's clocks counts
for both; a run before them, which isn't counted, brings files into memory.

Throughput is candidates over the seconds from the start of a run to its end as the database records both: starting
Python, importing Textual and capturing don't count, whereas putting the winner together and learning do. Beside it
stands the same from the start to the last ranked candidate. The intervals are Student's over the turns. Times are
compared schedule by schedule, the median of the runs with the screen over that of the runs without it: their geometric
mean, with an interval over schedules. What the runs without the screen differ by from each other says what a difference
can mean. Ends with 1 where on and off differ by more than 1 % and by more than their noise, with 2 without a GPU.
"""

from __future__ import annotations

import argparse
import math
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import t as student

from engine.deploy.place import has_driver
from tests.bench.screens_terminal import Terminal

CODE = "torch.amax(torch.randn(65536, 256, dtype=torch.bfloat16, device='cuda'), dim=-1)"
"""One kernel of 285 schedules, and one grouping."""
PATIENCE = 1_000_000
SIZE = (160, 45)
EMMY = [sys.executable, "-c", "import sys; from engine.cli import main; sys.exit(main())"]
EMMY_TUI = [sys.executable, "-m", "emmy_tui.main"]
POLL_S = 0.5
LIMIT_S = 120.0
LEAVE_S = 10.0
AGREE = 0.01

Key = tuple[str, str, str]
"""Kernel, schedule and regime."""


class RunFailed(Exception):
    """One of the runs didn't come to its end; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What one run's database says: moments in seconds since 1970, medians in us."""

    began: float
    ended: float
    last: float
    candidates: int
    failed: int
    medians: dict[Key, float]

    @property
    def rate(self) -> float:
        """Candidates a second of the run."""
        return self.candidates / (self.ended - self.began)

    @property
    def search_rate(self) -> float:
        """Candidates a second until the last of them was ranked."""
        return self.candidates / (self.last - self.began)


@dataclass(frozen=True, slots=True)
class Ratio:
    """On over off, as a geometric mean with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"

    @property
    def verdict(self) -> str:
        if abs(self.value - 1) <= AGREE:
            sure = self.low >= 1 - AGREE and self.high <= 1 + AGREE
            return "agree within 1 %" + ("" if sure else ", and the interval is wider than that")
        return "not told apart" if self.low <= 1 <= self.high else "DIFFER by more than 1 %"


def mean_ratio(logs: Sequence[float]) -> Ratio:
    """Of logarithms of ratios; the interval is infinitely wide for a single one."""
    mean = statistics.mean(logs)
    if len(logs) < 2:
        return Ratio(math.exp(mean), 0.0, math.inf)
    half = float(student.ppf(0.975, len(logs) - 1)) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def ended_state(path: Path) -> str:
    """The state in which the database's run has ended; "" until then."""
    if not path.exists():
        return ""
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1.0)) as found:
        row = found.execute("SELECT state FROM run WHERE ended_at IS NOT NULL").fetchone()
        return str(row[0]) if row else ""
    return ""


def watched(path: Path, alive: Callable[[], bool], spend: Callable[[float], object]) -> str:
    """Wait until the run has ended, looking at its database now and then; its state. `spend` waits for seconds."""
    until = time.monotonic() + LIMIT_S
    while not (state := ended_state(path)):
        if not alive():
            return ended_state(path)
        if time.monotonic() > until:
            raise RunFailed(f"a run took longer than {LIMIT_S:.0f} s: give a --code with fewer schedules")
        spend(POLL_S)
    return state


def without_screen(arguments: Sequence[str], path: Path) -> str:
    """Run `emmy tune` to its end; the state that it ended in."""
    command = [*EMMY, "tune", *arguments, "--json", "-q"]
    with (path.parent / "stderr").open("wb") as said:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        try:
            state = watched(path, lambda: child.poll() is None, time.sleep)
            child.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            raise RunFailed(f"emmy tune did not end within {LEAVE_S:.0f} s of its run") from None
        finally:
            child.kill()
    if child.returncode:
        lines = (path.parent / "stderr").read_text(errors="replace").splitlines() or ["nothing"]
        raise RunFailed(f"emmy tune ended with {child.returncode} and said: {lines[-1]}")
    return state


class Screen:
    """emmy-tui in a terminal that nobody looks at."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._terminal = Terminal([*EMMY_TUI, *arguments], SIZE)
        self._status: int | None = None
        self.shown_bytes = 0
        self.cpu_s = 0.0
        self._end = b""

    def alive(self) -> bool:
        if self._status is None:
            with suppress(OSError, IndexError):
                self.cpu_s = self._terminal.cpu_s()
            pid, status = os.waitpid(self._terminal.pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status is None

    def spend(self, seconds: float) -> None:
        """Read for so long; only the count of bytes is kept, and what was written last."""
        began = time.monotonic()
        written = self._terminal.read(seconds)
        self.shown_bytes += len(written)
        self._end = (self._end + written)[-2000:]
        time.sleep(max(0.0, seconds - (time.monotonic() - began)))  # a terminal that has gone ends a read at once

    def leave(self) -> int:
        """Press q, as a person does, until the program has ended; its exit status. Raises RunFailed."""
        until = time.monotonic() + LEAVE_S
        while self.alive():
            if time.monotonic() > until:
                raise RunFailed(f"emmy-tui did not leave within {LEAVE_S:.0f} s of q")
            with suppress(OSError):
                os.write(self._terminal.fd, b"q")  # while the run still closes its device, this asks; the next q stays
            self.spend(1.0)
        assert self._status is not None
        return self._status

    def close(self) -> None:
        if self.alive():
            self._terminal.close()
        else:
            os.close(self._terminal.fd)

    @property
    def last_words(self) -> str:
        lines = [line.strip() for line in self._end.decode(errors="replace").splitlines() if line.strip()]
        return lines[-1][-300:] if lines else "nothing"


def with_screen(arguments: Sequence[str], path: Path) -> str:
    """Run `emmy-tui --code` until its run has ended, then leave it; the state that the run ended in."""
    screen = Screen([*arguments, "--fps", "4", "--log-file", str(path.parent / "log")])
    try:
        state = watched(path, screen.alive, screen.spend)
        cpu_s = screen.cpu_s
        status = screen.leave()
    finally:
        screen.close()
    if status:
        raise RunFailed(f"emmy-tui ended with {status} and said: {screen.last_words}")
    print(f"     screen and engine together: {cpu_s:.1f} s of CPU, {screen.shown_bytes / 1024:.0f} KB to the terminal")
    return state


def searched(path: Path) -> Searched:
    """Read what a run left."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as found:
        began, ended = found.execute("SELECT started_at, ended_at FROM run").fetchone()
        count, failed, last = found.execute(
            "SELECT count(*), sum(status = 'failed'), max(measured_at) FROM measurement"
        ).fetchone()
        ranking = "SELECT kernel_key, schedule, 'ranking', median_us FROM measurement WHERE median_us IS NOT NULL"
        deploy = "SELECT kernel_key, schedule, 'deploy', deploy_us FROM node WHERE deploy_us IS NOT NULL"
        rows = found.execute(f"{ranking} UNION ALL {deploy}").fetchall()
    medians = {(kernel, schedule, regime): us for kernel, schedule, regime, us in rows}
    return Searched(began, ended, last, count, failed, medians)


def one_run(on: bool, options: argparse.Namespace, folder: Path) -> Searched:
    """Tune from an empty database in `folder`."""
    folder.mkdir(parents=True)
    path = folder / "tune.db"
    arguments = ["--code", options.code, "--db", str(path), "--patience", str(PATIENCE), "--device", options.device]
    state = (with_screen if on else without_screen)(arguments, path)
    if state != "finished":
        raise RunFailed(f"the run with the screen {'on' if on else 'off'} ended as {state or 'nothing at all'}")
    result = searched(path)
    print(
        f"{'on ' if on else 'off'}  {result.candidates} candidates, {result.failed} failed, "
        f"{len(result.medians) - result.candidates + result.failed} timed again to deploy, "
        f"{result.ended - result.began:.2f} s, {result.rate:.2f} a second, {result.search_rate:.2f} until the last",
        flush=True,
    )
    return result


def order(turns: int) -> list[bool]:
    """Off and on, the pair turned round each time; True is on."""
    return [on for turn in range(turns) for on in ((False, True) if turn % 2 == 0 else (True, False))]


def median_ratio(on: Sequence[Searched], off: Sequence[Searched], regime: str) -> tuple[Ratio, int]:
    """Times with the screen over those without it, over the schedules that all runs have, and how many they are."""
    shared = [key for key in off[0].medians if key[2] == regime and all(key in run.medians for run in (*on, *off))]
    if not shared:
        return Ratio(math.nan, math.nan, math.nan), 0
    logs = [math.log(_median(on, key) / _median(off, key)) for key in shared]
    return mean_ratio(logs), len(shared)


def _median(runs: Sequence[Searched], key: Key) -> float:
    return statistics.median(run.medians[key] for run in runs)


def spread(values: Sequence[float]) -> float:
    """The largest over the smallest, less 1."""
    return max(values) / min(values) - 1


def report(on: Sequence[Searched], off: Sequence[Searched]) -> int:
    """Print the comparison; returns the exit status."""
    wholly = mean_ratio([math.log(a.rate / b.rate) for a, b in zip(on, off, strict=True)])
    search = mean_ratio([math.log(a.search_rate / b.search_rate) for a, b in zip(on, off, strict=True)])
    ranking, schedules = median_ratio(on, off, "ranking")
    deploy, deployed = median_ratio(on, off, "deploy")
    alone = [median_ratio([run], off[:1], "ranking")[0].value for run in off]
    sets = {frozenset(key[:2] for key in run.medians if key[2] == "ranking") for run in (*on, *off)}
    measured = "the same schedules" if len(sets) == 1 else "NOT the same schedules"
    print(f"\nevery run timed {measured}; on over off, 95 % intervals, {len(on)} turns")
    print(f"candidates/s, run start to run end      {wholly}  off alone spreads by {spread([r.rate for r in off]):.2%}")
    print(f"candidates/s, until the last is ranked  {search}")
    print(f"times of {schedules} schedules, ranking         {ranking}  off alone spreads by {spread(alone):.2%}")
    if deployed:
        print(f"times of {deployed} schedules, deploy           {deploy}")
    print(f"verdict: throughput with the screen on and off: {wholly.verdict}; medians: {ranking.verdict}")
    return int(any("DIFFER" in one.verdict for one in (wholly, ranking)))


def measure(options: argparse.Namespace, folder: Path) -> int:
    began = time.monotonic()
    print("one run that isn't counted:")
    one_run(False, options, folder / "uncounted")
    print("counted:")
    runs: dict[bool, list[Searched]] = {True: [], False: []}
    for number, on in enumerate(order(options.turns)):
        runs[on].append(one_run(on, options, folder / f"{number}-{'on' if on else 'off'}"))
    status = report(runs[True], runs[False])
    print(f"{time.monotonic() - began:.0f} s in all")
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3, help="runs of each kind (default: 3)")
    parser.add_argument("--code", default=CODE, help="the program: few schedules, all of which are measured")
    parser.add_argument("--device", default="cuda:0", metavar="NAME")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the databases there; it must not exist")
    options = parser.parse_args()
    if options.turns < 1:
        parser.error("--turns is at least 1")
    if not has_driver():
        print("screen_cost: there is no NVIDIA driver on this machine, and tuning needs a GPU", file=sys.stderr)
        return 2
    try:
        if options.keep is not None:
            return measure(options, options.keep)
        with tempfile.TemporaryDirectory() as name:
            return measure(options, Path(name))
    except RunFailed as error:
        print(f"screen_cost: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
