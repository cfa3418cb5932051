"""The work of `emmy tune`: open a session for what was asked, drive it to its end, print what it found."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import typer

from engine.cli.database import chosen_database
from engine.cli.drive import run_session
from engine.cli.errors import BAD_INPUT, complain, refusing
from engine.cli.options import TuneRequest
from engine.cli.output import json_text, terminal_width
from engine.cli.progress import Detail, Progress
from engine.cli.summary import summary_lines, summary_object
from engine.session import TuningSession
from engine.tune import Settings

DEMO_PACE_S = 0.02
FAILED = 1


def run_request(request: TuneRequest) -> int:
    """Run one session and print it; returns the exit code. Leaves with 2 for settings that can't work."""
    with refusing(ValueError):
        settings = Settings(patience=request.patience, seed=request.seed, prior=request.prior, jobs=request.jobs)
    path = chosen_database(request.database, request.demo)
    detail = Detail.QUIET if request.quiet else Detail.VERBOSE if request.verbose else Detail.NORMAL
    with _session(request, path, settings) as session:
        snapshot, interrupted = run_session(session, Progress(detail, sys.stdout, sys.stderr))
    if session.failure is not None:
        complain(session.failure)
        if snapshot.run is None:  # refused before a run began
            return BAD_INPUT
    if not request.quiet:
        typer.echo("\n".join(summary_lines(snapshot, path, terminal_width(sys.stdout))))
    if request.json:
        typer.echo(json_text(summary_object(snapshot, path, session.failure)))
    return interrupted or (FAILED if session.failure is not None else 0)


def _session(request: TuneRequest, path: Path, settings: Settings) -> TuningSession:
    if request.replayed:
        pace = request.pace if request.pace is not None else DEMO_PACE_S if request.demo else 0.0
        return TuningSession.replay(path, settings=settings, pace=pace, target=request.code or None)
    command = shlex.join(["emmy", *sys.argv[1:]])
    return TuningSession.tune(request.code, database=path, settings=settings, device=request.device, command=command)
