"""Tunes each program of a table from an empty database and prints its time as a ratio to its peer's.

    python -m tests.bench.table [--only NAME] [--patience N] [--prior NAME] [--seconds S] [--keep FOLDER] [--check]

Needs a GPU, except with --check, which captures, groups and renders every program on any machine. Each program is tuned
by `emmy tune` in a process of its own, which is told to stop after S seconds and keeps what it has; then the winner,
torch eager and torch.compile are timed in turns in this one, as CUDA graphs of many launches. One line a program: what
tuning took, how much of it the GPU idled, our time, the ratio to each peer with its 95 % interval, and when it had
first reached what another tuner's quick search ends with.
"""

from __future__ import annotations

import argparse
import json
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from engine.capture import capture
from engine.codegen import is_generated, offered_schedules, render
from engine.grouping import grouping_space
from engine.store import Store
from engine.vocabulary import Target
from tests.bench.peers import Bound, bound, interleaved, ratio_interval, tuned_launch, winner
from tests.bench.table_rows import COMPILED, EAGER, LIMIT, ROWS, Row

NOISE = 0.005
"""By so much do times of one kernel differ that two programs took one after the other."""
_STOP_S = 60.0
"""How long a run that was told to stop may take to confirm what it has."""
_EMMY = (sys.executable, "-c", "import sys; from engine.cli import main; sys.exit(main())")


@dataclass(frozen=True, slots=True)
class Tuned:
    """How a tuning process ended: seconds, the share of them that the GPU idled, and its last words if it failed."""

    seconds: float
    idle_share: float | None
    complaint: str
    began: float = 0.0
    """When its process was started, in seconds since 1970."""


