"""`emmy fit`: fit the prior to everything that a database holds, with no GPU and no search."""

from __future__ import annotations

from dataclasses import asdict

import typer

from engine.cli.database import chosen_database, opened
from engine.cli.entry import Loading
from engine.cli.errors import refuse
from engine.cli.options import Database, Demo, Json
from engine.cli.output import duration_text, json_text


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("fit")(fit)


def fit(database: Database = None, demo: Demo = False, json: Json = False) -> None:
    """Fit the prior to everything that was measured, and say how it ranks kernels that were held out.

    A run does this when it ends; do it by hand after merging databases, or when its files were damaged.
    """
    path = chosen_database(database, demo)
    with Loading():
        from engine.prior import CheckpointError
        from engine.tune import fit_database
    with opened(path, CheckpointError) as store:
        found = fit_database(store)
    if found is None:
        raise refuse(f"{path} holds no timed candidate to fit")
    if json:
        typer.echo(json_text({name: value for name, value in asdict(found).items() if name != "at"}))
        return
    typer.echo(f"fitted {found.rows} rows in {duration_text(found.wall_s)}: {found.version}, {found.reason}")
    typer.echo(f"steers the next run: {found.steering}")
