"""What leaving out groupings that can't win changes: each recorded program is searched again with it and without it.

    python -m tests.bench.bounding [DB or DB.gz ...]

The databases are those that ship and are tested with, unless others are named. A replay bounds by the recorded ceilings
of the GPU; a copy without them bounds nothing. A recording that has none takes those of a GPU of the same name. Ends
with 1 where a program's best sum differs between the two.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from engine.data import SHIPPED_DEMO
from engine.events import Event, GroupingEntered, GroupingScored, KernelFinished, Measured, RunStarted
from engine.session import TuningSession
from engine.store import upgrade_file
from engine.tune import Settings
from engine.vocabulary import Regime

TOLD = (RunStarted, GroupingEntered, KernelFinished, GroupingScored, Measured)
RECORDED = Path(__file__).parents[1] / "data"
DATABASES = (SHIPPED_DEMO, RECORDED / "layer_h200.db.gz", RECORDED / "landscapes_h200.db.gz")


@dataclass(slots=True)
class Searched:
    """One program's search. `trials` counts the candidates of its kernels; `best` is the smallest sum, in us, and the
    kernels of that grouping."""

    target: str
    entered: int = 0
    bounded: int = 0
    kernels: int = 0
    trials: int = 0
    best: tuple[float, tuple[str, ...]] | None = None


def searched(database: Path, target: str | None = None) -> list[Searched]:
    """Every recorded program whose text contains `target`, searched again."""
    session = TuningSession.replay(database, settings=Settings(surrogate=True), target=target)
    session.start()
    events: list[Event] = []
    over = False
    while not over:
        over = session.wait(0.05)  # a session keeps only so many events that nobody has taken
        while taken := session.drain():
            events += [event for event in taken if isinstance(event, TOLD)]
    session.close()
    if session.failure is not None:
        raise SystemExit(f"{database}: {session.failure}")
    return list(_programs(events))


def _programs(events: Sequence[Event]) -> Iterator[Searched]:
    """One program begins where the next one's start is told."""
    found = Searched("")
    kernels: dict[str, tuple[str, ...]] = {}
    for event in events:
        if isinstance(event, RunStarted):
            if found.entered:
                yield found
            found, kernels = Searched(event.target), {}
        elif isinstance(event, GroupingEntered):
            kernels[event.grouping] = event.kernels
        elif isinstance(event, KernelFinished):
            found.kernels += 1
        elif isinstance(event, Measured):
            found.trials += event.regime == Regime.RANKING
        elif isinstance(event, GroupingScored):
            found.entered += 1
            found.bounded += event.bounded
            if event.sum_us is not None and (found.best is None or event.sum_us < found.best[0]):
                found.best = event.sum_us, kernels[event.grouping]
    yield found


def unpacked(database: Path, folder: Path) -> Path:
    """A copy of the newest schema."""
    copy = folder / database.name.removesuffix(".gz")
    if database.suffix == ".gz":
        copy.write_bytes(gzip.decompress(database.read_bytes()))
    else:
        shutil.copyfile(database, copy)
    upgrade_file(copy)
    return copy


def set_ceilings(database: Path, ceilings: Mapping[str, str] | None) -> dict[str, str]:
    """The ceilings of the database by GPU, after those that are missing were filled in; with None all are taken out."""
    with closing(sqlite3.connect(database)) as connection:
        if ceilings is None:
            connection.execute("UPDATE context SET ceilings = NULL")
        for gpu, text in (ceilings or {}).items():
            missing = "coalesce(ceilings, '') = ''"
            connection.execute(f"UPDATE context SET ceilings = ? WHERE gpu = ? AND {missing}", (text, gpu))
        connection.commit()
        return dict(connection.execute("SELECT gpu, ceilings FROM context WHERE ceilings <> ''"))


def compared(bounded: Sequence[Searched], whole: Sequence[Searched]) -> bool:
    """Print a line a program; whether all come to the same."""
    for one, other in zip(bounded, whole, strict=True):
        sums = " ".join(f"{each.best[0]:10.2f}" if each.best else f"{'-':>10}" for each in (one, other))
        differs = "" if one.best == other.best else "DIFFERS "
        print(
            f"{one.entered:>6} /{other.entered:>6} {one.bounded:>8} {one.kernels:>5} /{other.kernels:>4} "
            f"{one.trials:>6} /{other.trials:>5} {sums}  {differs}{one.target[:80]}",
            flush=True,
        )
    return all(one.best == other.best for one, other in zip(bounded, whole, strict=True))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("databases", nargs="*", type=Path, default=DATABASES, metavar="DB")
    known: dict[str, str] = {}
    differ = False
    print(
        f"{'entered':>14} {'bounded':>8} {'kernels':>11} {'candidates':>13} {'best sum':>20}  program   (with/without)"
    )
    for database in parser.parse_args(arguments).databases:
        with tempfile.TemporaryDirectory() as folder:
            copy = unpacked(database, Path(folder))
            known |= set_ceilings(copy, known)
            bounded = searched(copy)
            set_ceilings(copy, None)
            differ |= not compared(bounded, searched(copy))
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
