"""`emmy tune`: its options. `engine.cli.tuning` does the work and loads the engine; `--help` doesn't wait for that."""

from __future__ import annotations

import typer

from engine.cli.errors import refuse
from engine.cli.options import (
    Code,
    Database,
    Demo,
    DeviceName,
    Jobs,
    Json,
    Pace,
    Patience,
    PriorName,
    Quiet,
    Seed,
    TuneRequest,
    Verbose,
)

REPLAY = "replay"


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("tune")(tune)


def tune(
    code: Code = "",
    database: Database = None,
    demo: Demo = False,
    device: DeviceName = "cuda:0",
    patience: Patience = 50,
    seed: Seed = 0,
    prior: PriorName = "latest",
    jobs: Jobs = None,
    pace: Pace = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Search for the fastest kernels of a program on this GPU, or replay a recorded search.

    Each result is in the database as soon as it is measured: Ctrl-C loses nothing, the same command goes on from there.
    """
    replayed = demo or device == REPLAY
    if not code and not replayed:
        raise refuse("nothing to tune: give --code TEXT, or --demo to replay the recorded demo")
    if pace is not None and not replayed:
        raise refuse("--pace slows a replay down: give it with --demo or --device replay")
    if verbose and quiet:
        raise refuse("-v and -q contradict each other: give one of them")
    request = TuneRequest(
        code, database, demo, device, replayed, patience, seed, prior, jobs, pace, verbose, quiet, json
    )
    from engine.cli.tuning import run_request

    raise typer.Exit(run_request(request))
