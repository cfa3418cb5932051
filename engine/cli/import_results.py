"""`emmy import`: schedules from another machine, and other people's results, into a database of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.database import made_database, made_whole, telling_left_out
from engine.cli.errors import FAILED, complain, refusing
from engine.cli.options import Database, Json
from engine.cli.output import json_text, printable
from engine.cli.usage import typed_command
from engine.deploy import Received, ScheduleFile, is_schedule_file, read_schedule_file, receive_schedules, user_name
from engine.store import ForeignResults, Imported, Store, StoreError, read_document, read_results

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE...", help="Files of `emmy export`, Kernel Tuner caches or T4 files, also .gz."),
]
Name = Annotated[str, typer.Option("--kernel", metavar="NAME", help="The kernel's name, in place of the file's.")]
Gpu = Annotated[str, typer.Option("--gpu", metavar="NAME", help="The GPU's name, in place of the file's.")]


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("import")(import_results)


def import_results(
    files: Files, database: Database = None, kernel: Name = "", gpu: Gpu = "", json: Json = False
) -> None:
    """Read schedules or results into a database: all files, or none if one of them can't be read.

    Schedules from another GPU or toolchain are suggestions, which the next search tries first, and no evidence.
    Importing a file again adds what is new in it. Exit code 1 where a file's schedules were all left out.
    """
    path = made_database(database)
    with refusing(StoreError):
        read = [_read(file, kernel, gpu) for file in files]
        with made_whole(path), Store.open(path) as store, telling_left_out(store):
            results = [one for one in read if not isinstance(one, ScheduleFile)]
            found = store.import_results(results, command=typed_command()) if results else []
            who = user_name()
            received = [receive_schedules(store, one, who) for one in read if isinstance(one, ScheduleFile)]
    for sentence in dict.fromkeys(sentence for one in received for sentence in one.left_out):
        complain(f"left out: {sentence}")
    if json:
        typer.echo(json_text([*map(_record, found), *map(_received_record, received)]))
    else:
        typer.echo("\n".join(map(printable, [*map(_line, found), *map(_received_line, received)])))
    asked = [len(one.schedules) + len(one.graphs) + len(one.unread) for one in read if isinstance(one, ScheduleFile)]
    if any(count and len(one.left_out) >= count for one, count in zip(received, asked, strict=True)):
        raise typer.Exit(FAILED)


def _read(file: Path, kernel: str, gpu: str) -> ScheduleFile | ForeignResults:
    document = read_document(file)
    if is_schedule_file(document):
        if kernel or gpu:
            option = "--kernel" if kernel else "--gpu"
            raise StoreError(f"{file} is of `emmy export`, and keeps its names: {option} is for files of other tuners")
        return read_schedule_file(document, str(file))
    return read_results(file, kernel, gpu, document)


def _line(one: Imported) -> str:
    name = f"{one.kernel.label} {one.kernel.shape_text}".strip()
    return f"{name} on {one.gpu} ({one.origin}): {one.points} points, {one.failed} failed, {one.new} new"


def _received_line(one: Received) -> str:
    already = f" and {one.in_force} in force already" if one.in_force else ""
    graphs = f"{one.graphs} new whole graph{'' if one.graphs == 1 else 's'}, " if one.graphs else ""
    return (
        f"schedules: {len(one.pins)} pinned{already}, {one.evidence} new results, {graphs}"
        f"{one.suggestions} new suggestions, "
        f"{len(one.left_out)} left out"
    )


def _record(one: Imported) -> dict[str, object]:
    about = {"run": one.run, "kernel": one.kernel.key, "label": one.kernel.label, "shape": one.kernel.shape_text}
    return {**about, "gpu": one.gpu, "format": one.origin, "points": one.points, "failed": one.failed, "new": one.new}


def _received_record(one: Received) -> dict[str, object]:
    counts: dict[str, object] = {"pins": len(one.pins), "results": one.evidence, "graphs": one.graphs}
    return {"format": "emmy schedules", **counts, "suggestions": one.suggestions, "left_out": list(one.left_out)}
