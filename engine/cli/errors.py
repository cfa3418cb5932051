"""What a person reads when a command can't go on: one sentence on stderr, never a traceback.

Tracebacks, and what the engine's thread logs, go to a file in the user's log folder.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import platformdirs
import typer

from engine.cli.output import printable
from engine.cli.streams import discard

FAILED = 1
BAD_INPUT = 2
UNEXPECTED = 1
LOG_BYTES = 1_000_000
"""A log longer than this starts afresh at the next entry."""


def complain(sentence: str) -> None:
    """Print one line on stderr, in the form that every error has. One that can't be printed has no reader."""
    try:
        typer.echo(f"emmy: {printable(' '.join(sentence.split()))}", err=True)
    except OSError:
        discard(sys.stderr)


def refuse(sentence: str) -> typer.Exit:
    """Say what is wrong with the input; raise the result to leave with the exit code of bad input."""
    complain(sentence)
    return typer.Exit(BAD_INPUT)


def refuse_unmatched(what: str, option: str, text: str, path: Path) -> typer.Exit:
    """`refuse` for an option that asks for `what` has a text, where nothing in the database does."""
    return refuse(f"no {what} of {path} matches {text!r}; leave {option} away to see them all")


def sentence_of(error: Exception) -> str:
    """What an error says to who names a database with --db."""
    named_by = getattr(error, "named_by", None)
    return str(named_by("--db") if named_by is not None else error)


@contextmanager
def refusing(*errors: type[Exception]) -> Iterator[None]:
    """Inside, an exception of these types is bad input: its text is the sentence that the person reads.

    One that says that the output can't be written (`is_output`, or an OSError) leaves with the code of a failure.
    """
    try:
        yield
    except errors as error:
        complain(sentence_of(error))
        is_output = getattr(error, "is_output", isinstance(error, OSError))
        raise typer.Exit(FAILED if is_output else BAD_INPUT) from error


@contextmanager
def failing(*errors: type[Exception]) -> Iterator[None]:
    """Inside, an exception of these types is a failure: its text is the sentence that the person reads.

    What is bad input all the same (`is_input`, as of a damaged database) leaves with that code.
    """
    try:
        yield
    except errors as error:
        complain(sentence_of(error))
        raise typer.Exit(BAD_INPUT if getattr(error, "is_input", False) else FAILED) from error


def log_path() -> Path:
    """The file that tracebacks go to."""
    return platformdirs.user_log_path("emmy", appauthor=False) / "emmy.log"


def append_to_log(text: str) -> None:
    """Add one entry, stamped with the time of day (UTC). Raises OSError if the file can't be written."""
    path = log_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    afresh = path.exists() and path.stat().st_size > LOG_BYTES
    with path.open("w" if afresh else "a", encoding="utf-8") as log:
        log.write(f"--- {datetime.now(UTC).isoformat(timespec='seconds')}\n{text.rstrip()}\n")


class LogFile(logging.Handler):
    """Sends what the engine logs to the log file; a log that can't be written disturbs nobody."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):
            append_to_log(self.format(record))


def report_unexpected(error: Exception) -> None:
    """Append the traceback to the log, and say in one sentence what happened and where the traceback is."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    try:
        append_to_log("".join(traceback.format_exception(error)))
    except OSError as refusal:
        complain(f"unexpected {what}; its traceback could not be written to {log_path()} ({refusal.strerror})")
    else:
        complain(f"unexpected {what}; the traceback is in {log_path()}")
