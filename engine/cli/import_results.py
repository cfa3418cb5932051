"""`emmy import`: other people's results into a database that is browsed and searched like one of ours."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.database import chosen_database
from engine.cli.errors import refusing
from engine.cli.options import Database, Json
from engine.cli.output import json_text
from engine.store import Imported, Store, StoreError, read_results

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Kernel Tuner caches or T4 files, also .gz.")]
Name = Annotated[str, typer.Option("--kernel", metavar="NAME", help="The kernel's name, in place of the file's.")]
Gpu = Annotated[str, typer.Option("--gpu", metavar="NAME", help="The GPU's name, in place of the file's.")]


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("import")(import_results)


def import_results(
    files: Files, database: Database = None, kernel: Name = "", gpu: Gpu = "", json: Json = False
) -> None:
    """Read results of other tuners into a database: all files, or none if one of them can't be read.

    Importing a file again adds what is new in it.
    """
    path = chosen_database(database, False)
    with refusing(StoreError):
        results = [read_results(file, kernel, gpu) for file in files]
        with Store.open(path) as store:
            found = store.import_results(results, command=shlex.join(["emmy", *sys.argv[1:]]))
    if json:
        typer.echo(json_text([_record(one) for one in found]))
    else:
        typer.echo("\n".join(_line(one) for one in found))


def _line(one: Imported) -> str:
    name = f"{one.kernel.label} {one.kernel.shape_text}".strip()
    return f"{name} on {one.gpu} ({one.origin}): {one.points} points, {one.failed} failed, {one.new} new"


def _record(one: Imported) -> dict[str, object]:
    about = {"run": one.run, "kernel": one.kernel.key, "label": one.kernel.label, "shape": one.kernel.shape_text}
    return {**about, "gpu": one.gpu, "format": one.origin, "points": one.points, "failed": one.failed, "new": one.new}
