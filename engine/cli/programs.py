"""Which kernels each program of a run has, and which of them its chosen grouping consists of.

The search tunes the kernels of every grouping it enters; only those of the chosen one add up to the program's sum. It
is the grouping whose assembled graph was fastest, or the one with the smallest sum where none was timed as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.snapshot import GroupingRow, KernelRow, Snapshot


@dataclass(frozen=True, slots=True)
class ProgramKernel:
    """A kernel in one program: `count` calls of it there, and whether the chosen grouping has it."""

    row: KernelRow
    count: int
    chosen: bool


@dataclass(frozen=True, slots=True)
class ProgramKernels:
    """One program with its kernels, the chosen ones first. `sum_us` is None until a grouping was tuned."""

    target: str
    sum_us: float | None
    assembled_us: float | None
    kernels: tuple[ProgramKernel, ...]


def programs_of(snapshot: Snapshot) -> list[ProgramKernels]:
    """The programs in which a kernel was found, in the order in which they were tuned."""
    found = []
    for run, start in snapshot.programs.items():
        groupings = [row for row in snapshot.groupings.values() if row.run == run]
        if groupings:
            found.append(_program(start.target, groupings, snapshot))
    if not found and snapshot.kernels:  # kernels without a grouping: a run that ended before it had entered one
        rows = tuple(ProgramKernel(row, row.count, snapshot.finished is not None) for row in snapshot.kernels.values())
        found.append(ProgramKernels(snapshot.run.target if snapshot.run else "", None, None, rows))
    return found


def _program(target: str, groupings: Sequence[GroupingRow], snapshot: Snapshot) -> ProgramKernels:
    chosen = _chosen(groupings)
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
    if chosen is None:
        return ProgramKernels(target, None, None, tuple(kernels))
    return ProgramKernels(target, chosen.sum_us, chosen.assembled_us, tuple(kernels))


def _chosen(groupings: Sequence[GroupingRow]) -> GroupingRow | None:
    assembled = [row for row in groupings if row.assembled_us is not None]
    if assembled:
        return min(assembled, key=lambda row: row.assembled_us or 0.0)
    return min((row for row in groupings if row.sum_us is not None), key=lambda row: row.sum_us or 0.0, default=None)
