"""Thousands of candidates with random faults through real processes without a GPU: does anything leak or get lost?

    python -m tests.bench.soak [--candidates 10000] [--faults 0.05] [--seed 0] [--no-stem]

Benchmark processes are forked from a stem, as on a GPU, or with --no-stem started one by one.

Prints how each candidate ended beside how it should have, the growth of this process's memory, and what is left of
processes and files. Exit code 1 if a candidate ended otherwise than its fault says, or if anything is left.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

from engine.vocabulary import Measurement, Regime
from tests.measure.rig import a_kernel, do, open_fake, script, settled

EXPECTED = {
    "fine": "ok",
    "run-abort": "crash",
    "run-exit": "crash",
    "run-hang": "hang",
    "run-illegal": "illegal access",
    "run-oom": "out of memory",
    "run-wrong": "wrong result",
    "compile-abort": "crash",
    "compile-hang": "compile timeout",
    "compile-error": "compile error",
    "render-error": "compile error",
    "illegal": "illegal schedule",
}
WINDOW = 32


def ended(measurement: Measurement) -> str:
    return measurement.failure.kind.value if measurement.failure else measurement.status.value


def resident_kib() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--faults", type=float, default=0.05, help="share of candidates with a fault")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-stem", action="store_true")
    options = parser.parse_args()
    dice = random.Random(options.seed)
    faults = [name for name in EXPECTED if name != "fine"]
    kernel = a_kernel()
    counts: Counter[tuple[str, str]] = Counter()
    started, memory = time.monotonic(), 0
    with open_fake(stem_command=() if options.no_stem else script("fake_stem")) as device:
        folder = device._nursery.folder
        waiting: list[tuple[str, Future[Measurement]]] = []
        for number in range(options.candidates):
            what = dice.choice(faults) if dice.random() < options.faults else "fine"
            waiting.append((what, device.submit(kernel, do(what, number), Regime.RANKING)))
            if len(waiting) == WINDOW:
                done, future = waiting.pop(0)
                counts[done, ended(future.result(timeout=60))] += 1
            if number == options.candidates // 10:
                memory = resident_kib()
        for done, future in waiting:
            counts[done, ended(future.result(timeout=60))] += 1
        growth = resident_kib() - memory
        respawns = device.health().respawns
    clean = settled(folder) and not folder.exists()
    wrong = sum(count for (what, how), count in counts.items() if EXPECTED[what] != how)
    for (what, how), count in sorted(counts.items()):
        print(f"{count:6} {what:14} ended as {how}{'' if EXPECTED[what] == how else '  <-- unexpected'}")
    print(f"{sum(counts.values())} of {options.candidates} ended, {wrong} not as their fault says")
    print(
        f"{respawns} workers replaced, {time.monotonic() - started:.0f} s, memory since the first tenth {growth:+} KiB"
    )
    print("no process and no file left" if clean else f"something is left of {folder}")
    return int(bool(wrong) or not clean or sum(counts.values()) != options.candidates)


if __name__ == "__main__":
    sys.exit(main())
