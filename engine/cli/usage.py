"""The command line as it was typed; one that can't be understood, as one line: what is wrong, and where the help is.

Typer brings its own copy of click or imports click, by its version; so its errors are known by what they have, not by
their class.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Any


def typed_command() -> str:
    """What a person typed to start this process, to be kept with what it finds, and to be typed again."""
    return shlex.join(["emmy", *sys.argv[1:]])


def is_usage_error(error: Exception) -> bool:
    """Whether typer raised it for what was typed."""
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def wants_help(error: Exception) -> bool:
    """Whether it only means that a command was typed alone, and that its help is the answer."""
    return type(error).__name__ == "NoArgsIsHelpError"


def usage_line(error: Any, arguments: Sequence[str], commands: Sequence[str]) -> str:
    """The line of a usage error, with the value that was typed and the command whose `--help` tells more."""
    message = " ".join(error.format_message().split())
    value = _typed_value(getattr(error, "param", None), arguments)
    if value is not None and value not in message:
        message = message.replace("Invalid value for", f"Invalid value {value!r} for", 1)
    message = message[:1].lower() + message[1:].rstrip(".")
    if message.endswith("is not readable"):
        return f"{message}: make it readable (chmod u+r), or name another"
    context = getattr(error, "ctx", None)
    named = next((argument for argument in arguments if argument in commands), "")
    command = context.command_path if context is not None else f"emmy {named}".strip()
    return f"{message}{' See' if message.endswith('?') else '; see'} `{command} --help`"


def _typed_value(parameter: Any, arguments: Sequence[str]) -> str | None:
    """What follows the option among the arguments, as `--name value` or `--name=value`."""
    names = getattr(parameter, "opts", ())
    for position, argument in enumerate(arguments):
        name, joined, value = argument.partition("=")
        if name in names and name.startswith("-"):
            return value if joined else next(iter(arguments[position + 1 :]), None)
    return None
