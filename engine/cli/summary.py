"""What a run leaves on the screen when it has ended, and the object that `--json` prints of it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from engine.cli.knob_text import schedule_line
from engine.cli.options import REPLAY
from engine.cli.output import duration_text, share_text, table_lines, text_lines, us_text
from engine.cli.programs import ProgramKernel, ProgramKernels, programs_of
from engine.cli.progress import kernel_name
from engine.cli.structure import structure_lines, structure_object
from engine.codegen import acf_of
from engine.events import Assembled, ControlsChecked, RunFinished, RunState
from engine.snapshot import Snapshot
from engine.vocabulary import Schedule

NOT_RECORDED = "not recorded"


def summary_lines(snapshot: Snapshot, database: Path, width: int | None) -> list[str]:
    """The end block, ending with where the rows are and what to do next."""
    finished = snapshot.finished
    counts = f"measured {snapshot.measured}, cached {snapshot.cached}, failed {snapshot.failed}"
    lines = [counts if finished is None else f"{counts} in {duration_text(finished.wall_s)}"]
    programs = programs_of(snapshot)
    for number, program in enumerate(programs, start=1):
        lines.append("")
        if len(programs) > 1:
            title = f"program {number} of {len(programs)}, {us_text(program.sum_us)} us: {program.target}"
            lines += text_lines(title, width)
        lines += _kernel_table(program, width)
        lines += structure_lines(program, width, replayed=_replayed(snapshot))
    if finished is not None:
        lines += ["", *_total_lines(snapshot, finished, programs)]
    path = shlex.quote(str(database))
    stored = ": a replay stores nothing there, so what is recorded shows" if _replayed(snapshot) else ""
    lines += [
        "",
        f"database   {path}{stored}",
        f"next       emmy-tui {path}",
        f"           emmy eval variants --db {path}",
    ]
    return lines


def _kernel_table(program: ProgramKernels, width: int | None) -> list[str]:
    """Its kernels; a column marks those of the chosen grouping where there are others too."""
    rows = []
    marked = not all(kernel.chosen for kernel in program.kernels) and any(kernel.chosen for kernel in program.kernels)
    for kernel in program.kernels:
        row = kernel.row
        mark = [("yes" if kernel.chosen else None)] if marked else []
        schedule = schedule_line(row.best_schedule) if row.best_schedule else row.reason
        rows.append([kernel_name(row, row.kernel), kernel.count, row.chosen_us, *mark, schedule])
    return table_lines(("kernel", "count", "best us", *(["chosen"] if marked else []), "schedule"), rows, width)


def _total_lines(snapshot: Snapshot, finished: RunFinished, programs: Sequence[ProgramKernels]) -> list[str]:
    lines = []
    if finished.sum_us is not None:
        lines.append(f"sum        {us_text(finished.sum_us)} us")
    if finished.assembled_us is not None:
        gap = ""
        if finished.sum_us:
            gap = f" ({100 * (finished.assembled_us / finished.sum_us - 1):+.1f} % against the sum of its kernels)"
        lines.append(f"assembled  {us_text(finished.assembled_us)} us{gap}")
        if finished.in_place and finished.alone_us is not None:
            changed = f"{finished.in_place} kernel{'s' if finished.in_place > 1 else ''}"
            whole = f"with each one's own best it takes {us_text(finished.alone_us)} us"
            lines.append(f"in place   {changed} with another schedule than alone; {whole}")
    elif finished.sum_us is not None and snapshot.state == RunState.FINISHED:
        lines.append(f"assembled  {_missing_assembled(snapshot, programs)}")
    lines += _noise_lines(snapshot)
    lines += _controls_lines(snapshot)
    shares = f"searching {share_text(finished.search_share)}"
    if not _replayed(snapshot):
        shares += f", GPU idle {share_text(finished.gpu_idle_share)}"
    return [*lines, f"wall time  {shares}"]


def _noise_lines(snapshot: Snapshot) -> list[str]:
    """The noise floor and how many kernels' winners stand out of it; nothing where neither was measured."""
    parts = []
    health = snapshot.health
    if health is not None and health.noise_us is not None and health.noise_share is not None:
        parts.append(f"{us_text(health.noise_us)} us ({100 * health.noise_share:.2f} %) between a kernel and itself")
    if compared := len(snapshot.comparisons):
        tied = sum(comparison.tied > 0 for comparison in snapshot.comparisons.values())
        parts.append(f"the winners of {compared - tied} of {compared} kernels stand out of it")
    return [f"noise      {'; '.join(parts)}"] if parts else []


