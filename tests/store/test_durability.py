"""Two processes on one file, and one that is killed in the middle: what was measured is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.store import Store
from engine.vocabulary import Regime

WRITER = """
import sys
from engine.events import Logged
from engine.store import NodeRecord, Store, node_key
from engine.vocabulary import Measurement, Regime, Schedule, Status, Timing
path, run, kernel, context = sys.argv[1:5]
with Store.open(path) as store:
    for trial in range(1, int(sys.argv[5]) + 1):
        schedule = Schedule.of({"TRIAL": trial})
        key = node_key(context, kernel, schedule.as_dict())
        node = NodeRecord(key, "", kernel, schedule.as_dict(), "", 1, 1.0, 1, 1.0 + trial)
        for regime in Regime:
            timing = Timing(1.0 + trial, 1.0, 2.0, (1.0,) * 20)
            measurement = Measurement(kernel, schedule, regime, context, Status.OK, timing)
            store.record_measurement(measurement, run=run, trial=trial, nodes=(node,))
        store.record_events(run, (Logged(at=1.0, level="info", text=str(trial)),))
        print(trial, flush=True)
"""


def writer(path: Path, run: str, sample, trials: int) -> subprocess.Popen[str]:
    arguments = [str(path), run, sample.matmul.key, sample.context.key, str(trials)]
    return subprocess.Popen([sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("after", [1, 7, 60])
def test_kill_9_loses_at_most_the_row_in_flight(path: Path, sample, after: int) -> None:
    with Store.open(path) as store:
        run = sample.begin(store)
    child = writer(path, run, sample, 100_000)
    for line in child.stdout:
        if int(line) >= after:
            os.kill(child.pid, signal.SIGKILL)
            break
    told = max([after, *map(int, child.stdout.read().split())])
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()
    with Store.open(path) as store:
        recorded = [schedule["TRIAL"] for schedule in store.schedules(sample.matmul.key, sample.context.key)]
        assert recorded == list(range(1, len(recorded) + 1))
        assert told <= len(recorded) <= told + 1
        deployed = [store.best(sample.matmul.key, sample.context.key, regime).us for regime in Regime]
        assert deployed == [2.0, 2.0]
        assert store._connection.tuples("PRAGMA integrity_check") == [("ok",)]
        store.record_measurement(sample.ok(), run=run)


def test_a_reader_beside_a_writer_sees_whole_rows_in_order(path: Path, sample) -> None:
    trials = 150
    with Store.open(path) as store:
        run = sample.begin(store)
    child = writer(path, run, sample, trials)
    seen: list[int] = []
    ends = time.monotonic() + 60
    with Store.open(path, read_only=True) as reader:
        for event in reader.follow(run, poll_s=0.001, stop=lambda: len(seen) == trials or time.monotonic() > ends):
            if type(event).__name__ == "Logged":
                seen.append(int(event.text))
                schedules = reader.schedules(sample.matmul.key, sample.context.key)
                assert len(schedules) >= seen[-1]
                assert reader.deploy(sample.matmul.key, schedules[seen[-1] - 1], sample.context.key) is not None
    child.communicate()
    assert child.returncode == 0
    assert seen == list(range(1, trials + 1))


def test_a_slow_reader_does_not_hold_the_writer_up(path: Path, sample) -> None:
    """A reader that has stopped in the middle of its events keeps no transaction open."""
    with Store.open(path) as store:
        run = sample.begin(store)
    with Store.open(path, read_only=True) as reader:
        feed = reader.follow(run, poll_s=0, stop=lambda: False)
        next(feed)
        child = writer(path, run, sample, 400)
        child.communicate()
        assert child.returncode == 0
        with Store.open(path) as store:
            busy, _, _ = store._connection.tuples("PRAGMA wal_checkpoint(TRUNCATE)")[0]
        assert busy == 0
        feed.close()


def test_two_writers_take_turns(path: Path, sample) -> None:
    with Store.open(path) as store:
        runs = [sample.begin(store), store.start_run(sample.run_info())]
    children = [writer(path, run, sample, 60) for run in runs]
    for child in children:
        child.communicate()
    assert [child.returncode for child in children] == [0, 0]
    with Store.open(path) as store:
        assert len(store.schedules(sample.matmul.key, sample.context.key)) == 60
        for run in runs:
            texts = [event.text for event in store.events_of(run) if type(event).__name__ == "Logged"]
            assert texts == [str(trial) for trial in range(1, 61)]


def test_two_processes_may_create_the_same_file(path: Path) -> None:
    command = [sys.executable, "-c", "import sys; from engine.store import Store; Store.open(sys.argv[1])", str(path)]
    children = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [child.communicate()[1] for child in children] == [""] * 3
    Store.open(path, create=False).close()
