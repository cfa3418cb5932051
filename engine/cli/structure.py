"""The structural half of a run's end: how many groupings were entered, what failed, what was put together, what won."""

from __future__ import annotations

from collections.abc import Sequence

from engine.cli.output import text_lines, us_text
from engine.cli.programs import ProgramKernels
from engine.cli.winner import PDL, Timed, what_decided
from engine.events import GroupingsExplored
from engine.snapshot import GroupingRow

NAME = 11
"""Columns of the name before each line, as in the lines of the totals."""
FAILURES_SHOWN = 3


def structure_lines(program: ProgramKernels, width: int | None, *, replayed: bool) -> list[str]:
    """Named lines on a program's groupings; none where there was nothing to choose, and all of it went well."""
    parts: list[tuple[str, str]] = []
    explored = program.explored
    if explored is not None and (len(program.groupings) > 1 or explored.untried or explored.failed):
        parts.append(("groupings", explored_text(explored, replayed=replayed)))
    parts += _failures(program.groupings)
    chosen = program.chosen
    if chosen is not None and sum(chosen.counts) > len(chosen.kernels):
        parts.append(("kernels", f"{sum(chosen.counts)}, {len(chosen.kernels)} of them distinct"))
    if chosen is not None and (chosen.pdl_us is not None or chosen.pdl_reason):
        parts.append(("launches", _launches_text(chosen)))
    if sum(row.whole_us is not None for row in program.groupings) > 1:
        parts.append(("winner", what_decided(program.groupings)))
    if called := [kernel for kernel in program.kernels if kernel.row.family == "extern" and kernel.chosen]:
        names = ", ".join(f"{kernel.row.label} {kernel.row.shape}" for kernel in called)
        parts.append(("library", f"not generated, run as the library call they are: {names}"))
    lines = [line for name, text in parts for line in text_lines(text, width, name.ljust(NAME), " " * NAME)]
    return ["", *lines] if lines else []


def explored_text(explored: GroupingsExplored, *, replayed: bool = False) -> str:
    """How far the outer search got."""
    least = "" if explored.exact else "at least "
    failed = f", {explored.failed} of them failed" if explored.failed else ""
    bounded = f", {explored.bounded} can't win" if explored.bounded else ""
    where = " of those recorded" if replayed else ""
    why = f" ({explored.reason})" if explored.reason else ""
    return f"{explored.entered} entered{failed}{bounded}, {least}{explored.untried}{where} left untried{why}"


def explored_object(explored: GroupingsExplored | None, groupings: Sequence[Timed]) -> dict[str, object]:
    """The same for `--json`, with what made the best grouping the best."""
    return {
        "entered": explored.entered if explored else len(groupings),
        "failed": explored.failed if explored else None,
        "bounded": explored.bounded if explored else None,
        "untried": explored.untried if explored else None,
        "untried_exact": explored.exact if explored else None,
        "stopped": explored.reason if explored else None,
        "decided": what_decided(groupings) or None,
    }


def _failures(groupings: Sequence[GroupingRow]) -> list[tuple[str, str]]:
    """Each failed grouping with its reason; equal reasons once."""
    numbers: dict[str, list[str]] = {}
    for number, row in enumerate(groupings, start=1):
        if row.sum_us is None and row.reason and not row.bounded:
            numbers.setdefault(row.reason, []).append(str(number))
    shown = list(numbers.items())[:FAILURES_SHOWN]
    lines = [("failed", f"grouping {', '.join(which)}: {reason}") for reason, which in shown]
    left = len(numbers) - len(shown)
    return [*lines, ("", f"and {left} more reasons: emmy eval groupings")] if left else lines


def _launches_text(row: GroupingRow) -> str:
    plain = f"{us_text(row.assembled_us)} us" if row.assembled_us is not None else f"failed: {row.assembled_reason}"
    dependent = f"{us_text(row.pdl_us)} us" if row.pdl_us is not None else row.pdl_reason
    return f"{plain} with plain launches, {dependent} with {PDL}"


def structure_object(program: ProgramKernels) -> dict[str, object]:
    """The same as an object for `--json`; times are in us, and groupings are numbered from 1."""
    rows = enumerate(program.groupings, start=1)
    return {
        "program": program.target,
        **explored_object(program.explored, program.groupings),
        "entries": [_entry(number, row, chosen=row is program.chosen) for number, row in rows],
    }


def _entry(number: int, row: GroupingRow, *, chosen: bool) -> dict[str, object]:
    return {
        "number": number,
        "grouping": row.grouping,
        "decisions": list(row.decisions),
        "kernels": dict(zip(row.kernels, row.counts, strict=True)),
        "sum_us": row.sum_us,
        "assembled_us": row.assembled_us,
        "pdl_us": row.pdl_us,
        "chosen": chosen,
        "reason": row.reason or row.assembled_reason or row.pdl_reason or None,
    }