def _controls_lines(snapshot: Snapshot) -> list[str]:
    """Whether ptxas controls were searched, and how many kernels' winners have some; nothing where nobody asked."""
    controls = snapshot.controls
    if controls is None:
        return []
    if not controls.on:
        return [f"controls   off: {controls.reason}"]
    searched = [comparison for comparison in snapshot.comparisons.values() if comparison.tried]
    won = sum(bool(acf_of(Schedule.from_key(comparison.chosen))) for comparison in searched)
    fit = f"{controls.offered} of {controls.given} files fit ptxas {controls.ptxas}"
    aside = f"; {len(controls.set_aside)} times one was set aside, as it only failed" if controls.set_aside else ""
    won_in = f"they won in {won} of {len(searched)} kernels that tried some{aside}"
    return [f"controls   {fit}; {won_in} (`emmy eval acf`)"]


def _missing_assembled(snapshot: Snapshot, programs: Sequence[ProgramKernels]) -> str:
    """Why there is no assembled time: a recording lacks it, or the assembled graph failed; for how many programs."""
    reasons = [event.reason for event in snapshot.log if isinstance(event, Assembled) and event.assembled_us is None]
    cause = next((reason for reason in reasons if reason and reason != NOT_RECORDED), "")
    text = f"not timed: {cause}" if cause else NOT_RECORDED
    missing = sum(program.assembled_us is None for program in programs)
    return text if missing in (0, len(programs)) else f"{text} ({missing} of {len(programs)} programs)"


def _replayed(snapshot: Snapshot) -> bool:
    return snapshot.run is not None and snapshot.run.device == REPLAY


def summary_object(snapshot: Snapshot, database: Path, failure: str | None) -> dict[str, object]:
    """The end block as one object; `failure` is the sentence of a failed run, else None. Times are in us.

    `best_us` is the best time of the costliest kernel of the chosen grouping. A replay uses no GPU, so its
    `gpu_idle_share` is None.
    """
    finished = snapshot.finished
    return {
        "measured": snapshot.measured,
        "cached": snapshot.cached,
        "failed": snapshot.failed,
        "best_us": finished.best_us if finished else None,
        "sum_us": finished.sum_us if finished else None,
        "assembled_us": finished.assembled_us if finished else None,
        "in_place": finished.in_place if finished else None,
        "alone_us": finished.alone_us if finished else None,
        "search_share": finished.search_share if finished else None,
        "gpu_idle_share": finished.gpu_idle_share if finished and not _replayed(snapshot) else None,
        "wall_s": finished.wall_s if finished else None,
        "noise_us": snapshot.health.noise_us if snapshot.health else None,
        "noise_share": snapshot.health.noise_share if snapshot.health else None,
        "controls": _controls_object(snapshot),
        "state": snapshot.state,
        "failure": failure,
        "database": str(database),
        "groupings": [structure_object(program) for program in programs_of(snapshot)],
        "kernels": [
            _kernel_object(snapshot, program, kernel) for program in programs_of(snapshot) for kernel in program.kernels
        ],
    }


def _kernel_object(snapshot: Snapshot, program: ProgramKernels, kernel: ProgramKernel) -> dict[str, object]:
    row = kernel.row
    comparison = snapshot.comparisons.get(row.kernel)
    return {
        "key": row.kernel,
        "label": row.label,
        "family": row.family,
        "shape": row.shape,
        "program": program.target,
        "chosen": kernel.chosen,
        "count": kernel.count,
        "state": row.state,
        "reason": row.reason,
        "best_us": row.chosen_us,
        "ranking_us": row.best_us,
        "deploy_us": row.deploy_us,
        "tied_finalists": comparison.tied if comparison else None,
        "schedule": schedule_line(row.best_schedule),
        "measured": row.measured,
        "cached": row.cached,
        "failed": row.failed,
    }


def _controls_object(snapshot: Snapshot) -> dict[str, object] | None:
    """What proved ptxas controls in this run; None where nobody asked for them."""
    controls = snapshot.controls
    if controls is None:
        return None
    return {name: getattr(controls, name) for name in ControlsChecked.__dataclass_fields__ if name != "at"}
