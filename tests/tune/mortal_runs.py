"""Runs `emmy tune` on a GPU that exists only in its process, ends it at random moments, and says what was lost.

    python -m tests.tune.mortal_runs DATABASE LOG SIGNALS SEED CODE

SIGNALS has a word a life, the names of what it gets in turn: SIGKILL, or SIGINT+SIGINT.

Each life is a fork of this process, which has loaded everything, so that a life takes a moment. The GPU notes each
candidate in LOG before it answers, and times the next one only when the database holds the last or a second has passed:
what a killed run has lost is what LOG has and the database has not. Prints one line of JSON a life.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import sklearn.ensemble

from engine.cli import tune, tuning
from engine.cli.application import main as emmy
from engine.ir.kernel import Kernel
from engine.session import tuning as session
from engine.tune import LiveRequest
from engine.vocabulary import Measurement, Regime, Schedule

from .fake_device import FakeDevice

LOADED = (sklearn.ensemble, tune, tuning)
"""Loaded here, so that no life loads it."""

_KEPT = {
    Regime.RANKING: "SELECT 1 FROM measurement WHERE kernel_key = ? AND schedule = ?",
    Regime.DEPLOY: "SELECT 1 FROM node WHERE kernel_key = ? AND schedule = ? AND deploy_status IS NOT NULL",
}
Entry = tuple[str, str, str]


def is_kept(connection: sqlite3.Connection, entry: Entry) -> bool:
    kernel, schedule, regime = entry
    return connection.execute(_KEPT[Regime(regime)], (kernel, schedule)).fetchone() is not None


def entries(log: Path) -> list[Entry]:
    whole, _, _ = log.read_text().rpartition("\n") if log.exists() else ("", "", "")  # the last may still be written
    lines = whole.splitlines()
    return [(str(kernel), str(schedule), str(regime)) for kernel, schedule, regime in map(json.loads, lines)]


def descendants(pid: int) -> list[int]:
    """The processes below one, on a system with /proc."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *descendants(child)]
    return found


def gone(pids: list[int]) -> bool:
    """Whether none of them is left, given that a killed one takes a moment to go."""
    ends = time.monotonic() + 10.0
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < ends:
        time.sleep(0.01)
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


class OneAtATime(FakeDevice):
    """Answers in an order of its own, one candidate after the other."""

    def __init__(self, database: Path, log: Path, seed: int) -> None:
        super().__init__()
        self._database = database
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._dice = random.Random(seed)
        self._waiting: list[tuple[Entry, Future[Measurement], Measurement]] = []
        self._change = threading.Condition()
        threading.Thread(target=self._serve, daemon=True).start()

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        measurement = super().submit(kernel, schedule, regime).result()
        answer: Future[Measurement] = Future()
        with self._change:
            self._waiting.append(((kernel.key, schedule.key, str(regime)), answer, measurement))
            self._change.notify()
        return answer

    def _serve(self) -> None:
        connection = sqlite3.connect(f"{self._database.as_uri()}?mode=ro", uri=True)
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting)
                entry, answer, measurement = self._waiting.pop(self._dice.randrange(len(self._waiting)))
            if answer.cancelled():
                continue
            os.write(self._log, (json.dumps(entry) + "\n").encode())
            with suppress(InvalidStateError):  # it was cancelled just now
                answer.set_result(measurement)
            deadline = time.monotonic() + 1.0
            while not is_kept(connection, entry) and time.monotonic() < deadline:
                time.sleep(0.0005)


def live(database: Path, log: Path, seed: int, code: str) -> None:
    """One life: `emmy tune` until somebody kills it."""

    def request(*asked: Any, **also: Any) -> LiveRequest:
        wanted = LiveRequest(*asked, **also)
        return replace(wanted, open_device=lambda name, jobs: OneAtATime(database, log, seed))

    session.LiveRequest = request  # type: ignore[assignment, misc]
    emmy(["tune", "--code", code, "--db", str(database), "--patience", "100000", "-q"])


def born(database: Path, log: Path, seed: int, code: str) -> int:
    """The process of one life."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            live(database, log, seed, code)
        except SystemExit as ending:
            status = ending.code if isinstance(ending.code, int) else 1
        finally:
            os._exit(status)
    return child


def sent(child: int, names: str, dice: random.Random) -> None:
    """Send the process these signals, a moment apart; one that has ended gets no more."""
    for name in names.split("+"):
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            os.kill(child, signal.Signals[name])
            time.sleep(dice.random() * 0.1 if "+" in names else 0.0)


def main() -> None:
    database, log = Path(sys.argv[1]), Path(sys.argv[2])
    lives, seed, code = sys.argv[3].split(), int(sys.argv[4]), sys.argv[5]
    dice = random.Random(seed)
    for life, names in enumerate(lives):
        before = len(entries(log))
        child = born(database, log, seed + life, code)
        wanted = before + dice.randrange(1, 16)
        while len(entries(log)) < wanted and os.waitpid(child, os.WNOHANG) == (0, 0):
            time.sleep(0.002)
        time.sleep(dice.random() * 0.01)
        below, since = descendants(child), time.monotonic()
        sent(child, names, dice)
        _, status = os.waitpid(child, 0)
        exit_s = time.monotonic() - since
        answered = entries(log)[before:]
        with sqlite3.connect(database) as connection:
            lost = [entry for entry in answered if not is_kept(connection, entry)]
            intact = connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        told = {"answered": len(answered), "lost": len(lost), "intact": intact, "signals": names}
        told |= {"status": os.waitstatus_to_exitcode(status), "exit_s": exit_s, "left": not gone(below)}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
