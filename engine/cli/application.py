"""The `emmy` command: which commands exist, and what a person sees when one of them goes wrong.

Only the command that was typed is imported, so that `emmy eval` never waits for what a tuning run needs.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from engine import __version__
from engine.cli.entry import INTERRUPTED
from engine.cli.errors import BAD_INPUT, FAILED, UNEXPECTED, LogFile, complain, report_unexpected
from engine.cli.streams import discard, open_closed, stdout_fault
from engine.cli.usage import is_usage_error, usage_line, wants_help
from engine.typed_path import BadPath

_COMMANDS = {
    "tune": "engine.cli.tune",
    "explain": "engine.cli.explain",
    "compile": "engine.cli.compile",
    "run": "engine.cli.run",
    "eval": "engine.cli.evaluate",
    "import": "engine.cli.import_results",
    "export": "engine.cli.export",
    "merge": "engine.cli.merge",
    "pin": "engine.cli.pin",
    "unpin": "engine.cli.unpin",
    "pins": "engine.cli.pins",
    "doctor": "engine.cli.doctor",
    "fit": "engine.cli.fit",
}


def application(arguments: Sequence[str]) -> typer.Typer:
    """The command tree, with the commands that `arguments` name; with all of them where none is named."""
    app = typer.Typer(
        name="emmy",
        help="Find the fastest GPU kernels for a PyTorch program, and keep what was learned in one SQLite file.",
        epilog="Watch a run, or look through a database: emmy-tui",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_emmy)
    first = next((argument for argument in arguments if not argument.startswith("-")), "")
    wanted = [first] if first in _COMMANDS else [] if "--version" in arguments else list(_COMMANDS)
    for name in wanted:
        import_module(_COMMANDS[name]).register(app)
    return app


def _emmy(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=lambda on: _version(on)),
    ] = False,
) -> None:
    """Options of `emmy` itself."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"emmy {__version__}")
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code: 0 ok, 1 failed, 2 bad input, 130 after Ctrl-C.

    A stdout that is closed or can't be written is a failure, and a reader that left is none.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    open_closed()
    logging.getLogger("engine").handlers = [LogFile()]
    try:
        code = application(arguments)(args=list(arguments), prog_name="emmy", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader left, as `| head` does
        discard(sys.stdout)
        code = 0
    except SystemExit as left:  # what prints the help leaves so when its reader does
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        code = 0
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        code = _told(error, arguments)
    sys.exit(code)


def _told(error: Exception, arguments: Sequence[str]) -> int:
    """Say in one line what went wrong; returns the exit code."""
    if isinstance(error, BadPath):
        complain(str(error))
        return BAD_INPUT
    if is_usage_error(error):
        if not wants_help(error):  # typer has printed the help
            complain(usage_line(error, arguments, list(_COMMANDS)))
        return BAD_INPUT
    fault = stdout_fault() if isinstance(error, OSError) and error.filename is None else None
    if fault is None:
        report_unexpected(error)
        return UNEXPECTED
    complain(f"stdout can't be written ({fault.strerror}): send it to another file or device")
    discard(sys.stdout)
    return FAILED
