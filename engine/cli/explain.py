"""`emmy explain`: its options. `engine.cli.explaining` does the work."""

from __future__ import annotations

import typer

from engine.cli.entry import Loading
from engine.cli.options import Chip, DeployPtxas, Json, ProgramText, Strict
from engine.cli.subject_request import SubjectRequest, takes_subject


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("explain")(takes_subject(explain))


def explain(
    subject: SubjectRequest,
    program: ProgramText = "",
    chip: Chip = "",
    ptxas: DeployPtxas = None,
    strict_evidence: Strict = False,
    json: Json = False,
) -> None:
    """Say what a program would run as now, and what decides each fork of the grouping and each kernel's schedule.

    Without TARGET and --code: every program of the database, or those of --program. Needs no GPU; with one, its own
    context's times count.
    """
    with Loading():
        from engine.cli.explaining import explain_request
        from engine.cli.subject_options import ChoiceRequest

    explain_request(ChoiceRequest(subject, program, chip, ptxas, strict_evidence), json)
