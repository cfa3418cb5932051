"""The work of `emmy tune`: open a session for what was asked, drive it to its end, print what it found."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from engine.cli.database import made_database
from engine.cli.drive import run_session
from engine.cli.errors import BAD_INPUT, FAILED, complain, refusing
from engine.cli.options import DEMO_PACE_S
from engine.cli.output import json_text, terminal_width
from engine.cli.progress import Detail, Progress
from engine.cli.subject_options import program_text
from engine.cli.summary import summary_lines, summary_object
from engine.cli.tune_request import TuneRequest
from engine.cli.usage import typed_command
from engine.measure import CounterReader, CountersError, GeneratorRequest
from engine.session import TuningSession
from engine.tune import ControlsRequest, CounterObjective, Settings, objective_named


def run_request(request: TuneRequest) -> int:
    """Run one session and print it; returns the exit code. Leaves with 2 for settings that can't work."""
    program = program_text(request.subject)
    with refusing(ValueError):
        settings = Settings(
            patience=request.patience,
            seed=request.seed,
            prior=request.prior,
            jobs=request.jobs,
            objective=objective_named(request.objective),
            cold_l2=request.cold_l2,
            surrogate=True,
        )
    path = made_database(request.subject.database, request.subject.demo)
    detail = Detail.QUIET if request.quiet else Detail.VERBOSE if request.verbose else Detail.NORMAL
    counters = _counters(request, settings)
    with _session(request, program, path, settings, counters) as session:
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


def _controls(request: TuneRequest) -> ControlsRequest | None:
    if not request.acf and request.generate is None:
        return None
    generate = GeneratorRequest(request.generate, space=request.search_space) if request.generate is not None else None
    return ControlsRequest(request.acf, request.ptxas, request.acf_after, request.shared_acf, generate)


def _counters(request: TuneRequest, settings: Settings) -> CounterReader | None:
    """What reads the metric of the objective, where that is one; leaves with exit code 1 if it can't be read here."""
    if not isinstance(settings.objective, CounterObjective):
        return None
    digits = request.device.partition(",")[0].rpartition(":")[2]
    try:
        return CounterReader.open(settings.objective.metric, int(digits) if digits.isdecimal() else 0)
    except CountersError as error:
        complain(str(error))
        raise typer.Exit(FAILED) from error


def _session(
    request: TuneRequest, program: str, path: Path, settings: Settings, counters: CounterReader | None
) -> TuningSession:
    if request.replayed:
        pace = request.pace if request.pace is not None else DEMO_PACE_S if request.subject.demo else 0.0
        return TuningSession.replay(path, settings=settings, pace=pace, target=program or None)
    return TuningSession.tune(
        program,
        database=path,
        settings=settings,
        device=request.device,
        command=typed_command(),
        controls=_controls(request),
        counters=counters,
    )
