"""`emmy compile`: its options. `engine.cli.compiling` does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.entry import Loading
from engine.cli.options import Chip, DeployPtxas, Json, ProgramText, Strict
from engine.cli.subject_request import SubjectRequest, takes_subject
from engine.typed_path import typed_path

FOLDER = Path("emmy-kernels")
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the files go.")]
Ptx = Annotated[bool, typer.Option("--ptx", help="Compile, and write the PTX too; needs triton, no GPU.")]
Sass = Annotated[bool, typer.Option("--sass", help="Compile, and write the GPU's own code too.")]


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("compile")(takes_subject(compile_program))


def compile_program(
    subject: SubjectRequest,
    program: ProgramText = "",
    chip: Chip = "",
    out: Out = FOLDER,
    ptx: Ptx = False,
    sass: Sass = False,
    ptxas: DeployPtxas = None,
    strict_evidence: Strict = False,
    json: Json = False,
) -> None:
    """Write the Triton source of the kernels that a program would run as now; no GPU needed.

    With --ptx or --sass also their assembly, and what each kernel takes: registers, spills, shared memory.
    """
    with Loading():
        from engine.cli.compiling import CompileRequest, compile_request
        from engine.cli.subject_options import ChoiceRequest

    choice = ChoiceRequest(subject, program, chip, ptxas, strict_evidence)
    compile_request(CompileRequest(choice, typed_path(out), ptx, sass, json))
