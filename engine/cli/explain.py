"""`emmy explain`: its options. `engine.cli.explaining` does the work."""

from __future__ import annotations

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


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("explain")(explain)


def explain(
    target: TargetName = "",
    code: Code = "",
    layer: Layer = None,
    dtype: Dtype = None,
    seq_len: SeqLen = None,
    batch: Batch = None,
    database: Database = None,
    demo: Demo = False,
    ptxas: DeployPtxas = None,
    strict_evidence: Strict = False,
    json: Json = False,
) -> None:
    """Say what a program would run as now, and what decides each fork of the grouping and each kernel's schedule.

    Without TARGET and --code: every program of the database. Needs no GPU; with one, its own context's times count.
    """
    with Loading():
        from engine.cli.explaining import explain_request

    subject = SubjectRequest(target, code, layer, dtype, seq_len, batch, database, demo, ptxas)
    explain_request(subject, strict_evidence, json)
