"""`emmy eval groupings`: each program's divisions into kernels, their times, and the best one as a graph."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from engine.cli.database import chosen_database, opened
from engine.cli.errors import refuse_unmatched
from engine.cli.grouping_report import GroupingRow, LaunchRow, ProgramGroupings, programs_with_groupings
from engine.cli.options import Database, Demo, Json, ProgramText
from engine.cli.output import (
    fitting_columns,
    json_text,
    rows_of,
    table_lines,
    table_width,
    terminal_width,
    text_lines,
    us_text,
)
from engine.cli.structure import explored_text
from engine.cli.winner import what_decided

LAUNCHES_SHOWN = 60
YIELDING = ("launches", "gap %", "kernels", "pdl us", "assembled us")
"""Columns that give way on a narrow terminal, the least missed first."""


def groupings(program: ProgramText = "", database: Database = None, demo: Demo = False, json: Json = False) -> None:
    """Show how each program was divided into kernels: decisions, sums, assembled times, and the best as a graph.

    A program is shown as its latest run left it. A --program that nothing matches is bad input: exit code 2, a sentence
    on stderr, and [] as JSON.
    """
    path = chosen_database(database, demo)
    with opened(path) as store:
        found = programs_with_groupings(store, program)
    if json:
        typer.echo(json_text([one.as_object() for one in found]))
    elif found or not program:
        width = terminal_width(sys.stdout)
        typer.echo("\n\n".join("\n".join(_lines(one, width)) for one in found) or f"{path} holds no grouping yet")
    if not found and program:
        raise refuse_unmatched("program", "--program", program, path)


def _lines(program: ProgramGroupings, width: int | None) -> list[str]:
    """Title, how far the search got, a row a grouping, what decided, and the best one's launches."""
    lines = text_lines(f"{program.target} on {program.gpu}", width)
    if program.explored is not None:
        lines += text_lines(explored_text(program.explored), width)
    lines += _grouping_table(program.rows, width)
    decided = what_decided(program.rows)
    if decided and len(program.rows) > 1:
        lines += text_lines(decided, width)
    for one in program.in_place:
        lines += text_lines(f"in place, {program.name(one.kernel)}: {one.text}", width)
    if program.chosen is None:
        return lines
    shown = program.launches[:LAUNCHES_SHOWN]
    lines += ["", *text_lines(f"grouping {program.chosen.number}, launch by launch:", width)]
    lines += _launch_table(shown, width)
    left = len(program.launches) - len(shown)
    return [*lines, f"and {left} more launches: --json has them all"] if left else lines


def _grouping_table(rows: Sequence[GroupingRow], width: int | None) -> list[str]:
    """Columns that matter least give way on a narrow terminal; the decisions wrap."""
    cells: dict[str, Sequence[object]] = {
        "no": [row.number for row in rows],
        "sum us": [row.sum_us for row in rows],
        "assembled us": [row.assembled_us for row in rows],
        "pdl us": [row.pdl_us for row in rows],
        "gap %": [row.gap for row in rows],
        "launches": [row.launches for row in rows],
        "kernels": [len(row.kernels) for row in rows],
        "decisions": [row.text for row in rows],
    }
    kept = fitting_columns(cells, YIELDING, width, wrapping="decisions")
    return table_lines(list(kept), rows_of(kept), width)


def _launch_table(launches: Sequence[LaunchRow], width: int | None) -> list[str]:
    columns = ("no", "kernel", "us", "reads", "results")
    cells = [(one.number, one.label, one.us, ", ".join(one.reads), ", ".join(one.results)) for one in launches]
    if width is None or table_width(columns, cells) <= width:
        return table_lines(columns, cells, width)
    return [line for row in cells for line in text_lines(_launch_text(*row), width)]


def _launch_text(number: int, label: str, us: float | None, reads: str, results: str) -> str:
    text = f"{number} {label}, {us_text(us)} us, reads {reads or 'nothing'}"
    return f"{text}, gives {results}" if results else text
