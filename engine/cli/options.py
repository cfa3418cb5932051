"""The options that several commands take, and those of `emmy tune`, each with the one text that `--help` says of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.errors import refuse

REPLAY = "replay"
"""The device that answers from a recording."""

DEMO_PACE_S = 0.02
PACE_LIMIT_S = 3600
"""The longest that a replayed candidate may take: a person watches it, and a mistyped number must not hang."""

LARGEST = 2**31 - 1
"""The largest count or seed: what a database and every random generator can hold."""


def _not_blank(parameter: str, sentence: str) -> Callable[[typer.Context, str], str]:
    """What leaves with exit code 2 for a text that was given and says nothing: it isn't the absence of one."""

    def given(context: typer.Context, text: str) -> str:
        source = context.get_parameter_source(parameter)
        if not text.strip() and source is not None and source.name == "COMMANDLINE":
            raise refuse(sentence)
        return text

    return given


Code = Annotated[
    str,
    typer.Option(
        metavar="TEXT",
        help="Python text whose last statement is a call; torch, F and nn are in scope.",
        callback=_not_blank(
            "code", '--code "" is no program: give Python text whose last statement is a call, or leave it away'
        ),
    ),
]
TargetName = Annotated[
    str,
    typer.Argument(
        metavar="[TARGET]",
        help="A Hugging Face model's id or folder, or file.py:function_or_module.",
        show_default=False,
    ),
]
Layer = Annotated[int | None, typer.Option(min=0, help="Only this layer of TARGET, counted from 0.")]
Dtype = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of TARGET: bfloat16 (the default), float16 or float32.")
]
SeqLen = Annotated[int | None, typer.Option(min=1, help="Tokens a sequence that TARGET is fed. Default: 512.")]
Batch = Annotated[int | None, typer.Option(min=1, help="Sequences that TARGET is fed. Default: 1.")]
Database = Annotated[
    Path | None,
    # What can't be read has a sentence of the store's, or a row in `emmy doctor`.
    typer.Option("--db", metavar="PATH", readable=False, help="The database. Default: the one in your data folder."),
]
Demo = Annotated[bool, typer.Option("--demo", help="Use the recorded demo: no GPU and no torch needed.")]
DeviceName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="cuda:0 (the default), cuda:1, ...; or replay, to search a recorded database again."
    ),
]
Gpus = Annotated[
    int | None,
    typer.Option(min=1, max=1024, help="So many GPUs, from cuda:0 on, a kernel each at a time; same results as one."),
]
DeviceNumbers = Annotated[
    str | None, typer.Option("--devices", metavar="N,N", help="These GPUs by their numbers, such as 0,2.")
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray", metavar="ADDRESS", help="The free GPUs of a Ray cluster, a kernel each at a time: HOST:PORT, or auto."
    ),
]
ColdL2 = Annotated[
    bool, typer.Option("--cold-l2", help="Flush the GPU's L2 cache before each launch; such times are kept apart.")
]
Patience = Annotated[int, typer.Option(max=LARGEST, help="Candidates without a new best that end a kernel's search.")]
Seed = Annotated[
    int,
    typer.Option(
        min=0, max=LARGEST, help="0 follows the prior as it is; another number takes another path, always the same one."
    ),
]
PriorName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The model that steers: auto (as this program's last run here, else latest), latest, cold (no measurement "
        "in it), or that of a run's id (not in a replay).",
    ),
]
Jobs = Annotated[int | None, typer.Option(help="Compile processes. Default: by the number of cores.")]
Pace = Annotated[
    float | None,
    typer.Option(
        help=f"Seconds that a replayed candidate takes, 0 to {PACE_LIMIT_S}. Default: 0; with --demo {DEMO_PACE_S}."
    ),
]
Acf = Annotated[
    list[Path] | None,
    typer.Option(
        "--acf",
        metavar="PATH",
        help="Search ptxas controls too: an ACF file, or a folder of them with its manifest. May be given repeatedly.",
    ),
]
AcfToCheck = Annotated[
    list[Path] | None,
    typer.Option(
        "--acf",
        metavar="PATH",
        help="Check ptxas controls: an ACF file, or a folder of them with its manifest. May be given repeatedly.",
    ),
]
Ptxas = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="The ptxas for --acf. Default: the one of the acf extra, else one on the PATH."),
]
Chip = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="NAME",
        help="The chip, such as sm_90. Default: the one that the evidence was measured on.",
        callback=_not_blank("chip", '--target "" names no chip: give one, such as sm_90, or leave it away'),
    ),
]
DeployPtxas = Annotated[
    Path | None,
    typer.Option(
        "--ptxas",
        metavar="PATH",
        help="The ptxas for schedules with controls. Default: the one they were measured with.",
    ),
]
AcfAfter = Annotated[
    bool, typer.Option("--acf-after", help="Search schedules first, then controls for each kernel's best schedule.")
]
SharedAcf = Annotated[
    bool,
    typer.Option("--shared-acf", help="Search one controls file for all shapes of a kernel, here and in the database."),
]
Generate = Annotated[
    int | None,
    typer.Option(
        "--generate",
        metavar="N",
        min=1,
        max=1000,
        help="Breed controls for each kernel's best schedule over N generations with CompileIQ, if you installed it.",
    ),
]
SearchSpaceFile = Annotated[
    Path | None,
    typer.Option("--search-space", metavar="PATH", help="CompileIQ's search space for --generate; else it fetches it."),
]
ObjectiveName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What a kernel's choice makes least of: time, registers, spills, or ncu:METRIC (ncu:max:METRIC: most).",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="One line a step.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, as the last line of stdout.")]
RunJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print JSON, as the last line of stdout. Its best_us is the best time of the costliest kernel of the"
        " chosen grouping.",
    ),
]
KernelText = Annotated[
    str, typer.Option("--kernel", metavar="TEXT", help="Only kernels whose name, family, shape or key has this text.")
]
ProgramText = Annotated[
    str, typer.Option("--program", metavar="TEXT", help="Only programs whose text, as it was tuned, has this text.")
]
Strict = Annotated[
    bool, typer.Option("--strict-evidence", help="Refuse what only a prediction decides, with exit code 2.")
]
Top = Annotated[int, typer.Option(min=1, max=LARGEST, help="How many of each kernel's fastest schedules.")]
