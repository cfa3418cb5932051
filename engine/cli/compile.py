"""`emmy compile`: its options. `engine.cli.compiling` does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.entry import Loading
from engine.cli.options import (
    Batch,
    Code,
    Database,
    Demo,
    DeployPtxas,
    Dtype,
    Json,
    Layer,
    SeqLen,
    Strict,
    SubjectRequest,
    TargetName,
)

FOLDER = Path("emmy-kernels")
Chip = Annotated[str, typer.Option("--target", metavar="NAME", help="Generate for this chip, such as sm_90.")]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the files go.")]
Ptx = Annotated[bool, typer.Option("--ptx", help="Compile, and write the PTX too; needs triton, no GPU.")]
Sass = Annotated[bool, typer.Option("--sass", help="Compile, and write the GPU's own code too.")]


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("compile")(compile_program)


def compile_program(
    target: TargetName = "",
    code: Code = "",
    layer: Layer = None,
    dtype: Dtype = None,
    seq_len: SeqLen = None,
    batch: Batch = None,
    database: Database = None,
    demo: Demo = False,
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

    subject = SubjectRequest(target, code, layer, dtype, seq_len, batch, database, demo, ptxas)
    compile_request(CompileRequest(subject, chip, out, ptx, sass, strict_evidence, json))