def tuned(row: Row, database: Path, options: Sequence[str], seconds: float | None) -> Tuned:
    """Tune a program into a new database, through the command line."""
    words = ["tune", "--code", row.code, "--db", str(database), "--quiet", "--json", *options]
    start, began = time.perf_counter(), time.time()
    child = subprocess.Popen((*_EMMY, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        answer, complaint = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGINT)
        try:
            answer, complaint = child.communicate(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            answer, complaint = child.communicate()
    took = time.perf_counter() - start
    try:
        told = json.loads(answer.splitlines()[-1])
    except (IndexError, ValueError):
        return Tuned(
            took, None, complaint.strip().splitlines()[-1] if complaint.strip() else "it printed nothing", began
        )
    return Tuned(took, told.get("gpu_idle_share"), told.get("failure") or "", began)


def soon_reached(database: Path, kernel: str, us: float, began: float) -> tuple[float | None, float, float]:
    """Seconds from `began` until the kernel first took `us` or no noise more, to its first time, and to the run.

    For a program that one kernel is the whole of.
    """
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as found:
        times = "FROM measurement WHERE kernel_key = ? AND median_us IS NOT NULL"
        asked = (kernel, us * (1 + NOISE))
        (reached,) = found.execute(f"SELECT min(measured_at) {times} AND median_us <= ?", asked).fetchone()
        (first,) = found.execute(f"SELECT min(measured_at) {times}", (kernel,)).fetchone()
        (run,) = found.execute("SELECT min(started_at) FROM run").fetchone()
    return None if reached is None else reached - began, first - began, run - began


def compared(row: Row, database: Path, folder: Path, began: float) -> str:
    """Our time and its ratios to the peers, as one text."""
    with Store.open(database, read_only=True) as store:
        runs = list(store.runs())
        item = winner(store, runs[-1]) if runs else None
        if item is None:
            return "no assembled winner"
        call = bound(row.code)
        calls: dict[str, Callable[[], Any]] = {
            "emmy": tuned_launch(store, runs[-1], item, folder),
            EAGER: call,
            COMPILED: Bound(torch.compile(call.function, dynamic=False), call.args, call.kwargs),
        }
        times = interleaved(calls)
    ours = median(times["emmy"])
    ratios = {peer: ratio_interval(times["emmy"], times[peer]) for peer in (EAGER, COMPILED)}
    words = [
        f"{peer} {median(times[peer]):.2f} us {ratio:.3f} [{low:.3f}, {high:.3f}]"
        for peer, (ratio, low, high) in ratios.items()
    ]
    if row.peer == LIMIT:
        words.append(f"limit {row.limit_us:.2f} us {ours / row.limit_us:.3f}")
    reached = ours / row.limit_us if row.peer == LIMIT else ratios[row.peer][0]
    verdict = "holds" if reached <= row.reach else "missed"
    if row.soon is not None:
        asked_us = row.soon.us or row.soon.to_eager * median(times[EAGER])
        soon, first, run = soon_reached(database, item.grouping.calls[0].kernel.key, asked_us, began)
        took = "never" if soon is None else f"in {soon:.1f} s"
        words.append(f"run after {run:.1f} s, first answer in {first:.1f} s")
        words.append(f"{asked_us:.2f} us {took} (asked: {row.soon.seconds:.1f} s)")
    return f"emmy {ours:.2f} us in {len(item.grouping.calls)}, {', '.join(words)}: {row.peer} <= {row.reach} {verdict}"


def line_of(row: Row, options: Sequence[str], seconds: float | None, keep: Path | None) -> str:
    """Tune and compare one program."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = (keep or folder) / row.name / "table.db"  # a prior's checkpoint stands beside a database
        database.parent.mkdir()
        run = tuned(row, database, options, seconds)
        idle = "unknown" if run.idle_share is None else f"{100 * run.idle_share:.0f} %"
        head = f"{row.name:22} tuned {run.seconds:6.1f} s, GPU idle {idle}"
        if not database.is_file():
            return f"{head}: {run.complaint}"
        try:
            result = compared(row, database, folder, run.began)
        except Exception as error:
            result = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        torch.compiler.reset()
        return f"{head}, {result}{f' ({run.complaint})' if run.complaint else ''}"


def checked(row: Row) -> str:
    """Capture a program, and render a schedule of each kernel of its first grouping, and of what each fork offers."""
    space = grouping_space(capture(row.code).graph)
    target = Target()
    kernels: dict[str, tuple[str, int]] = {}
    stack: list[tuple[Any, ...]] = [()]
    groupings = 0
    while stack:
        path = stack.pop()
        fork = space.fork(path)
        if fork is not None:
            stack += [(*path, option) for option in fork.options]
            continue
        groupings += 1
        for key, (kernel, _) in space.grouping(path).kernel_counts().items():
            if key in kernels or not is_generated(kernel):
                continue
            offered = list(offered_schedules(kernel, target))
            for schedule in (offered[0], offered[len(offered) // 2], offered[-1]):
                compile(render(kernel, schedule, target).text, row.name, "exec")
            kernels[key] = (kernel.family, len(offered))
    shown = ", ".join(f"{family} {count}" for family, count in kernels.values())
    return f"{row.name:22} {groupings} groupings; schedules: {shown}"


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="a program's name or a part of it; may be repeated")
    parser.add_argument("--patience", type=int, help="of the search; the command line's own by default")
    parser.add_argument("--prior", help="what steers the search; the command line's own by default, `cold` for none")
    parser.add_argument("--seconds", type=float, help="end each tuning after so long")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the databases in this folder, which exists")
    parser.add_argument("--check", action="store_true", help="capture, group and render only; needs no GPU")
    arguments = parser.parse_args(words)
    chosen = [row for row in ROWS if not arguments.only or any(part in row.name for part in arguments.only)]
    if not chosen:
        parser.error(f"no program is called so; they are {', '.join(row.name for row in ROWS)}")
    options = [] if arguments.patience is None else ["--patience", str(arguments.patience)]
    options += [] if arguments.prior is None else ["--prior", arguments.prior]
    for row in chosen:
        line = checked(row) if arguments.check else line_of(row, options, arguments.seconds, arguments.keep)
        print(line, flush=True)


if __name__ == "__main__":
    main()
