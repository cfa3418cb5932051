"""`emmy eval variants`: each kernel's fastest schedules, side by side."""

from __future__ import annotations

import sys

import typer

from engine.cli.database import chosen_database, opened
from engine.cli.errors import refuse_unmatched
from engine.cli.options import Database, Demo, Json, KernelText, Top
from engine.cli.output import json_text, terminal_width
from engine.cli.variant_table import FACTS, variant_lines
from engine.store import KernelVariants, VariantRow


def variants(
    kernel: KernelText = "", top: Top = 10, database: Database = None, demo: Demo = False, json: Json = False
) -> None:
    """Show each kernel's fastest schedules, with their knobs, times in us and what the compiler said.

    They are ranked as pins and sums are: by deploy time where there is one, else by ranking time; `regime` says which.

    A --kernel that nothing matches is bad input: exit code 2, a sentence on stderr, and [] as JSON.
    """
    path = chosen_database(database, demo)
    with opened(path) as store:
        found = store.variants(kernel, top)
    if json:
        typer.echo(json_text([_record(one, row) for one in found for row in one.rows]))
    elif found or not kernel:
        width = terminal_width(sys.stdout)
        tables = ["\n".join(variant_lines(one, width)) for one in found]
        typer.echo("\n\n".join(tables) or f"{path} holds no measurement yet")
    if not found and kernel:
        raise refuse_unmatched("measured kernel", "--kernel", kernel, path)


def _record(kernel: KernelVariants, row: VariantRow) -> dict[str, object]:
    """One row as an object: what the kernel is, the facts of the row, then its knobs by their names."""
    about = {"kernel": kernel.kernel, "label": kernel.label, "family": kernel.family, "shape": kernel.shape}
    facts = {name: getattr(row, name) for name in FACTS}
    return {**about, "gpu": kernel.gpu, "context": kernel.context, "status": row.status, **facts, **row.schedule}
