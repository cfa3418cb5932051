"""What the commands on one program have in common: how TARGET and its options become the program they work on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from engine.capture import CaptureError, TargetOptions, target_text
from engine.cli.database import chosen_database
from engine.cli.errors import FAILED, complain, refuse, refusing
from engine.cli.options import SubjectRequest
from engine.deploy.controls import ControlsHere
from engine.deploy.place import this_place
from engine.deploy.subjects import Subject, find_subjects
from engine.measure import ControlsError, read_assembler
from engine.store import Store, StoreError


def program_text(request: SubjectRequest) -> str:
    """The text that a run of it is known by; "" where none is named. Leaves with exit code 2 for a contradiction."""
    if request.code and request.target:
        raise refuse("TARGET and --code are two programs: give one of them")
    fed = (request.layer, request.dtype, request.seq_len, request.batch)
    if any(option is not None for option in fed) and not request.target:
        raise refuse("--layer, --dtype, --seq-len and --batch say how a TARGET is fed: name one")
    if not request.target:
        return request.code
    plain = TargetOptions()
    with refusing(CaptureError):
        options = TargetOptions(
            request.layer, request.dtype or plain.dtype, request.seq_len or plain.seq_len, request.batch or plain.batch
        )
        return target_text(request.target, options)


@contextmanager
def opened_subjects(request: SubjectRequest) -> Iterator[tuple[Store, list[Subject]]]:
    """The database, and the programs in it that the request names. Leaves with exit code 2 where there is none."""
    text = program_text(request)
    path = chosen_database(request.database, request.demo)
    with refusing(StoreError), _opened(path, empty=bool(text) and request.database is None) as store:
        with refusing(CaptureError):
            subjects = find_subjects(store, text, None if request.demo else this_place(), partly=request.demo)
        if not subjects:
            raise refuse(f"{path} holds no program: give a TARGET or --code TEXT, or tune one")
        yield store, subjects


@contextmanager
def _opened(path: Path, *, empty: bool) -> Iterator[Store]:
    """The database, to be read; with `empty` one without rows where there is no file. Raises StoreError."""
    if empty and not path.exists():
        with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "empty.db") as store:
            yield store
        return
    with Store.open(path, read_only=True) as store:
        yield store


def controls_here(request: SubjectRequest, subject: Subject) -> ControlsHere:
    """What of ptxas controls can be applied where the program is built. Leaves with exit code 2 for no ptxas."""
    with refusing(ControlsError):
        if request.ptxas is not None:
            read_assembler(request.ptxas)
    return ControlsHere(subject.context, request.ptxas)


@contextmanager
def failing(*errors: type[Exception]) -> Iterator[None]:
    """Inside, an exception of these types is a failure: its text is the sentence, and the exit code is 1."""
    try:
        yield
    except errors as error:
        complain(str(error))
        raise typer.Exit(FAILED) from error


def written_folder(folder: Path) -> Path:
    """The folder, made if it isn't there. Leaves with exit code 1 if it can't be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        complain(f"{folder} can't be made ({error.strerror}): name another folder with --out")
        raise typer.Exit(FAILED) from error
    return folder
