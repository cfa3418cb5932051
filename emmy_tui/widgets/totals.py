"""What the run comes to: the sum of the best times, the assembled program, counts, and where the time went.

A replay and a database hold several programs: sum and assembled time are those of the program at hand, which is then
named by its number; at a replay's end the sum over all of them stands beside it, as in the log. Counts and clock are
over all programs; timings are counted in both regimes and each time one was asked for, failures once each, as the
Failures tab lists them. What was stopped says that its sum is one so far. Kernels that were marked and are tuned
again, each in a run of its own, are no programs: their sum is over all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from emmy_tui import format as fmt
from emmy_tui.source import Mode
from emmy_tui.text import Line, Tone, line_width
from emmy_tui.view import View
from engine.events import RunState
from engine.snapshot import Snapshot
from engine.vocabulary import Status, is_kernel_target


def kernels_alone(snapshot: Snapshot) -> bool:
    """Whether every run that is shown is of one kernel, and none of a program."""
    runs = snapshot.programs.values()
    return bool(runs) and all(is_kernel_target(run.target) for run in runs)


def expected_kernels(view: View) -> int:
    """How many kernels the run has; of a run of marked kernels, those that it hasn't come to as well."""
    found = len(view.snapshot.kernels)
    awaited = view.mode is not Mode.BROWSE and kernels_alone(view.snapshot)
    return max(found, view.programs) if awaited else found


def program_name(view: View) -> str:
    """The present program by its number, where there are several; else ""."""
    number = 0 if kernels_alone(view.snapshot) else len(view.snapshot.programs)
    several = max(number, view.programs)
    return f"program {number} of {several}" if number and several > 1 else ""


def program_sum_us(snapshot: Snapshot) -> float | None:
    """What the present program comes to, in us. The end of a replay reports the sum over all programs beside it."""
    if len(snapshot.programs) < 2:
        return snapshot.sum_best_us()
    if kernels_alone(snapshot):
        times = [row.chosen_us for row in snapshot.kernels.values() if row.count and row.chosen_us is not None]
        return sum(times) if times else None
    chosen = snapshot.leading_grouping()
    return chosen.sum_us if chosen is not None and chosen.sum_us is not None else snapshot.counted_us()


def every_program_us(snapshot: Snapshot) -> float | None:
    """What all programs come to, in us, where the end of a replay said so; None for one program, and before the end."""
    ended, own = snapshot.finished.sum_us if snapshot.finished else None, program_sum_us(snapshot)
    if len(snapshot.programs) < 2 or ended is None or own is None or kernels_alone(snapshot):
        return None
    return None if math.isclose(ended, own, rel_tol=1e-6) else ended


def sum_text(view: View) -> str:
    """The sum with whose it is: of all programs once they are through, else of the one at hand."""
    snapshot, total = view.snapshot, view.glyphs.total
    every = every_program_us(snapshot)
    if every is not None:
        return f"{total} {fmt.us(every)} us {len(snapshot.programs)} programs"
    name = program_name(view)
    return f"{total} {fmt.us(program_sum_us(snapshot))} us{f' {name}' if name else ''}"


def ended_early(view: View) -> bool:
    """Whether what is shown is a part, as the run was stopped or failed before its end."""
    return view.state in (RunState.STOPPED, RunState.FAILED)


def _sum_parts(view: View) -> list[Line]:
    snapshot, glyphs = view.snapshot, view.glyphs
    name = program_name(view)
    of = f" {name}" if name else ""
    so_far = " so far" if ended_early(view) else ""
    parts: list[Line] = [[(f"{glyphs.total} best {fmt.us(program_sum_us(snapshot))} us{of}{so_far}", Tone.PLAIN)]]
    if every_program_us(snapshot) is not None:
        parts.append([(sum_text(view), Tone.PLAIN)])
    return [*parts, *_assembled_parts(snapshot)]


def _assembled_parts(snapshot: Snapshot) -> list[Line]:
    assembled = snapshot.assembled_grouping()
    if assembled is not None:
        gap = fmt.change(assembled.sum_us, assembled.whole_us)
        return [[(f"assembled {fmt.us(assembled.whole_us)} us ({gap}%)", Tone.PLAIN)], *_in_place_parts(snapshot)]
    reasons = [row.assembled_reason for row in snapshot.own_groupings() if row.assembled_reason]
    if not reasons:
        return []
    if reasons[-1] == Status.NOT_RECORDED:
        return []  # a replay times no program: that it doesn't is no result
    return [[("assembled failed", Tone.BAD)]]


def _in_place_parts(snapshot: Snapshot) -> list[Line]:
    """How many kernels have another schedule in the graph than alone, and what it takes without; of one program."""
    finished = snapshot.finished
    if finished is None or not finished.in_place or len(snapshot.programs) > 1:
        return []
    return [[(f"{finished.in_place} in place (alone {fmt.us(finished.alone_us)} us)", Tone.PLAIN)]]


