"""What the commands on a program have in common: from its options to the program, and to what that would run as."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from engine.capture import CaptureError, TargetOptions, target_text
from engine.cli.database import chosen_database, telling_left_out
from engine.cli.errors import failing, refuse, refuse_unmatched, refusing
from engine.cli.output import json_text
from engine.cli.subject_request import SubjectRequest
from engine.deploy import Deployment, DeploymentError, NoEvidenceError, deployment
from engine.deploy.controls import ControlsHere
from engine.deploy.listing import named_target
from engine.deploy.place import this_place
from engine.deploy.subjects import Subject, find_subjects
from engine.measure import ControlsError, read_assembler
from engine.prior import Prior
from engine.store import Store, StoreError, opened_to_read


def program_text(request: SubjectRequest) -> str:
    """The text that a run of it is known by; "" where none is named. Leaves with exit code 2 for a contradiction."""
    for wrong, sentence in request.contradictions():
        if wrong:
            raise refuse(sentence)
    if not request.target:
        return request.code
    plain = TargetOptions()
    with refusing(CaptureError):
        options = TargetOptions(
            request.layer, request.dtype or plain.dtype, request.seq_len or plain.seq_len, request.batch or plain.batch
        )
        return target_text(request.target, options)


@contextmanager
def opened_subjects(
    request: SubjectRequest, containing: str = "", *, json: bool = False
) -> Iterator[tuple[Store, list[Subject]]]:
    """The database, and the programs in it that the request names, of all those whose text has `containing`.

    Leaves with exit code 2 where there is none; where nothing has the text, and `json` is asked for, it is [].
    """
    text = program_text(request)
    refuse_two_choices(text, containing)
    path = chosen_database(request.database, request.demo)
    may_be_missing = bool(text) and request.database is None
    with refusing(StoreError), opened_to_read(path, may_be_missing=may_be_missing) as store, telling_left_out(store):
        with refusing(CaptureError):
            place = None if request.demo else this_place()
            subjects = find_subjects(store, text, place, partly=request.demo, containing=containing)
        if not subjects and containing:
            raise refuse_program(containing, path, json=json)
        if not subjects:
            raise refuse(f"{path} holds no program: give a TARGET or --code TEXT, or tune one")
        yield store, subjects


def refuse_two_choices(text: str, containing: str) -> None:
    """Leaves with exit code 2 where a program was named and --program was given too."""
    if text and containing:
        raise refuse("--program chooses among the programs of a database: leave it away, or TARGET and --code")


def refuse_program(containing: str, path: Path, *, json: bool) -> typer.Exit:
    """`refuse_unmatched` for --program, with [] on stdout where JSON was asked for."""
    if json:
        typer.echo(json_text([]))
    return refuse_unmatched("program", "--program", containing, path)


@dataclass(frozen=True, slots=True)
class ChoiceRequest:
    """What is asked of a choice of kernels. `program` is the text of --program; `chip` is "" for the one that the
    evidence was measured on; `ptxas` None for the one that schedules with controls were measured with; `strict` refuses
    predictions."""

    subject: SubjectRequest
    program: str
    chip: str
    ptxas: Path | None
    strict: bool


def choose_kernels(
    request: ChoiceRequest, store: Store, subject: Subject, prior: Prior, *, refuse_illegal_pins: bool = True
) -> tuple[Subject, Deployment]:
    """What the program would run as, with the context and the chip that it was chosen for.

    Times of another chip are no evidence for the one that is named. Leaves with exit code 2 for an unknown chip or no
    ptxas, and where the evidence that is asked for is missing; with 1 where nothing can be chosen, also where a pin
    can't be followed.
    """
    with refusing(ControlsError):
        if request.ptxas is not None:
            read_assembler(request.ptxas)
    controls: ControlsHere | None = ControlsHere(subject.context, request.ptxas)
    if request.chip:
        with refusing(ValueError):
            target = named_target(request.chip, subject.target)
        if target.capability != subject.target.capability:
            subject, controls = Subject(subject.text, subject.program, "", target), None
    asked = (subject.program, store, subject.context_key, subject.target, prior)
    with failing(DeploymentError, StoreError), refusing(NoEvidenceError):
        return subject, deployment(
            *asked, strict=request.strict, controls=controls, refuse_illegal_pins=refuse_illegal_pins
        )


def tell_step(step: str) -> None:
    """Say on a terminal what a command waits for."""
    if sys.stderr.isatty():
        typer.echo(step, err=True)
