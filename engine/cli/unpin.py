"""`emmy unpin`: what was measured decides again."""

from __future__ import annotations

import typer

from engine.cli.database import chosen_database, opened
from engine.cli.errors import refuse
from engine.cli.options import Database, Json
from engine.cli.output import json_text, printable
from engine.cli.pin import ContextKey, KernelName, kernel_object, kernel_text, one_kernel


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("unpin")(unpin)


def unpin(kernel: KernelName, context: ContextKey = "", database: Database = None, json: Json = False) -> None:
    """End a kernel's pin: what was measured decides again. The history keeps it."""
    with opened(chosen_database(database, False), read_only=False) as store:
        found = one_kernel(store, kernel)
        places = [one.context_key for one in store.pins() if one.pin.kernel_key == found.key]
        if context:
            places = [place for place in places if place == context]
        if not places:
            where = f" in context {context}" if context else ""
            raise refuse(f"{kernel_text(found)} has no pin{where}, so there is nothing to end; `emmy pins` lists them")
        if len(places) > 1:
            raise refuse(
                f"{kernel_text(found)} is pinned in {len(places)} contexts: say which with --context {places[0]}"
            )
        store.unpin(found.key, places[0])
        if json:
            typer.echo(json_text(kernel_object(found, places[0])))
        else:
            typer.echo(printable(f"unpinned {kernel_text(found)}"))
