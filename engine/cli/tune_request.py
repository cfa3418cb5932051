"""What `emmy tune` was asked, and what of it contradicts itself or means nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from engine.cli.options import PACE_LIMIT_S
from engine.cli.subject_request import SubjectRequest

REPLAY_PRIORS = ("auto", "latest", "cold")
OBJECTIVES = ("time", "registers", "spills")
DEVICE = re.compile(r"cuda(:[0-9]{1,4})?(,cuda(:[0-9]{1,4})?)*|ray:.*")
METRIC = re.compile(r"ncu:(max:)?[A-Za-z]\w*(\.\w+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneRequest:
    """The options of one `emmy tune`. `replayed`: a recording answers instead of a GPU; `pace` is s a candidate."""

    subject: SubjectRequest
    device: str
    replayed: bool
    patience: int
    seed: int
    prior: str
    jobs: int | None
    pace: float | None
    cold_l2: bool
    acf: tuple[Path, ...]
    ptxas: Path | None
    acf_after: bool
    shared_acf: bool
    generate: int | None
    search_space: Path | None
    objective: str
    verbose: bool
    quiet: bool
    json: bool

    def contradictions(self) -> list[tuple[bool, str]]:
        """Whether each thing that can't be meant was asked for, with the sentence that says so."""
        return [*_of_all(self), *_of_replays(self), *_of_controls(self)]


def _of_all(request: TuneRequest) -> list[tuple[bool, str]]:
    """What has nothing to do, or can't be given together."""
    subject = request.subject
    return [
        (
            not request.replayed and not DEVICE.fullmatch(request.device),
            f"{request.device!r} is no device to tune on; it is cuda:0, cuda:1, …, or replay",
        ),
        (
            not (subject.code or subject.target) and not request.replayed,
            "nothing to tune: give a TARGET or --code TEXT, or --demo to replay the recorded demo",
        ),
        *subject.contradictions(),
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
            f"--prior {prior!r} steers no replay: it is auto, latest or cold there",
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
    options = [("--acf", bool(request.acf)), ("--generate", request.generate is not None)]
    given = " and ".join(name for name, was in options if was)
    named = bool(given)
    both = request.shared_acf and (request.acf_after or request.generate is not None)
    return [
        (
            named and request.replayed,
            f"{given} searches controls on a GPU, and a replay measures nothing: leave {given} away",
        ),
        (
            request.ptxas is not None and not named,
            "--ptxas names the assembler of --acf and --generate: give one of them",
        ),
        (
            request.acf_after and not named,
            "--acf-after searches controls last, and none are named: give --acf or --generate",
        ),
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
