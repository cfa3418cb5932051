"""The work of `emmy compile`: choose the kernels, write their text, and compile it where assembly is asked for."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import typer

from engine.cli.errors import FAILED, complain, refuse, refusing
from engine.cli.options import SubjectRequest
from engine.cli.output import json_text, table_lines, terminal_width, text_lines
from engine.cli.subject_options import controls_here, failing, opened_subjects, written_folder
from engine.deploy import DeploymentError, deployment
from engine.deploy.asking import ChildError
from engine.deploy.controls import ControlsHere
from engine.deploy.listing import Called, Listed, called_kernels, compiled_kernels, listed_kernels, named_target
from engine.deploy.subjects import Subject
from engine.measure import Controls
from engine.prior import steering
from engine.store import Store, StoreError
from engine.vocabulary import Target

COLUMNS = ("kernel", "files", "registers", "spills", "shared bytes", "grid", "warps", "schedule")


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """The options of one `emmy compile`; `chip` is "" for the one that the evidence was measured on."""

    subject: SubjectRequest
    chip: str
    out: Path
    ptx: bool
    sass: bool
    strict: bool
    json: bool


@dataclass(frozen=True, slots=True)
class _Written:
    kernel: Listed
    files: tuple[Path, ...]


def compile_request(request: CompileRequest) -> None:
    """Write everything and print what was written; leaves with exit code 1 if a kernel doesn't compile."""
    with opened_subjects(request.subject) as (store, subjects):
        chosen = [_kernels(request, store, subject) for subject in subjects]
    if request.ptx or request.sass:
        if find_spec("triton") is None:
            raise refuse("compiling needs triton, which isn't installed: pip install 'emmy-tui[tune]'")
        with failing(ChildError):
            chosen = [_compiled(one, sass=request.sass) for one in chosen]
    written = [(one.subject, _write(request, one.kernels), one.called) for one in chosen]
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
    """A program's kernels, the chip they are for, and the ptxas with its controls (None: Triton's own)."""

    subject: Subject
    target: Target
    kernels: list[Listed]
    controls: Controls | None
    called: list[Called]


_Program = tuple[Subject, list[_Written], list[Called]]


def _compiled(one: _Chosen, *, sass: bool) -> _Chosen:
    kernels = compiled_kernels(one.kernels, one.target, sass=sass, controls=one.controls, tell=_tell)
    return replace(one, kernels=kernels)


def _kernels(request: CompileRequest, store: Store, subject: Subject) -> _Chosen:
    """The chosen kernels as text. Times of another chip are no evidence for the one that is named."""
    context_key, target = subject.context_key, subject.target
    controls: ControlsHere | None = controls_here(request.subject, subject)
    if request.chip:
        with refusing(ValueError):
            target = named_target(request.chip, target)
        if target.capability != subject.target.capability:
            context_key, controls = "", None
    prior = steering(store.path).latest
    with failing(DeploymentError, StoreError):
        chosen = deployment(
            subject.program, store, context_key, target, prior, strict=request.strict, controls=controls
        )
    for note in chosen.notes:
        complain(note)
    if target.capability < 90:
        chosen = replace(chosen, pdl=False)  # dependent launch begins with 9.0
    return _Chosen(subject, target, listed_kernels(chosen), chosen.controls, called_kernels(chosen))


def _tell(step: str) -> None:
    if sys.stderr.isatty():
        typer.echo(step, err=True)


def _write(request: CompileRequest, kernels: list[Listed]) -> list[_Written]:
    folder = written_folder(request.out)
    kept = [replace(item, ptx=item.ptx if request.ptx else "", sass=item.sass) for item in kernels]
    with failing(OSError):
        return [_Written(item, tuple(item.write(folder))) for item in kept]


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
    return (name, files, one.registers, one.spills, one.shared_bytes, grid, one.source.num_warps, str(one.schedule))


def _called_row(one: Called) -> tuple[object, ...]:
    name = one.kernel.label or one.kernel.family
    return (name, "called as it is", None, None, None, "", None, " ".join(one.ops))


def _object(subject: Subject, items: list[_Written], called: list[Called]) -> dict[str, object]:
    return {
        "target": subject.text,
        "kernels": [
            {
                "kernel": item.kernel.kernel.key,
                "label": item.kernel.kernel.label,
                "schedule": item.kernel.schedule.as_dict(),
                "grid": item.kernel.source.grid,
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
