"""`emmy eval`: the group of commands that ask a database what is known."""

from __future__ import annotations

import typer

from engine.cli.eval_failures import failures
from engine.cli.eval_groupings import groupings
from engine.cli.eval_variants import variants


def register(app: typer.Typer) -> None:
    """Add the group and its commands to the tree."""
    group = typer.Typer(help="Ask a database what is known: no GPU and no torch needed.", no_args_is_help=True)
    group.command("variants")(variants)
    group.command("failures")(failures)
    group.command("groupings")(groupings)
    app.add_typer(group, name="eval")
