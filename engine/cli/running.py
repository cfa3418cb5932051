"""The work of `emmy run`: one child process a program, which deploys, checks and times; here its answer is printed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from engine.cli.bench_report import bench_lines, bench_object
from engine.cli.database import chosen_database, opened
from engine.cli.errors import BAD_INPUT, FAILED, complain, refuse, refusing
from engine.cli.output import json_text, terminal_width
from engine.cli.subject_options import program_text, refuse_program, refuse_two_choices, tell_step
from engine.cli.subject_request import SubjectRequest
from engine.deploy.asking import ChildError, MissingError, ask_child
from engine.deploy.comparing import PEER_NAMES, read_knobs
from engine.deploy.place import has_driver
from engine.deploy.profiling import profiled_command
from engine.extras import install_text
from engine.knobs import BadKnobs
from engine.store import IMPORTED

DEFAULT_PEERS = ("eager", "compile")
NO_GPU = "running a program needs a CUDA GPU, and this machine has no NVIDIA driver"
PROFILE_LIMIT_S = 1800


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options of one `emmy run`."""

    subject: SubjectRequest
    program: str
    bench: bool
    peers: str
    kernel: str
    ab: str
    profile: bool
    device: int
    ptxas: Path | None
    strict: bool
    json: bool


def run_request(request: RunRequest) -> None:
    """Run every program that is asked for and print it; leaves with exit code 1 if one of them can't be run."""
    peers = _peers(request)
    if request.ab:
        with refusing(BadKnobs):
            read_knobs(request.ab)
    path = chosen_database(request.subject.database, request.subject.demo)
    texts = _texts(request, path)
    if find_spec("torch") is None or find_spec("triton") is None:
        raise refuse(f"running a program needs torch and triton, which aren't installed: {install_text('tune')}")
    if not has_driver():
        raise refuse(NO_GPU)
    found: list[dict[str, Any]] = []
    failed, missing = False, False
    for text in texts:
        question = _question(request, peers, path, text)
        try:
            answer = ask_child("engine.deploy.bench_child", question, tell_step)
        except ChildError as error:
            complain(f"{text[:60]}: {error}" if len(texts) > 1 else str(error))
            failed, missing = failed or not isinstance(error, MissingError), missing or isinstance(error, MissingError)
            continue
        found.append(bench_object(text, answer))
        if not request.json:
            typer.echo("\n".join(bench_lines(text, answer, terminal_width(sys.stdout))) + "\n")
        if request.profile:
            failed = not _profile(question) or failed
    if request.json:
        typer.echo(json_text(found))
    if failed or missing:
        raise typer.Exit(FAILED if failed else BAD_INPUT)


def _question(request: RunRequest, peers: tuple[str, ...], path: Path, text: str) -> dict[str, Any]:
    return {
        **{"text": text, "database": str(path), "device": request.device, "strict": request.strict},
        "ptxas": str(request.ptxas or ""),
        **{"peers": list(peers), "bench": request.bench, "kernel": request.kernel, "ab": request.ab},
    }


def _peers(request: RunRequest) -> tuple[str, ...]:
    if request.peers and not request.bench:
        raise refuse("--peers are timed with --bench: add it")
    names = tuple(dict.fromkeys(name.strip() for name in request.peers.split(",") if name.strip()))
    unknown = [name for name in names if name not in PEER_NAMES]
    if unknown:
        raise refuse(f"--peers knows {', '.join(PEER_NAMES)}, not {unknown[0]!r}")
    return names or DEFAULT_PEERS


def _texts(request: RunRequest, path: Path) -> list[str]:
    """The texts of the programs: the named one, or all that the database holds. Leaves with exit code 2 for none."""
    text = program_text(request.subject)
    refuse_two_choices(text, request.program)
    with opened(path) as store:
        recorded = list(dict.fromkeys(run.target for run in reversed(store.runs()) if run.device != IMPORTED))
    if text:
        inside = [name for name in recorded if text in name] if request.subject.demo else []
        return inside or [text]
    if not recorded:
        raise refuse(f"{path} holds no program: give a TARGET or --code TEXT, or tune one")
    found = [name for name in recorded if request.program.casefold() in name.casefold()]
    if not found:
        raise refuse_program(request.program, path, json=request.json)
    return found


def _profile(question: dict[str, Any]) -> bool:
    """Run the program under ncu and print what it says; False, and a sentence, where that can't be done."""
    ncu = shutil.which("ncu")
    if ncu is None:
        complain("--profile needs NVIDIA's ncu, which isn't on the path (a CUDA toolkit brings it)")
        return False
    with profiled_command(ncu, question) as command:
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=PROFILE_LIMIT_S, check=False, env=dict(os.environ)
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            complain(f"ncu gave no answer: {error}")
            return False
    lines = [line for line in (ended.stdout + ended.stderr).splitlines() if line.strip()]
    if ended.returncode != 0 or any("ERR_NVGPUCTRPERM" in line for line in lines):
        told = next((line for line in lines if "ERR" in line or "==ERROR==" in line), lines[-1] if lines else "nothing")
        complain(f"ncu failed: {told}")
        return False
    typer.echo("\n".join(lines), err=False)
    return True
