"""`emmy unpin`: what was measured decides again."""

from __future__ import annotations

import typer

from engine.cli.database import chosen_database, opened
from engine.cli.errors import refuse
from engine.cli.options import Database, Json
from engine.cli.output import json_text, printable
from engine.cli.pin import ContextKey, KernelName, kernel_object, kernel_text, one_kernel
from engine.ir.kernel import Kernel
from engine.store import Store, StoreError


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("unpin")(unpin)


def unpin(kernel: KernelName, context: ContextKey = "", database: Database = None, json: Json = False) -> None:
    """End a kernel's pin: what was measured decides again. The history keeps it."""
    with opened(chosen_database(database, False), read_only=False) as store:
        found = _kernel_or_gone(store, kernel)
        key, name = (found, found) if isinstance(found, str) else (found.key, kernel_text(found))
        places = [one.context_key for one in store.pins() if one.pin.kernel_key == key]
        if context:
            places = [place for place in places if place == context]
        if not places:
            where = f" in context {context}" if context else ""
            raise refuse(f"{name} has no pin{where}, so there is nothing to end; `emmy pins` lists them")
        if len(places) > 1:
            raise refuse(f"{name} is pinned in {len(places)} contexts: say which with --context {places[0]}")
        store.unpin(key, places[0])
        if json:
            gone = {"kernel": key, "label": "", "shape": "", "context": places[0]}
            typer.echo(json_text(gone if isinstance(found, str) else kernel_object(found, places[0])))
        else:
            typer.echo(printable(f"unpinned {name}"))


def _kernel_or_gone(store: Store, text: str) -> Kernel | str:
    """The kernel that a text names; the key of a pinned one that isn't there any more, or can't be read."""
    pinned = {one.pin.kernel_key for one in store.pins()}
    keys = {*store.kernel_keys(text), *(key for key in pinned if text and text in key)}
    if len(keys) == 1:
        try:
            return store.kernel(*keys)
        except StoreError:
            return keys.pop()
    return one_kernel(store, text)
