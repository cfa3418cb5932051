"""A writer whose database screens follow: does watching cost it a row, or time? Prints, never fails:

    python -m tests.bench.watched [--minutes 10] [--screens 3] [--rate 50] [--rows 100000] [--journal WAL] [--at-once]
        [--still]

The database starts with `--rows` measurements; each new one is a commit of its own, as a run's are. The screens are in
terminals of their own, and a key is pressed in each of them now and then; with `--still` they show the variants, and no
key is pressed. A stall is how late a screen's loop was, from when it has read what was there. With `--journal DELETE`
the database is one without a write-ahead log, where a reader in its place keeps a writer waiting as long as it reads;
with `--at-once` the writer waits for nobody.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

from engine.store import Store, StoreError
from engine.vocabulary import Measurement, Regime, Schedule, Status, Timing
from tests.bench.large_database import write_rows
from tests.bench.screens_terminal import CHILD, Terminal, told
from tests.emmy_tui.measured import CONTEXT, fill, matmul, schedules

STALL_MS = 50.0
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

    def __init__(self, store: Store, screens: list[Terminal], *, still: bool) -> None:
        self.store, self.screens, self.still = store, screens, still
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
            if not self.still and now - pressed_at > KEY_EVERY_S:
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
        if options.at_once:
            store._connection.db.conn.execute("PRAGMA busy_timeout = 0").fetchall()
        reports = [folder / f"screen{number}.json" for number in range(options.screens)]
        seconds = str(options.minutes * 60)
        screens = [Terminal([*CHILD, "0", seconds, str(report), str(path)], (160, 45)) for report in reports]
        for screen in screens:
            screen.read(WARM_S, b"Kernels")
            os.write(screen.fd, KEYS[0].encode())
        work = Watched(store, screens, still=options.still)
        work.write(options.minutes * 60, options.rate)
        for screen in screens:
            screen.read(WARM_S, b"\x1b[?1049l")
            screen.close()
        report(work, [json.loads(file.read_text()) for file in reports if file.exists()], path)


def report(work: Watched, screens: list[dict[str, float]], path: Path) -> None:
    commits = sorted(work.commits_ms)
    told("rows that could not be stored", len(work.errors), "", 0)
    for sentence in sorted(set(work.errors)):
        print(f"  {sentence}")
    told(f"commit p99 of {len(commits):,}", commits[len(commits) * 99 // 100], "ms", COMMIT_MS)
    print(f"{'  longest':<58} {commits[-1]:9.1f} ms")
    for found in screens:
        told("CPU of a screen, of a core", found["cpu"] * 100, "%", 15)
        told("  loop stall, longest", found["stall_ms"], "ms", STALL_MS)
        told("    without waiting for a core", found["own_stall_ms"], "ms", STALL_MS)
        print(f"{'    p99':<58} {found['stall_p99_ms']:9.1f} ms")
    log = path.with_name(path.name + "-wal")
    print(f"{'write-ahead log':<58} {log.stat().st_size / 2**20 if log.exists() else 0:9.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--screens", type=int, default=3)
    parser.add_argument("--rate", type=float, default=50.0, help="new rows a second")
    parser.add_argument("--rows", type=int, default=100_000, help="measurements that are there before")
    parser.add_argument("--journal", choices=("WAL", "DELETE"), default="WAL")
    parser.add_argument("--at-once", action="store_true", help="the writer waits for nobody")
    parser.add_argument("--still", action="store_true", help="no key is pressed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        watched(Path(name), options)


if __name__ == "__main__":
    main()
