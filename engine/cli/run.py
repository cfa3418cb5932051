"""`emmy run`: its options. `engine.cli.running` does the work."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from engine.cli.entry import Loading
from engine.cli.errors import refuse
from engine.cli.options import DeployPtxas, Json, KernelText, ProgramText, Strict
from engine.cli.subject_request import SubjectRequest, takes_subject

BenchOption = Annotated[bool, typer.Option("--bench", help="Time it, and each of its kernels, against the peers.")]
Peers = Annotated[
    str,
    typer.Option(metavar="NAME,NAME", help="Of eager, compile, max-autotune, helion, pinned. Default: eager,compile."),
]
Ab = Annotated[
    str,
    typer.Option("--ab", metavar="KNOB=VALUE", help="Time each kernel's chosen schedule against one with these knobs."),
]
Profile = Annotated[bool, typer.Option("--profile", help="Run it under NVIDIA's ncu, where that is installed.")]
DeviceName = Annotated[str, typer.Option("--device", metavar="NAME", help="cuda:0, cuda:1, ..., or its number alone.")]


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("run")(takes_subject(run))


def run(
    subject: SubjectRequest,
    program: ProgramText = "",
    bench: BenchOption = False,
    peers: Peers = "",
    kernel: KernelText = "",
    ab: Ab = "",
    profile: Profile = False,
    device: DeviceName = "cuda:0",
    ptxas: DeployPtxas = None,
    strict_evidence: Strict = False,
    json: Json = False,
) -> None:
    """Run a program as it would be deployed now, and check it against eager; with --bench time it against its peers.

    Without TARGET and --code: every program of the database, or those of --program. Needs a GPU.
    """
    index = _index(device)
    with Loading():
        from engine.cli.running import RunRequest, run_request

    run_request(RunRequest(subject, program, bench, peers, kernel, ab, profile, index, ptxas, strict_evidence, json))


def _index(device: str) -> int:
    """The number of the GPU; leaves with exit code 2 for what names none."""
    found = re.fullmatch(r"(?:cuda:)?([0-9]{1,4})", device)
    if found is None:
        raise refuse(f"--device {device!r} is no GPU: it is cuda:0, cuda:1, ..., or its number alone")
    return int(found.group(1))
