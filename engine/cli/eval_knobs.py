"""`emmy eval knobs`: what a wrong value of each knob costs, and which knobs have to be chosen together."""

from __future__ import annotations

import sys
from dataclasses import asdict

import typer

from engine.cli.database import chosen_database, opened
from engine.cli.errors import refuse_unmatched
from engine.cli.options import Database, Demo, Json, KernelText
from engine.cli.output import json_text, share_text, table_lines, terminal_width, text_lines, us_text
from engine.deploy import KnobReport, knob_reports

PAIRS_SHOWN = 5
LEAST_SHOWN = 0.005
"""A regret below this is no reason to mention a pair."""


def knobs(kernel: KernelText = "", database: Database = None, demo: Demo = False, json: Json = False) -> None:
    """Show, kernel by kernel, what each knob is worth: the regret of its values, and knobs that depend on each other.

    A value's regret is the fastest candidate with it against the fastest of all. `blind` is the mean over the values.

    A --kernel that nothing matches is bad input: exit code 2, a sentence on stderr, and [] as JSON.
    """
    path = chosen_database(database, demo)
    with opened(path) as store:
        found = list(knob_reports(store, kernel))
    if json:
        typer.echo(json_text([_object(one) for one in found]))
    elif found or not kernel:
        width = terminal_width(sys.stdout)
        typer.echo("\n\n".join("\n".join(_lines(one, width)) for one in found) or f"{path} holds no time yet")
    if not found and kernel:
        raise refuse_unmatched("timed kernel", "--kernel", kernel, path)


def _object(report: KnobReport) -> dict[str, object]:
    knobs = [{**asdict(one), "mean": one.mean, "worst": one.worst} for one in report.knobs]
    return {**asdict(report), "knobs": knobs}


def _lines(report: KnobReport, width: int | None) -> list[str]:
    about = f"{report.label or report.kernel} {report.shape} on {report.gpu}".replace("  ", " ")
    lines = text_lines(f"{about}: {report.timed} timed, best {us_text(report.best_us)} us", width)
    rows = [
        (
            one.knob,
            share_text(one.mean),
            share_text(one.worst),
            ", ".join(
                f"{value.value if value.value != '' else 'none'} +{share_text(value.regret)}" for value in one.values
            ),
        )
        for one in report.knobs
    ]
    lines += table_lines(("knob", "blind", "worst", "values, the best first"), rows, width)
    pairs = [pair for pair in report.pairs if pair.regret >= LEAST_SHOWN][:PAIRS_SHOWN]
    for pair in pairs:
        said = f"the best {pair.knob} loses {share_text(pair.regret)} over the values of {pair.other}: choose together"
        lines += text_lines(said, width)
    return lines
