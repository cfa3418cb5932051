"""A writer whose database screens follow: does watching cost it a row, or time? Prints, never fails:

    python -m tests.bench.watched [--minutes 10] [--screens 3] [--rate 50] [--rows 100000] [--journal WAL]

The database starts with `--rows` measurements; each new one is a commit of its own, as a run's are. The screens are
read-only, in terminals of their own, and a key is pressed in each of them now and then. With `--journal DELETE` the
database is one without a write-ahead log, where a reader keeps a writer waiting as long as it reads.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from engine.store import Store, StoreError
from engine.vocabulary import Measurement, Regime, Schedule, Status, Timing
from tests.bench.large_database import write_rows
from tests.bench.screens_terminal import Terminal, told
from tests.emmy_tui.measured import CONTEXT, fill, matmul, schedules

KEYS = ("2", "G", "g", "1", "3", "2", "j", "4", "6", "s")
KEY_EVERY_S = 1.7
WARM_S = 15.0
COMMIT_MS = 50.0


def candidate(schedule: Schedule, number: int) -> Measurement:
    """One more measurement, of a schedule that differs from every other one."""
    us = 10.0 + number * 7 % 601
    knobs = {**schedule.as_dict(), "TRIAL": -1 - number}
    timing = Timing(us, us * 0.99, us * 1.01, (us, us))
    return Measurement(matmul().key, Schedule.of(knobs), Regime.RANKING, CONTEXT.key, Status.OK, timing)


class Watched:
    """The writer's `store` and the `screens` that follow its database."""

    def __init__(self, store: Store, screens: list[Terminal]) -> None:
        self.store, self.screens = store, screens
        self.commits_ms: list[float] = []
        self.errors: list[str] = []

    def write(self, seconds: float, rate: float) -> None:
        """Commit `rate` rows a second; what the screens draw is taken in between."""
        run = self.store.runs()[0].id
        schedule = schedules(matmul(), 1)[0]
        began = time.monotonic()
        pressed_at, number = began, 0
        while (now := time.monotonic()) < began + seconds:
            before = time.perf_counter()
            try:
                self.store.record_measurement(candidate(schedule, number), run=run, trial=10_000_000 + number)
            except StoreError as error:
                self.errors.append(str(error))
            self.commits_ms.append((time.perf_counter() - before) * 1000)
            number += 1
            if now - pressed_at > KEY_EVERY_S:
                self.press(number)
                pressed_at = now
            for screen in self.screens:
                screen.read(max(0.001, (began + number / rate - time.monotonic()) / len(self.screens)))

    def press(self, number: int) -> None:
        for place, screen in enumerate(self.screens):
            os.write(screen.fd, KEYS[(number + place) % len(KEYS)].encode())


def watched(folder: Path, options: argparse.Namespace) -> None:
    path = write_rows(folder / "watched.db", options.rows) if options.rows else fill(folder / "watched.db")
    with Store.open(path) as store:
        store._connection.db.conn.execute(f"PRAGMA journal_mode = {options.journal}").fetchall()
        command = [sys.executable, "-m", "emmy_tui.main", "--read-only", str(path)]
        screens = [Terminal(command, (160, 45)) for _ in range(options.screens)]
        for screen in screens:
            screen.read(WARM_S, b"Kernels")
        work = Watched(store, screens)
        spent, began = [screen.cpu_s() for screen in screens], time.monotonic()
        work.write(options.minutes * 60, options.rate)
        seconds = time.monotonic() - began
        shares = [(screen.cpu_s() - before) / seconds for screen, before in zip(screens, spent, strict=True)]
        report(work, shares, path)
        for screen in screens:
            screen.close()


def report(work: Watched, shares: list[float], path: Path) -> None:
    commits = sorted(work.commits_ms)
    told("rows that could not be stored", len(work.errors), "", 0)
    for sentence in sorted(set(work.errors)):
        print(f"  {sentence}")
    told(f"commit p99 of {len(commits):,}", commits[len(commits) * 99 // 100], "ms", COMMIT_MS)
    print(f"{'  longest':<58} {commits[-1]:9.1f} ms")
    for share in shares:
        told("CPU of a screen, of a core", share * 100, "%", 15)
    log = path.with_name(path.name + "-wal")
    print(f"{'write-ahead log':<58} {log.stat().st_size / 2**20 if log.exists() else 0:9.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--screens", type=int, default=3)
    parser.add_argument("--rate", type=float, default=50.0, help="new rows a second")
    parser.add_argument("--rows", type=int, default=100_000, help="measurements that are there before")
    parser.add_argument("--journal", choices=("WAL", "DELETE"), default="WAL")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        watched(Path(name), options)


if __name__ == "__main__":
    main()
