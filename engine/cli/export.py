"""`emmy export`: what a database knows of schedules as one JSON file, or a tuned program as one Python file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from engine import __version__
from engine.cli.database import chosen_database, opened
from engine.cli.errors import FAILED, complain, refuse
from engine.cli.options import Database, Demo, Json, KernelText
from engine.cli.output import json_text, printable
from engine.cli.usage import typed_command
from engine.deploy import Carried, DeploymentError, ModuleOrigin, deployment, export_schedules, python_module
from engine.deploy.controls import NO_FILE_APPLIES, ControlsHere
from engine.prior import steering
from engine.store import Store, StoredRun, is_beside_a_database, is_database
from engine.typed_path import typed_path

Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="The file, or - for stdout; an existing one is replaced.")
]
Pins = Annotated[bool, typer.Option("--pins", help="Only pinned schedules.")]
Best = Annotated[bool, typer.Option("--best", help="Only each kernel's best schedule in each context.")]
Python = Annotated[bool, typer.Option("--python", help="A Python module with the winning kernels of TARGET.")]
TargetOrRun = Annotated[
    str,
    typer.Argument(
        metavar="[TARGET]", help="With --python: a run's id, or a text that the tuned program has.", show_default=False
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("export")(export)


def export(
    output: Output,
    target: TargetOrRun = "",
    kernel: KernelText = "",
    pins: Pins = False,
    best: Best = False,
    python: Python = False,
    database: Database = None,
    demo: Demo = False,
    json: Json = False,
) -> None:
    """Write schedules with their evidence and versions to a JSON file that `emmy import` reads on another machine.

    With --python: a module that needs torch and triton alone, whose `run` takes the program's inputs in order.
    """
    if python and (pins or best or kernel):
        raise refuse("--python writes a whole program: leave --kernel, --pins and --best away")
    if target and not python:
        raise refuse("TARGET names a program for --python: give --python, or --kernel TEXT for schedules")
    to_stdout = str(output) == "-"
    if to_stdout and json:
        raise refuse("-o - writes the file to stdout, where --json writes too: leave one of them away")
    output = typed_path("/dev/stdout" if to_stdout else output)
    _check_not_a_database(output)
    path = chosen_database(database, demo)
    with opened(path, DeploymentError) as store:
        if python:
            text, said, found = _python(store, target)
        else:
            what = Carried.BOTH if pins == best else Carried.PINS if pins else Carried.BEST
            text, said, found = _schedules(store, kernel, what)
    if to_stdout:
        typer.echo(text, nl=False)
    else:
        _write(output, text)
    if json:
        typer.echo(json_text({"output": str(output), **found}))
    else:
        shown = "stdout" if to_stdout else str(output)
        typer.echo(printable(f"{said} to {shown}"), err=to_stdout or not output.is_file())  # stdout may be the output


def _schedules(store: Store, kernel: str, what: Carried) -> tuple[str, str, dict[str, object]]:
    """The text of the file, what was written in words, and the same for `--json`."""
    found = export_schedules(store, kernel, what, typed_command())
    for sentence in dict.fromkeys(found.left_out):  # of a damaged file it is the same for each kernel
        complain(f"left out: {sentence}")
    if not found.schedules:
        name = "nothing is pinned" if what is Carried.PINS else "nothing was measured"
        raise refuse(f"{name} in {store.path}" + (f" of a kernel that matches {kernel!r}" if kernel else ""))
    if found.controls:
        complain("schedules with ptxas controls name their files by hash: whoever imports them needs the files too")
    counts: dict[str, object] = {"schedules": found.schedules, "graphs": found.graphs}
    counts["left_out"] = list(found.left_out)
    said = f"wrote {found.schedules} schedule{'' if found.schedules == 1 else 's'}"
    if found.graphs:
        said += f" and {found.graphs} whole graph{'' if found.graphs == 1 else 's'}"
    return found.text, said, counts


def _python(store: Store, target: str) -> tuple[str, str, dict[str, object]]:
    """The text of the module, what was written in words, and the same for `--json`."""
    run = _run(store, target)
    chip = store.target(run.context_key)
    program = store.program(run.id)
    controls = ControlsHere(none_because=NO_FILE_APPLIES)
    chosen = deployment(program, store, run.context_key, chip, steering(store.path).latest, controls=controls)
    if any(item.kernel.foreign is not None for item in chosen.kernels):
        raise refuse(f"run {run.id} holds results of another tuner, whose kernels have no source here")
    commands = (run.command,) if run.command else ()
    origin = ModuleOrigin(__version__, typed_command(), commands, store.context(run.context_key))
    for name in chosen.predicted:
        complain(f"nothing was measured for {name}: the prior's choice is written")
    for note in chosen.notes:
        complain(note)
    text = python_module(program, chosen, origin)
    about = {"program": run.target, "run": run.id, "predicted": list(chosen.predicted), "notes": list(chosen.notes)}
    counts: dict[str, object] = {"kernels": len(chosen.kernels), **about}
    return text, f"wrote {len(chosen.kernels)} kernel{'' if len(chosen.kernels) == 1 else 's'} of {run.target}", counts


def _run(store: Store, target: str) -> StoredRun:
    """The run of this id, else the newest run whose program has the text."""
    runs = store.runs()
    if not runs:
        raise refuse(f"{store.path} holds no run; `emmy tune` makes one")
    named = [run for run in runs if run.id == target]
    found = named or [run for run in runs if target.casefold() in run.target.casefold()]
    programs = list(dict.fromkeys(run.target for run in found))
    if not found:
        raise refuse(f"no run of {store.path} is {target!r} or has a program with this text")
    if not target and len(programs) > 1:
        raise refuse(f"{store.path} holds {len(programs)} programs: name one, as in {programs[-1][:80]!r}")
    exact = [run for run in found if run.target == target]
    return (exact or found)[-1]


def _write(path: Path, text: str) -> None:
    """Whole or not at all; a device or a pipe, such as /dev/stdout, is written to and stays what it is."""
    data = text.encode("utf-8", "backslashreplace")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        whole = path.resolve()
        part = whole.with_name(f".emmy-{os.getpid()}.part")
        try:
            part.write_bytes(data)
            part.replace(whole)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        complain(f"{path} can't be written ({error.strerror or error}): name another file with -o")
        raise typer.Exit(FAILED) from error


def _check_not_a_database(path: Path) -> None:
    """Leaves with exit code 2 where the output would take the place of a database or of what SQLite keeps beside it."""
    if is_database(path) or is_beside_a_database(path):
        raise refuse(f"{path} is a database, and the output would replace it: name another file with -o")
