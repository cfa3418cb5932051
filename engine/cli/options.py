"""The options of the commands, each with the one text that `--help` says of it, and what `emmy tune` was asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

Code = Annotated[
    str, typer.Option(metavar="TEXT", help="Python text whose last statement is a call; torch, F and nn are in scope.")
]
Database = Annotated[
    Path | None, typer.Option("--db", metavar="PATH", help="The database. Default: the one in your data folder.")
]
Demo = Annotated[bool, typer.Option("--demo", help="Use the recorded demo: no GPU and no torch needed.")]
DeviceName = Annotated[
    str, typer.Option(metavar="NAME", help="cuda:0, cuda:1, ...; or replay, to search a recorded database again.")
]
Patience = Annotated[int, typer.Option(help="Candidates without a new best that end a kernel's search.")]
Seed = Annotated[int, typer.Option(help="Fixes every random choice.")]
PriorName = Annotated[str, typer.Option(metavar="NAME", help="What steers: latest, cold, or the id of a run.")]
Jobs = Annotated[int | None, typer.Option(help="Compile processes. Default: by the number of cores.")]
Pace = Annotated[float | None, typer.Option(min=0.0, help="Seconds that a replayed candidate takes.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="One line a step.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, as the last line of stdout.")]
KernelText = Annotated[
    str, typer.Option("--kernel", metavar="TEXT", help="Only kernels whose name, family, shape or key has this text.")
]
Top = Annotated[int, typer.Option(min=1, help="How many of each kernel's fastest schedules.")]


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """The options of one `emmy tune`. `replayed`: a recording answers instead of a GPU; `pace` is s a candidate."""

    code: str
    database: Path | None
    demo: bool
    device: str
    replayed: bool
    patience: int
    seed: int
    prior: str
    jobs: int | None
    pace: float | None
    verbose: bool
    quiet: bool
    json: bool
