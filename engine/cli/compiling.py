"""The work of `emmy compile`: choose the kernels, write their text, and compile it where assembly is asked for."""

from __future__ import annotations

import errno
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import typer

from engine.cli.errors import FAILED, complain, failing, refuse
from engine.cli.output import json_text, table_lines, terminal_width, text_lines
from engine.cli.subject_options import ChoiceRequest, choose_kernels, opened_subjects, tell_step
from engine.deploy.asking import ChildError
from engine.deploy.listing import Called, Listed, called_kernels, compiled_kernels, listed_kernels
from engine.deploy.subjects import Subject
from engine.extras import install_text
from engine.measure import Controls
from engine.prior import steering
from engine.store import Store

COLUMNS = ("kernel", "files", "registers", "spills", "shared bytes", "grid", "warps", "decided by", "schedule")


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """The options of one `emmy compile`."""

    choice: ChoiceRequest
    out: Path
    ptx: bool
    sass: bool
    json: bool


@dataclass(frozen=True, slots=True)
class _Written:
    kernel: Listed
    files: tuple[Path, ...]


def compile_request(request: CompileRequest) -> None:
    """Write everything and print what was written; leaves with exit code 1 if a kernel doesn't compile."""
    with opened_subjects(request.choice.subject, request.choice.program, json=request.json) as (store, subjects):
        programs = [_kernels(request, store, subject) for subject in subjects]
    if request.ptx or request.sass:
        if find_spec("triton") is None:
            raise refuse(f"compiling needs triton, which isn't installed: {install_text('tune')}")
        with failing(ChildError):
            programs = [_compiled(one, sass=request.sass) for one in programs]
    written = _write(request, programs)
    _print(request, written)
    failures = [item.kernel.failure for _, items, _ in written for item in items if item.kernel.failure]
    for failure in failures:
        complain(failure)
    if request.sass and not failures and not any(item.kernel.sass for _, items, _ in written for item in items):
        complain("no SASS was written: neither cuobjdump nor nvdisasm is here (a CUDA toolkit brings both)")
        raise typer.Exit(FAILED)
    if failures:
        raise typer.Exit(FAILED)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A program's kernels, and the ptxas with its controls (None: Triton's own)."""

    subject: Subject
    kernels: list[Listed]
    controls: Controls | None
    called: list[Called]


_Program = tuple[Subject, list[_Written], list[Called]]


def _compiled(one: _Chosen, *, sass: bool) -> _Chosen:
    kernels = compiled_kernels(one.kernels, one.subject.target, sass=sass, controls=one.controls, tell=tell_step)
    return replace(one, kernels=kernels)


def _kernels(request: CompileRequest, store: Store, subject: Subject) -> _Chosen:
    """The chosen kernels as text."""
    subject, found = choose_kernels(request.choice, store, subject, steering(store.path).latest)
    for note in found.notes:
        complain(note)
    kernels = listed_kernels(found)
    if kernels and all(one.predicted for one in kernels):
        complain(f"nothing of this was measured for sm_{found.target.capability}: its schedules are predictions")
    return _Chosen(subject, kernels, found.controls, called_kernels(found))


def _write(request: CompileRequest, programs: Sequence[_Chosen]) -> list[_Program]:
    """Every file, or, where one can't be written, none of them: they are put in place when all are whole.

    Leaves with exit code 1 then.
    """
    made = not request.out.exists()
    try:
        request.out.mkdir(parents=True, exist_ok=True)
        try:
            with tempfile.TemporaryDirectory(dir=request.out, prefix=".emmy-") as folder:
                whole = [(one, [_written(request, item, Path(folder)) for item in one.kernels]) for one in programs]
                for file in sorted(Path(folder).iterdir()):
                    file.replace(request.out / file.name)
        except OSError:
            if made:
                with suppress(OSError):
                    request.out.rmdir()
            raise
    except OSError as error:
        raise _cant_write(request.out, error) from error
    return [(one.subject, items, one.called) for one, items in whole]


def _written(request: CompileRequest, item: Listed, folder: Path) -> _Written:
    """The kernel's files, written into `folder` and named as they will stand."""
    files = replace(item, ptx=item.ptx if request.ptx else "").write(folder)
    return _Written(item, tuple(request.out / file.name for file in files))


def _cant_write(folder: Path, error: OSError) -> typer.Exit:
    """Say what is wrong with the folder, and what to do; raise the result to leave with the exit code of a failure."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        complain(f"no space left on the disk of {folder}, nothing was written: free some, or name another with --out")
    else:
        complain(f"{folder} can't be written ({error.strerror or error}): name another folder with --out")
    return typer.Exit(FAILED)


def _print(request: CompileRequest, written: list[_Program]) -> None:
    if request.json:
        typer.echo(json_text([_object(*one) for one in written]))
        return
    width = terminal_width(sys.stdout)
    for subject, items, called in written:
        rows = [*map(_row, items), *map(_called_row, called)]
        typer.echo("\n".join([*text_lines(subject.text, width), *table_lines(COLUMNS, rows, width), ""]))
    typer.echo(f"written to {request.out}")


def _row(item: _Written) -> tuple[object, ...]:
    one = item.kernel
    files = " ".join(file.name for file in item.files)
    grid = "x".join(map(str, one.source.grid))
    name = one.kernel.label or one.kernel.family
    sizes = (one.registers, one.spills, one.shared_bytes)
    return (name, files, *sizes, grid, _warps(one), one.decided_text, str(one.schedule))


def _warps(one: Listed) -> int | str:
    """Warps of the launch; where warps have roles, the text starts more, and NUM_WARPS are those that multiply."""
    launched, named = one.source.num_warps, one.schedule.as_dict().get("NUM_WARPS", one.source.num_warps)
    return launched if named == launched else f"{launched} (roles: {named} multiply)"


def _called_row(one: Called) -> tuple[object, ...]:
    name = one.kernel.label or one.kernel.family
    return (name, "called as it is", None, None, None, "", None, "", " ".join(one.ops))


def _object(subject: Subject, items: list[_Written], called: list[Called]) -> dict[str, object]:
    return {
        "target": subject.text,
        "kernels": [
            {
                "kernel": item.kernel.kernel.key,
                "label": item.kernel.kernel.label,
                "schedule": item.kernel.schedule.as_dict(),
                "grid": item.kernel.source.grid,
                "decided_by": item.kernel.decided_by.value,
                "predicted": item.kernel.predicted,
                "num_warps": item.kernel.source.num_warps,
                "num_stages": item.kernel.source.num_stages,
                "arguments": [asdict(argument) for argument in item.kernel.source.arguments],
                "registers": item.kernel.registers,
                "spills": item.kernel.spills,
                "shared_bytes": item.kernel.shared_bytes,
                "files": [str(file) for file in item.files],
                "failure": item.kernel.failure,
            }
            for item in items
        ],
        "called": [
            {"kernel": one.kernel.key, "label": one.kernel.label, "ops": list(one.ops), "count": one.count}
            for one in called
        ],
    }
