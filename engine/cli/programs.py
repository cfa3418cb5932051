"""Which kernels each program of a run has, and which of them its chosen grouping consists of.

The search tunes the kernels of every grouping it enters; only those of the chosen one add up to the program's sum. It
is the grouping whose assembled graph was fastest, or the one with the smallest sum where none was timed as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.cli.winner import chosen_grouping
from engine.events import GroupingsExplored
from engine.snapshot import GroupingRow, KernelRow, Snapshot


@dataclass(frozen=True, slots=True)
class ProgramKernel:
    """A kernel in one program: `count` calls of it there, and whether the chosen grouping has it."""

    row: KernelRow
    count: int
    chosen: bool


@dataclass(frozen=True, slots=True)
class ProgramKernels:
    """One program with its kernels, the chosen ones first. `sum_us` is None until a grouping was tuned.

    `assembled_us` is the faster of the chosen grouping's two times as one graph. `groupings` are all that were entered,
    in that order, and `explored` says how many were not.
    """

    target: str
    sum_us: float | None
    assembled_us: float | None
    kernels: tuple[ProgramKernel, ...]
    groupings: tuple[GroupingRow, ...] = ()
    chosen: GroupingRow | None = None
    explored: GroupingsExplored | None = None


def programs_of(snapshot: Snapshot) -> list[ProgramKernels]:
    """The programs in which a kernel was found, in the order in which they were tuned."""
    found = []
    for run, start in snapshot.programs.items():
        groupings = [row for row in snapshot.groupings.values() if row.run == run]
        if groupings:
            found.append(_program(run, start.target, groupings, snapshot))
    if not found and snapshot.kernels:  # kernels without a grouping: a run that ended before it had entered one
        rows = tuple(ProgramKernel(row, row.count, snapshot.finished is not None) for row in snapshot.kernels.values())
        found.append(ProgramKernels(snapshot.run.target if snapshot.run else "", None, None, rows))
    return found


def _program(run: str, target: str, groupings: Sequence[GroupingRow], snapshot: Snapshot) -> ProgramKernels:
    chosen = chosen_grouping(groupings)
    counts = dict(zip(chosen.kernels, chosen.counts, strict=True)) if chosen else {}
    chosen_keys = set(counts)
    for grouping in groupings:
        for key, count in zip(grouping.kernels, grouping.counts, strict=True):
            counts.setdefault(key, count)
    kernels = [
        ProgramKernel(snapshot.kernels[key], count, key in chosen_keys)
        for key, count in counts.items()
        if key in snapshot.kernels
    ]
    explored = snapshot.explored.get(run)
    times = (chosen.sum_us, chosen.whole_us) if chosen is not None else (None, None)
    return ProgramKernels(target, *times, tuple(kernels), tuple(groupings), chosen, explored)
