"""What a run leaves on the screen when it has ended, and the object that `--json` prints of it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from engine.cli.output import duration_text, share_text, table_lines, us_text
from engine.cli.progress import kernel_name
from engine.events import RunFinished
from engine.snapshot import KernelRow, Snapshot


def summary_lines(snapshot: Snapshot, database: Path, width: int | None) -> list[str]:
    """The end block, ending with where the rows are and what to do next."""
    finished = snapshot.finished
    counts = f"measured {snapshot.measured}, cached {snapshot.cached}, failed {snapshot.failed}"
    lines = [counts if finished is None else f"{counts} in {duration_text(finished.wall_s)}"]
    if snapshot.kernels:
        rows = [
            (kernel_name(row, key), row.count, row.chosen_us, row.best_schedule or row.reason)
            for key, row in snapshot.kernels.items()
        ]
        lines += ["", *table_lines(("kernel", "count", "best us", "schedule"), rows, width)]
    if finished is not None:
        lines += ["", *_total_lines(finished)]
    path = shlex.quote(str(database))
    lines += ["", f"database   {path}", f"next       emmy-tui {path}", f"           emmy eval variants --db {path}"]
    return lines


def _total_lines(finished: RunFinished) -> list[str]:
    lines = []
    if finished.sum_us is not None:
        lines.append(f"sum        {us_text(finished.sum_us)} us")
    if finished.assembled_us is not None:
        gap = ""
        if finished.sum_us:
            gap = f" ({100 * (finished.assembled_us / finished.sum_us - 1):+.1f} % against the sum of its kernels)"
        lines.append(f"assembled  {us_text(finished.assembled_us)} us{gap}")
    shares = f"searching {share_text(finished.search_share)}, GPU idle {share_text(finished.gpu_idle_share)}"
    return [*lines, f"wall time  {shares}"]


def summary_object(snapshot: Snapshot, database: Path, failure: str | None) -> dict[str, object]:
    """The end block as one object; `failure` is the sentence of a failed run, else None. Times are in us."""
    finished = snapshot.finished
    return {
        "measured": snapshot.measured,
        "cached": snapshot.cached,
        "failed": snapshot.failed,
        "best_us": finished.best_us if finished else None,
        "sum_us": finished.sum_us if finished else None,
        "assembled_us": finished.assembled_us if finished else None,
        "search_share": finished.search_share if finished else None,
        "gpu_idle_share": finished.gpu_idle_share if finished else None,
        "wall_s": finished.wall_s if finished else None,
        "state": snapshot.state,
        "failure": failure,
        "database": str(database),
        "kernels": _kernel_objects(list(snapshot.kernels.values())),
    }


def _kernel_objects(rows: Sequence[KernelRow]) -> list[dict[str, object]]:
    return [
        {
            "key": row.kernel,
            "label": row.label,
            "family": row.family,
            "shape": row.shape,
            "count": row.count,
            "state": row.state,
            "reason": row.reason,
            "best_us": row.chosen_us,
            "ranking_us": row.best_us,
            "deploy_us": row.deploy_us,
            "schedule": row.best_schedule,
            "measured": row.measured,
            "cached": row.cached,
            "failed": row.failed,
        }
        for row in rows
    ]
