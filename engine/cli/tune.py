"""`emmy tune`: its options. `engine.cli.tuning` does the work and loads the engine; `--help` doesn't wait for that."""

from __future__ import annotations

import re

import typer

from engine.cli.entry import Loading
from engine.cli.errors import refuse
from engine.cli.options import (
    REPLAY,
    Acf,
    AcfAfter,
    ColdL2,
    DeviceName,
    DeviceNumbers,
    Generate,
    Gpus,
    Jobs,
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
    SharedAcf,
    Verbose,
)
from engine.cli.subject_request import SubjectRequest, takes_subject
from engine.cli.tune_request import TuneRequest

DEFAULT_DEVICE = "cuda:0"


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("tune")(takes_subject(tune))


def tune(
    subject: SubjectRequest,
    device: DeviceName = None,
    gpus: Gpus = None,
    devices: DeviceNumbers = None,
    ray: RayAddress = None,
    patience: Patience = 50,
    seed: Seed = 0,
    prior: PriorName = "auto",
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
    request = TuneRequest(
        subject=subject,
        device=_device_names(device, gpus, devices, ray, demo=subject.demo),
        replayed=subject.demo or device == REPLAY,
        patience=patience,
        seed=seed,
        prior=prior,
        jobs=jobs,
        pace=pace,
        cold_l2=cold_l2,
        acf=tuple(acf or ()),
        ptxas=ptxas,
        acf_after=acf_after,
        shared_acf=shared_acf,
        generate=generate,
        search_space=search_space,
        objective=objective,
        verbose=verbose,
        quiet=quiet,
        json=json,
    )
    for wrong, sentence in request.contradictions():
        if wrong:
            raise refuse(sentence)
    with Loading():
        from engine.cli.tuning import run_request

    raise typer.Exit(run_request(request))


def _device_names(device: str | None, gpus: int | None, devices: str | None, ray: str | None, *, demo: bool) -> str:
    """The device's name, those of several with commas between them, or a cluster's.

    Leaves with exit code 2 for a choice that contradicts itself.
    """
    if demo and device not in (None, REPLAY):
        raise refuse(f"--demo replays a recording, and --device {device} measures: leave one of them away")
    if sum(choice is not None for choice in (device, gpus, devices, ray)) > 1:
        raise refuse("--device, --gpus, --devices and --ray all say where to measure: give one of them")
    if demo and any(choice is not None for choice in (gpus, devices, ray)):
        raise refuse("--gpus, --devices and --ray measure, and --demo replays a recording: leave one of them away")
    if ray is not None:
        return f"ray:{ray.strip()}"
    if gpus is not None:
        return ",".join(f"cuda:{number}" for number in range(gpus))
    if devices is None:
        return device or DEFAULT_DEVICE
    numbers = [number.strip() for number in devices.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,4}", number) for number in numbers):
        raise refuse(f"--devices is the numbers of GPUs with commas between them, such as 0,2, not {devices!r}")
    return ",".join(f"cuda:{int(number)}" for number in numbers)