def _floor_parts(view: View) -> list[Line]:
    """How many times the floors of its kernels the present program takes, and what binds most of that time; nothing
    until all of its kernels have a floor, and a time each or one as a whole."""
    snapshot = view.snapshot
    counted = snapshot.counted_kernels()
    floors = [(row.bound, count * row.floor_us) for row, count in counted if row.floor_us]
    assembled = snapshot.assembled_grouping()
    timed = assembled is not None or all(row.chosen_us is not None for row, _ in counted)
    us = assembled.whole_us if assembled is not None else snapshot.counted_us()
    if not floors or len(floors) < len(counted) or us is None or not timed or kernels_alone(snapshot):
        return []
    total = sum(floor for _, floor in floors)
    by = {bound: sum(floor for other, floor in floors if other == bound) for bound, _ in floors}
    most = max(by, key=by.__getitem__)
    times = f"{view.glyphs.times}floor {us / total:.2f}"
    return [[(f"{times} ({fmt.us(total)} us, {fmt.ratio(by[most] / total)} by {most})", Tone.PLAIN)]]


def _count_parts(view: View) -> list[Line]:
    snapshot = view.snapshot
    failures = snapshot.failures
    parts: list[Line] = [
        [(f"measured {fmt.count(snapshot.measured)}", Tone.PLAIN)],
        [(f"cached {fmt.count(snapshot.cached)}", Tone.PLAIN)],
        [(f"failed {fmt.plural(failures, 'row')}", Tone.BAD if failures else Tone.PLAIN)],
    ]
    programs = 0 if kernels_alone(snapshot) else len(snapshot.programs)
    return [*parts, [(f"in {programs} programs", Tone.PLAIN)]] if programs > 1 else parts


@dataclass(frozen=True, slots=True)
class _Shares:
    """Parts of a time, and whose time it is: "" where that is of all that is shown."""

    search: float
    idle: float
    of: str


def _shares(view: View) -> _Shares | None:
    """Of the clock of everything that is shown, as far as that is told: each program's share weighs as long as it ran.

    What a session of several programs says at its end is over all of them; a database has it of each run alone.
    """
    snapshot = view.snapshot
    if snapshot.finished is None:
        health = snapshot.health
        return None if health is None else _Shares(health.search_share, health.gpu_idle_share, program_name(view))
    ended = list(snapshot.ended.values()) if view.mode is Mode.BROWSE else [snapshot.finished]
    wall = sum(one.wall_s for one in ended)
    if wall <= 0.0:
        return _Shares(snapshot.finished.search_share, snapshot.finished.gpu_idle_share, "")
    search = sum(one.search_share * one.wall_s for one in ended) / wall
    idle = sum(one.gpu_idle_share * one.wall_s for one in ended) / wall
    every = len(snapshot.programs)
    of = f"{len(ended)} of {every} runs" if view.mode is Mode.BROWSE and len(ended) < every else ""
    return _Shares(search, idle, of)


def _share_parts(view: View) -> list[Line]:
    snapshot = view.snapshot
    shares = _shares(view)
    if shares is None:
        return []
    parts: list[Line] = [[(f"search {fmt.ratio(shares.search)}{f' {shares.of}' if shares.of else ''}", Tone.PLAIN)]]
    if view.mode is not Mode.REPLAY:  # which neither uses a GPU nor compiles
        parts.insert(0, [(f"gpu idle {fmt.ratio(shares.idle)}", Tone.PLAIN)])
    health = snapshot.health
    if health is not None and snapshot.finished is None:
        if view.mode is not Mode.REPLAY:
            parts.append([(f"compiling {health.compiling}", Tone.PLAIN)])
        if health.respawns:
            parts.append([(f"respawns {health.respawns}", Tone.BAD)])
    return parts


def _join(parts: list[Line], width: int) -> Line:
    """As many parts as fit whole, with two blanks between them."""
    joined: Line = []
    for part in parts:
        gap: Line = [("  ", Tone.PLAIN)] if joined else []
        if line_width(joined) + line_width(gap) + line_width(part) > width:
            break
        joined += gap + part
    return joined


def total_lines(view: View, width: int) -> list[Line]:
    """The totals in three lines."""
    indent: Line = [("  ", Tone.PLAIN)]
    counts = _count_parts(view)
    sums = [*_sum_parts(view), *_floor_parts(view)]
    groups = (sums, [[("timings: ", Tone.PLAIN), *counts[0]], *counts[1:]], _share_parts(view))
    return [indent + _join(parts, width - 2) for parts in groups]


def total_line(view: View, width: int) -> Line:
    """The totals in one line beside a header that has the sum already."""
    named = 1 if every_program_us(view.snapshot) is None else 2
    parts = [*_sum_parts(view)[named:], *_count_parts(view), *_share_parts(view), *_floor_parts(view)]
    return _join(parts, width)
