"""What the run comes to: the sum of the best times, the assembled program, counts, and where the time went.

A replay and a database hold several programs: sum and assembled time are those of the program at hand, which is then
named by its number, while counts and clock are over all of them. Kernels that were marked and are tuned again, each in
a run of its own, are no programs: their sum is over all of them.
"""

from __future__ import annotations

import re

from emmy_tui import format as fmt
from emmy_tui.source import Mode
from emmy_tui.text import Line, Tone, line_width
from emmy_tui.view import View
from engine.snapshot import Snapshot
from engine.vocabulary import Status

_OF_ONE_KERNEL = re.compile(r"kernel .+ [0-9a-f]{24}", re.DOTALL)
"""The target of a run of one kernel, as `engine.tune.retune.target_text` writes it."""


def kernels_alone(snapshot: Snapshot) -> bool:
    """Whether every run that is shown is of one kernel, and none of a program."""
    runs = snapshot.programs.values()
    return bool(runs) and all(_OF_ONE_KERNEL.fullmatch(run.target) for run in runs)


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
        times = [row.chosen_us for row in snapshot.kernels.values() if row.chosen_us is not None]
        return sum(times) if times else None
    chosen = snapshot.leading_grouping()
    return chosen.sum_us if chosen is not None and chosen.sum_us is not None else snapshot.counted_us()


def _sum_parts(view: View) -> list[Line]:
    snapshot, glyphs = view.snapshot, view.glyphs
    name = program_name(view)
    of = f" {name}" if name else ""
    parts: list[Line] = [[(f"{glyphs.total} best {fmt.us(program_sum_us(snapshot))} us{of}", Tone.PLAIN)]]
    return [*parts, *_assembled_parts(snapshot)]


def _assembled_parts(snapshot: Snapshot) -> list[Line]:
    assembled = snapshot.assembled_grouping()
    if assembled is not None:
        gap = fmt.change(assembled.sum_us, assembled.whole_us)
        return [[(f"assembled {fmt.us(assembled.whole_us)} us ({gap}%)", Tone.PLAIN)]]
    reasons = [row.assembled_reason for row in snapshot.own_groupings() if row.assembled_reason]
    if not reasons:
        return []
    if reasons[-1] == Status.NOT_RECORDED:
        return [[("assembled not recorded", Tone.DIM)]]
    return [[("assembled failed", Tone.BAD)]]


def _count_parts(view: View) -> list[Line]:
    snapshot = view.snapshot
    parts: list[Line] = [
        [(f"measured {fmt.count(snapshot.measured)}", Tone.PLAIN)],
        [(f"cached {fmt.count(snapshot.cached)}", Tone.PLAIN)],
        [(f"failed {fmt.count(snapshot.failed)}", Tone.BAD if snapshot.failed else Tone.PLAIN)],
    ]
    programs = 0 if kernels_alone(snapshot) else len(snapshot.programs)
    return [*parts, [(f"in {programs} programs", Tone.PLAIN)]] if programs > 1 else parts


def _share_parts(view: View) -> list[Line]:
    snapshot = view.snapshot
    shares = snapshot.finished or snapshot.health
    if shares is None:
        return []
    parts: list[Line] = [[(f"search {fmt.ratio(shares.search_share)}", Tone.PLAIN)]]
    if view.mode is not Mode.REPLAY:  # which neither uses a GPU nor compiles
        parts.insert(0, [(f"gpu idle {fmt.ratio(shares.gpu_idle_share)}", Tone.PLAIN)])
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
    groups = (_sum_parts(view), _count_parts(view), _share_parts(view))
    return [indent + _join(parts, width - 2) for parts in groups]


def total_line(view: View, width: int) -> Line:
    """The totals in one line beside a header that has the sum already."""
    return _join([*_sum_parts(view)[1:], *_count_parts(view), *_share_parts(view)], width)
