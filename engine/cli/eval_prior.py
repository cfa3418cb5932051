"""`emmy eval prior`: how far the prior that steers the next run can be trusted."""

from __future__ import annotations

import sys
from dataclasses import asdict

import typer

from engine.cli.database import chosen_database, opened
from engine.cli.options import Database, Demo, Json
from engine.cli.output import json_text, share_text, table_lines, terminal_width, text_lines
from engine.deploy import PriorReport, prior_report

COLUMNS_SHOWN = 12


def prior(database: Database = None, demo: Demo = False, json: Json = False) -> None:
    """Show how well the prior ranks what it has not seen: rank of winners, regret, calibration, what it looks at.

    A learned prior is judged on kernels that were held out when it was fitted; where it ranks worse than 0.5, or worse
    than the cold model, it is quarantined and the cold model steers. Regret is how much slower than the best of all the
    best of its first 1 or 10 is. Of a kernel with thousands of candidates, some stand for all.
    """
    path = chosen_database(database, demo)
    with opened(path) as store:
        report = prior_report(store)
    if json:
        typer.echo(json_text(_object(report)))
    else:
        typer.echo("\n".join(_lines(report, terminal_width(sys.stdout))))


def _object(report: PriorReport) -> dict[str, object]:
    """Everything but the single pairs, of which their number and the middle of the residuals are told."""
    found = asdict(report)
    found["pairs"] = len(report.pairs)
    residuals = sorted(report.residuals)
    found["median_residual"] = residuals[len(residuals) // 2] if residuals else None
    return found


def _lines(report: PriorReport, width: int | None) -> list[str]:
    lines = text_lines(f"steers the next run: {report.version}", width)
    if report.learned:
        whose = "shipped, fitted" if report.shipped else "fitted"
        lines += text_lines(f"{whose} to {report.rows} rows: {report.learned}, {report.reason}", width)
    else:
        lines += text_lines(report.reason, width)
    if report.shipped or not report.learned:
        said = f"judged below on {len(report.kernels)} kernels measured here that it has never seen"
        if report.sampled is not None:
            rows, measured = report.sampled
            said += f": {rows} of their {measured} candidates, evenly spread in the order of their times"
        lines += text_lines(said, width)
    if report.problem:
        lines += text_lines(report.problem, width)
    if report.families:
        lines += ["", *_family_table(report, width), "", *_kernel_table(report, width)]
    if report.importance:
        shown = [(name, share_text(share)) for name, share in report.importance[:COLUMNS_SHOWN]]
        lines += ["", *table_lines(("looks at", "share of the gain"), shown, width)]
    return lines


def _family_table(report: PriorReport, width: int | None) -> list[str]:
    rows = [
        (
            one.family or "?",
            one.kernels,
            f"{one.spearman:.2f}",
            f"{one.winner_rank:.1f}",
            share_text(one.regret_1),
            share_text(one.regret_10),
        )
        for one in report.families
    ]
    return table_lines(("family", "kernels", "rank corr.", "winner's rank", "regret@1", "regret@10"), rows, width)


def _kernel_table(report: PriorReport, width: int | None) -> list[str]:
    columns = ("winner", "of", "cold", "rank corr.", "cold", "regret@1", "regret@10", "kernel")
    rows = [
        (
            one.learned.winner_rank,
            one.rows,
            one.cold.winner_rank if one.cold else None,
            f"{one.learned.spearman:.2f}",
            f"{one.cold.spearman:.2f}" if one.cold else None,
            *(share_text(regret) for regret in one.learned.regrets),
            f"{one.label or one.kernel} {one.shape}".strip(),
        )
        for one in report.kernels
    ]
    return table_lines(columns, rows, width)
