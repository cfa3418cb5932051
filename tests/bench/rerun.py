"""Where the time of a run goes whose every answer is known: `emmy tune` over a finished database, by phase.

    python -m tests.bench.rerun [--db FINISHED.db] [--repeats 3] [--limit 10] [-- MODEL OPTIONS...]

Runs the real command line in a process of its own on a GPU: once to tune, into a folder of its own, and then again over
what that left. With `--db` the first run is left out, and a copy of that database (and of the prior beside it) is run
over. After `--` stands what is tuned; the default is one layer of Qwen3-Embedding-0.6B at 512 tokens.

The phases are wall seconds between moments that the process itself notes, from the start of the interpreter to its end.
Beside them stand the CPU seconds of its threads and of its children, and how long this machine takes for a fixed piece
of Python, so that two machines can be compared. Ends with 1 where a run over the finished database measured something
or took longer than `--limit` seconds, with 2 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from engine.cli.entry import leave_blas_alone
from engine.deploy.place import has_driver
from engine.prior import models_path, rows_path

WHAT = ("Qwen/Qwen3-Embedding-0.6B", "--layer", "0", "--seq-len", "512")
NOTES = "EMMY_BENCH_NOTES"
BEGAN = "EMMY_BENCH_BEGAN"
LOOK_S = 0.05
PHASES = (
    ("interpreter and imports", "start", "loaded"),
    ("session and request", "loaded", "open"),
    ("opening the device", "open", "opened"),
    ("what was begun meanwhile ends", "opened", "prepared"),
    ("database, program, prior", "prepared", "tuning"),
    ("first grouping", "tuning", "GroupingEntered"),
    ("search", "GroupingEntered", "GroupingsExplored"),
    ("assembling, learning, records", "GroupingsExplored", "tuned"),
    ("end of the run", "tuned", "closing"),
    ("closing the device", "closing", "closed"),
    ("summary and exit", "closed", "end"),
)
"""A name, and the moments between which it lies."""


class Notes:
    """Moments of one process, each the first of its name, and the CPU seconds of its threads."""

    def __init__(self) -> None:
        self.moments: dict[str, float] = {"start": float(os.environ[BEGAN])}
        self.threads: dict[str, tuple[str, float]] = {}
        threading.Thread(target=self._watch, name="notes", daemon=True).start()

    def note(self, moment: str) -> None:
        self.moments.setdefault(moment, time.time())

    def around(self, owner: object, name: str, before: str, after: str) -> None:
        """Note the moments before and after each call of a function or method."""
        inner: Callable[..., Any] = getattr(owner, name)

        @wraps(inner)
        def noted(*args: Any, **kwargs: Any) -> Any:
            self.note(before)
            try:
                return inner(*args, **kwargs)
            finally:
                self.note(after)

        setattr(owner, name, noted)

    def look(self) -> None:
        """Read what each thread has used so far."""
        names = {str(thread.native_id): thread.name for thread in threading.enumerate()}
        for task in Path("/proc/self/task").iterdir():
            try:
                used_s = int((task / "schedstat").read_text().split()[0]) / 1e9
            except (OSError, ValueError, IndexError):
                continue
            name = names.get(task.name) or self.threads.get(task.name, ("other", 0.0))[0]
            self.threads[task.name] = (name, used_s)

    def write(self, path: Path) -> None:
        self.note("end")
        self.look()
        own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        path.write_text(
            json.dumps(
                {
                    "moments": self.moments,
                    "threads": sorted(self.threads.values(), key=lambda one: -one[1]),
                    "own": (own.ru_utime, own.ru_stime),
                    "children": (children.ru_utime, children.ru_stime),
                }
            )
        )

    def _watch(self) -> None:
        while True:
            self.look()
            time.sleep(LOOK_S)


def child(arguments: Sequence[str]) -> int:
    """The command line, with notes of when it does what."""
    notes = Notes()
    from engine.cli import main
    from engine.cli import tuning as loaded  # noqa: F401
    from engine.measure import CudaDevice
    from engine.tune import live
    from engine.tune.ahead import Ahead
    from engine.tune.workbench import Workbench

    notes.note("loaded")
    notes.around(live, "opened", "open", "opened")
    notes.around(Ahead, "__exit__", "leaving", "prepared")
    notes.around(live, "tune", "tuning", "tuned")
    notes.around(CudaDevice, "close", "closing", "closed")
    tell = Workbench.tell

    def told(bench: Workbench, kind: type, **values: Any) -> None:
        tell(bench, kind, **values)
        if kind.__name__ in ("GroupingEntered", "GroupingsExplored"):
            notes.note(kind.__name__)

    Workbench.tell = told  # type: ignore[assignment, method-assign]
    try:
        main(list(arguments))
    except SystemExit as left:
        return int(left.code or 0)
    finally:
        notes.write(Path(os.environ[NOTES]))
    return 0


def run(what: Sequence[str], database: Path) -> tuple[float, dict[str, Any], dict[str, Any]]:
    """Wall seconds of one `emmy tune`, its notes and what it printed as JSON. Raises CalledProcessError."""
    path = database.with_name("notes.json")
    began = time.time()
    environment = os.environ | {NOTES: str(path), BEGAN: repr(began)}
    command = [sys.executable, "-m", "tests.bench.rerun", "--child", "tune", *what, "--db", str(database)]
    done = subprocess.run([*command, "-q", "--json"], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return time.time() - began, json.loads(path.read_text()), json.loads(done.stdout)


def copied(database: Path, folder: Path) -> Path:
    """The database and what the prior keeps beside it, in `folder`."""
    target = folder / database.name
    for place in (lambda path: path, models_path, rows_path):
        if place(database).exists():
            shutil.copy(place(database), place(target))
    return target


def python_s() -> float:
    """Seconds for a fixed piece of Python: arithmetic, dictionaries and sorting; the best of three."""

    def once() -> float:
        began = time.perf_counter()
        table = {number: number * number % 1009 for number in range(400_000)}
        sorted(table, key=table.__getitem__)
        sum(len(str(value)) for value in table.values())
        return time.perf_counter() - began

    return min(once() for _ in range(3))


def lines(wall_s: float, notes: dict[str, Any]) -> list[str]:
    """Where one run's time went, for people."""
    at = notes["moments"] | {"end": notes["moments"]["start"] + wall_s}
    told = [f"{at[last] - at[first]:7.2f}  {name}" for name, first, last in PHASES if first in at and last in at]
    rest_s = wall_s - sum(at[last] - at[first] for _, first, last in PHASES if first in at and last in at)
    threads: dict[str, float] = {}
    for name, used_s in notes["threads"]:
        threads[name] = threads.get(name, 0.0) + used_s
    used = ", ".join(f"{name} {s:.2f}" for name, s in sorted(threads.items(), key=lambda one: -one[1]) if s >= 0.05)
    own, children = sum(notes["own"]), sum(notes["children"])
    return [*told, f"{rest_s:7.2f}  between them", f"         CPU: own {own:.2f} ({used}), children {children:.2f}"]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.rerun", description=str(__doc__).splitlines()[0])
    parser.add_argument("--db", type=Path, help="a finished database, which is copied; none: tune first")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds that a repeated run may take")
    parser.add_argument("what", nargs="*", default=WHAT, help="what is tuned, and its options")
    asked = parser.parse_args(arguments)
    if not has_driver():
        print("there is no GPU here")
        return 2
    leave_blas_alone()  # as the command does before it loads anything
    print(f"{python_s():.3f} s for a fixed piece of Python, {os.cpu_count()} CPUs")
    good = True
    with tempfile.TemporaryDirectory() as name:
        database = copied(asked.db, Path(name)) if asked.db else Path(name) / "rerun.db"
        for turn in range(0 if asked.db is None else 1, asked.repeats + 1):
            wall_s, notes, summary = run(asked.what, database)
            measured, cached = summary["measured"], summary["cached"]
            print(f"\n{'tuned' if turn == 0 else 'again'}: {wall_s:.2f} s, {measured} measured, {cached} cached")
            print("\n".join(lines(wall_s, notes)), flush=True)
            good &= turn == 0 or (measured == 0 and wall_s <= asked.limit)
    print(f"\n{'as it should be' if good else 'NOT as it should be'}: nothing measured, within {asked.limit:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(child(given[1:]) if given[:1] == ["--child"] else main(given))
