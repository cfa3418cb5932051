"""`emmy eval`: the group of commands that ask a database what is known."""

from __future__ import annotations

import typer

from engine.cli.eval_acf import acf
from engine.cli.eval_failures import failures
from engine.cli.eval_groupings import groupings
from engine.cli.eval_kernels import kernels
from engine.cli.eval_knobs import knobs
from engine.cli.eval_prior import prior
from engine.cli.eval_variants import variants


def register(app: typer.Typer) -> None:
    """Add the group and its commands to the tree."""
    group = typer.Typer(help="Ask a database what is known: no GPU and no torch needed.", no_args_is_help=True)
    group.command("variants")(variants)
    group.command("kernels")(kernels)
    group.command("acf")(acf)
    group.command("failures")(failures)
    group.command("groupings")(groupings)
    group.command("prior")(prior)
    group.command("knobs")(knobs)
    app.add_typer(group, name="eval")
