"""`emmy merge`: two databases become one that knows what both knew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.database import refuse_without_folder
from engine.cli.errors import BAD_INPUT, FAILED, complain, refuse
from engine.cli.options import Json
from engine.cli.output import json_text, printable
from engine.store import Merged, StoreError, merge_databases
from engine.typed_path import typed_path

Sources = Annotated[
    list[Path],
    typer.Argument(metavar="DATABASE", help="Two or more; without -o the first is written to."),
]
Into = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="C.db", help="A new database. Default: merge into the first that is named."),
]


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("merge")(merge)


def merge(databases: Sources, output: Into = None, json: Json = False) -> None:
    """Merge databases: nothing is lost, nothing stands twice, and merging again adds nothing.

    An old schema is upgraded; a newer one is refused. Without -o the first database receives what the others know.
    """
    if len(databases) < 2:
        raise refuse("one database is merged with nothing: name two or more")
    if output is not None:
        if str(output) == "-":
            raise refuse("a database can't be written to stdout: name a file with -o")
        refuse_without_folder(typed_path(output), "-o")
    try:
        merged = merge_databases(databases, output)
    except StoreError as error:
        complain(str(error))  # databases are arguments here, and there is no option that names them
        raise typer.Exit(FAILED if error.is_output else BAD_INPUT) from error
    path = output or databases[0]
    if json:
        typer.echo(json_text({"database": str(path), "sources": [_record(one) for one in merged]}))
        return
    lines = [f"{one.source}: {_counts(one)}" for one in merged]
    active = merged[-1].active_pins
    typer.echo(printable_lines([*lines, f"merged into {path}: {active} pin{'' if active == 1 else 's'} in force"]))


def printable_lines(lines: list[str]) -> str:
    """Lines with their control characters made visible."""
    return "\n".join(printable(line) for line in lines)


def _counts(one: Merged) -> str:
    # A pin that was set and ended, or that a later one took the place of, is an act and no pin in force.
    parts = (
        *((one.runs, "run", "runs"), (one.kernels, "kernel", "kernels"), (one.candidates, "result", "results")),
        (one.pins, "act of pinning", "acts of pinning"),
    )
    return ", ".join(f"{count} new {single if count == 1 else several}" for count, single, several in parts)


def _record(one: Merged) -> dict[str, object]:
    counts = {"runs": one.runs, "kernels": one.kernels, "results": one.candidates, "pins": one.pins}
    new = {f"new_{name}": count for name, count in counts.items()}
    return {"source": str(one.source), **new, "active_pins": one.active_pins}
