"""`emmy eval acf`: what ptxas controls came to, kernel by kernel: times beside registers, and whether any won."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from engine.cli.database import chosen_database, opened
from engine.cli.errors import refuse_unmatched
from engine.cli.eval_acf_rows import ControlsReport, ControlsRow, controls_reports
from engine.cli.eval_acf_searches import ControlsSearch, joint_against_after
from engine.cli.options import Database, Demo, Json, KernelText
from engine.cli.output import duration_text, json_text, table_lines, terminal_width, text_lines, us_text
from engine.cli.shared_controls import shared_controls, shared_sentence

COLUMNS = ("controls", "best us", "regime", "x", "registers", "spills", "tried", "failed", "front", "verdict")
SEARCHES = ("search", "took", "candidates", "cached", "tried", "failed", "set aside", "without us", "with us", "used")


def acf(kernel: KernelText = "", database: Database = None, demo: Demo = False, json: Json = False) -> None:
    """Show what ptxas controls (ACF files) came to for each kernel, and whether any of them won.

    A win needs a comparison in turns in two fresh processes, corrected for the number tried. Beside it stands how each
    run searched them, jointly or after the schedules, and which files it set aside, and why. Of a kernel that was tuned
    in several shapes it also names the one file that helps them most together.

    A --kernel that nothing matches is bad input: exit code 2, a sentence on stderr, and [] as JSON.
    """
    path = chosen_database(database, demo)
    with opened(path) as store:
        found = controls_reports(store, kernel)
        known = bool(store.kernel_keys(kernel))
    if json:
        objects = [_object(report) for report in found]
        typer.echo(json_text([*objects, *({"shared": asdict(one)} for one in shared_controls(found))]))
    elif known or not kernel:
        typer.echo(_text(found, path))
    if kernel and not known:
        raise refuse_unmatched("kernel", "--kernel", kernel, path)


def _text(found: Sequence[ControlsReport], path: Path) -> str:
    width = terminal_width(sys.stdout)
    texts = ["\n".join(_lines(report, width)) for report in found]
    texts += ["\n".join(text_lines(shared_sentence(one), width)) for one in shared_controls(found)]
    return "\n\n".join(texts) or f"{path} holds no candidate with ptxas controls; `emmy tune --acf` searches them"


def _lines(report: ControlsReport, width: int | None) -> list[str]:
    cells = [
        [
            *(row.name, us_text(row.best_us), row.regime, None if row.ratio is None else f"{row.ratio:.3f}"),
            *(row.registers, row.spills, row.tried, row.failed, "yes" if row.front else "", row.verdict),
        ]
        for row in report.rows
    ]
    title = f"{report.label} {report.shape} {report.kernel} on {report.gpu}, ptxas {report.ptxas}"
    lines = [*text_lines(title, width), *text_lines(report.sentence, width), *table_lines(COLUMNS, cells, width)]
    return [*lines, *_search_lines(report.searches, width)]


def _search_lines(searches: Sequence[ControlsSearch], width: int | None) -> list[str]:
    """How the runs searched, what they set aside, and joint against after, where there are both."""
    if not searches:
        return []
    cells = [
        [
            *(one.mode, "not ended" if one.seconds is None else duration_text(one.seconds), one.candidates),
            *(one.cached, one.tried, one.failed, len(one.set_aside)),
            *(us_text(one.best_without_us), us_text(one.best_with_us), one.used),
        ]
        for one in searches
    ]
    lines = ["", *table_lines(SEARCHES, cells, width)]
    for one in searches:
        lines += text_lines(f"{one.mode} ended: {one.ended}", width) if one.ended else []
        for name, cause in one.set_aside:
            lines += text_lines(f"{one.mode} set {name} aside: {cause}", width)
    compared = joint_against_after(searches)
    return [*lines, *(text_lines(compared, width) if compared else [])]


def _object(report: ControlsReport) -> dict[str, object]:
    rows = [{name: getattr(row, name) for name in ControlsRow.__dataclass_fields__} for row in report.rows]
    parts = ("rows", "searches")
    return {
        **{name: getattr(report, name) for name in ControlsReport.__dataclass_fields__ if name not in parts},
        "rows": rows,
        "searches": [asdict(one) for one in report.searches],
        "joint_against_after": joint_against_after(report.searches),
    }
