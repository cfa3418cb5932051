"""`emmy tune`: its options. `engine.cli.tuning` does the work and loads the engine; `--help` doesn't wait for that."""

from __future__ import annotations

import re

import typer

from engine.cli.entry import Loading
from engine.cli.errors import refuse
from engine.cli.options import (
    PACE_LIMIT_S,
    REPLAY,
    Acf,
    AcfAfter,
    Batch,
    Code,
    ColdL2,
    Database,
    Demo,
    DeviceName,
    DeviceNumbers,
    Dtype,
    Generate,
    Gpus,
    Jobs,
    Layer,
    ObjectiveName,
    Pace,
    Patience,
    PriorName,
    Ptxas,
    Quiet,
    RayAddress,
    RunJson,
    SearchSpaceFile,
    Seed,
    SeqLen,
    SharedAcf,
    TargetName,
    TuneRequest,
    Verbose,
)

REPLAY_PRIORS = ("latest", "cold")
DEFAULT_DEVICE = "cuda:0"
OBJECTIVES = ("time", "registers", "spills")
DEVICE = re.compile(r"cuda(:[0-9]{1,4})?(,cuda(:[0-9]{1,4})?)*|ray:.*")
METRIC = re.compile(r"ncu:(max:)?[A-Za-z]\w*(\.\w+)*")


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("tune")(tune)


def tune(
    target: TargetName = "",
    code: Code = "",
    layer: Layer = None,
    dtype: Dtype = None,
    seq_len: SeqLen = None,
    batch: Batch = None,
    database: Database = None,
    demo: Demo = False,
    device: DeviceName = None,
    gpus: Gpus = None,
    devices: DeviceNumbers = None,
    ray: RayAddress = None,
    patience: Patience = 50,
    seed: Seed = 0,
    prior: PriorName = "latest",
    jobs: Jobs = None,
    pace: Pace = None,
    cold_l2: ColdL2 = False,
    acf: Acf = None,
    ptxas: Ptxas = None,
    acf_after: AcfAfter = False,
    shared_acf: SharedAcf = False,
    generate: Generate = None,
    search_space: SearchSpaceFile = None,
    objective: ObjectiveName = "time",
    verbose: Verbose = False,
    quiet: Quiet = False,
    json: RunJson = False,
) -> None:
    """Search for the fastest kernels of a model or of code on this GPU, or replay a recorded search.

    Each result is in the database as soon as it is measured: Ctrl-C loses nothing, the same command goes on from there.
    """
    replayed = demo or device == REPLAY
    if demo and device not in (None, REPLAY):
        raise refuse(f"--demo replays a recording, and --device {device} measures: leave one of them away")
    if sum(choice is not None for choice in (device, gpus, devices, ray)) > 1:
        raise refuse("--device, --gpus, --devices and --ray all say where to measure: give one of them")
    if demo and any(choice is not None for choice in (gpus, devices, ray)):
        raise refuse("--gpus, --devices and --ray measure, and --demo replays a recording: leave one of them away")
    device = _several(gpus, devices, ray) or device or DEFAULT_DEVICE
    request = TuneRequest(
        *(code, database, demo, device, replayed, patience, seed, prior, jobs, pace, verbose, quiet),
        *(json, target, layer, dtype, seq_len, batch, tuple(acf or ()), ptxas, acf_after, objective, cold_l2),
        *(shared_acf, generate, search_space),
    )
    for wrong, sentence in (*_contradictions(request), *_of_replays(request), *_of_controls(request)):
        if wrong:
            raise refuse(sentence)
    with Loading():
        from engine.cli.tuning import run_request

    raise typer.Exit(run_request(request))


def _several(gpus: int | None, devices: str | None, ray: str | None) -> str:
    """The names of several devices, separated by commas, or a cluster's; "" if none were asked for."""
    if ray is not None:
        return f"ray:{ray.strip()}"
    if gpus is not None:
        return ",".join(f"cuda:{number}" for number in range(gpus))
    if devices is None:
        return ""
    numbers = [number.strip() for number in devices.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,4}", number) for number in numbers):
        raise refuse(f"--devices is the numbers of GPUs with commas between them, such as 0,2, not {devices!r}")
    return ",".join(f"cuda:{int(number)}" for number in numbers)


def _contradictions(request: TuneRequest) -> list[tuple[bool, str]]:
    """What options can't be given together, each with the sentence that says so."""
    program = bool(request.code or request.target)
    fed = any(option is not None for option in (request.layer, request.dtype, request.seq_len, request.batch))
    return [
        (
            not request.replayed and not DEVICE.fullmatch(request.device),
            f"{request.device!r} is no device to tune on; it is cuda:0, cuda:1, …, or replay",
        ),
        (
            not program and not request.replayed,
            "nothing to tune: give a TARGET or --code TEXT, or --demo to replay the recorded demo",
        ),
        (bool(request.code and request.target), "TARGET and --code are two programs: give one of them"),
        (
            fed and not request.target,
            "--layer, --dtype, --seq-len and --batch say how a TARGET is fed: name one",
        ),
        (request.verbose and request.quiet, "-v and -q contradict each other: give one of them"),
    ]


def _of_replays(request: TuneRequest) -> list[tuple[bool, str]]:
    """What means something in a replay alone, or means nothing there."""
    pace, prior, replayed = request.pace, request.prior, request.replayed
    return [
        (
            pace is not None and not replayed,
            "--pace slows a replay down: give it with --demo or --device replay",
        ),
        (
            pace is not None and not 0 <= pace <= PACE_LIMIT_S,  # nan is in no range
            f"--pace is seconds a candidate, from 0 to {PACE_LIMIT_S}, not {pace}",
        ),
        (
            replayed and prior not in REPLAY_PRIORS,
            f"--prior {prior!r} steers no replay: it is latest or cold there",
        ),
        (
            replayed and request.jobs is not None,
            "--jobs counts compile processes, and a replay compiles nothing: leave it away",
        ),
        (
            replayed and request.cold_l2,
            "--cold-l2 says how to measure, and a replay measures nothing: leave it away",
        ),
    ]


def _of_controls(request: TuneRequest) -> list[tuple[bool, str]]:
    """What of ptxas controls means nothing as it was given."""
    named = bool(request.acf) or request.generate is not None
    both = request.shared_acf and (request.acf_after or request.generate is not None)
    return [
        (
            named and request.replayed,
            "--acf searches controls on a GPU, and a replay measures nothing: leave one of them away",
        ),
        (request.ptxas is not None and not named, "--ptxas names the assembler of --acf: give --acf too"),
        (request.acf_after and not named, "--acf-after searches controls last, and --acf names none: give it too"),
        (request.shared_acf and not request.acf, "--shared-acf chooses one of several files: give them with --acf"),
        (both, "--shared-acf searches one file for all shapes, --acf-after and --generate one a kernel: choose"),
        (
            request.search_space is not None and request.generate is None,
            "--search-space is what --generate breeds from: give it too",
        ),
        (
            request.objective not in OBJECTIVES and not METRIC.fullmatch(request.objective),
            f"--objective is {', '.join(OBJECTIVES)} or ncu:METRIC, not {request.objective!r}",
        ),
        (
            bool(METRIC.fullmatch(request.objective)) and (request.replayed or request.device.startswith("ray:")),
            "--objective ncu:METRIC reads counters of a GPU of this machine: leave it away, or the device",
        ),
    ]
