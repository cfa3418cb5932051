"""The `emmy` command: which commands exist, and what a person sees when one of them goes wrong.

Only the command that was typed is imported, so that `emmy eval` never waits for what a tuning run needs.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from engine import __version__
from engine.cli.errors import UNEXPECTED, LogFile, report_unexpected

_COMMANDS = {"tune": "engine.cli.tune", "eval": "engine.cli.evaluate", "doctor": "engine.cli.doctor"}


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
    """Run one command and leave with its exit code: 0 ok, 1 failed, 2 bad input, 130 after Ctrl-C."""
    arguments = sys.argv[1:] if arguments is None else arguments
    logging.getLogger("engine").handlers = [LogFile()]
    try:
        application(arguments)(args=list(arguments), prog_name="emmy")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader left, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        report_unexpected(error)
        sys.exit(UNEXPECTED)
