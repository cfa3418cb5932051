"""`emmy eval failures`: what went wrong how often, and the knob values that set those candidates apart."""

from __future__ import annotations

import sys

import typer

from engine.cli.database import chosen_database, opened
from engine.cli.errors import refuse_unmatched
from engine.cli.knob_text import knob_word
from engine.cli.options import Database, Demo, Json, KernelText
from engine.cli.output import json_text, share_text, terminal_width, text_lines
from engine.store import FailureCluster, ForbiddenCorner

LABEL = 10
"""Columns of the name before each line of a cluster."""


def failures(kernel: KernelText = "", database: Database = None, demo: Demo = False, json: Json = False) -> None:
    """Show failed candidates by cause, the most frequent first, with the knob values that set them apart.

    A --kernel that nothing matches is bad input: exit code 2, a sentence on stderr, and [] as JSON.
    """
    path = chosen_database(database, demo)
    with opened(path) as store:
        found = store.failures(kernel)
        forbidden = store.forbidden()
        known = bool(found) or not kernel or bool(store.variants(kernel, 1))
    if json:
        typer.echo(json_text([_record(cluster) for cluster in found]))
    elif known:
        width = terminal_width(sys.stdout)
        typer.echo("\n\n".join("\n".join(_lines(cluster, width)) for cluster in found) or "no candidate failed")
        for corner in forbidden:
            typer.echo("\n".join(_forbidden_lines(corner, width)))
    if not known:
        raise refuse_unmatched("measured kernel", "--kernel", kernel, path)


def _record(cluster: FailureCluster) -> dict[str, object]:
    return {
        "count": cluster.count,
        "kinds": list(cluster.kinds),
        "kernels": list(cluster.kernels),
        "cause": cluster.cause,
        "knobs": {knob.name: knob.value for knob in cluster.shared},
        "elsewhere": {knob.name: knob.elsewhere for knob in cluster.shared},
        "lift": cluster.lift,
        "note": cluster.note,
        "example": cluster.example,
    }


def _lines(cluster: FailureCluster, width: int | None) -> list[str]:
    """A cluster as named lines; `knobs` says of each value how many of the other candidates have it too."""
    knobs = [f"{knob_word(knob.name, knob.value)} ({share_text(knob.elsewhere)} of others)" for knob in cluster.shared]
    parts = {
        "count": f"{cluster.count} × {', '.join(cluster.kinds)}",
        "kernels": ", ".join(f"{one.label} {one.shape} ({one.count})".replace("  ", " ") for one in cluster.by_kernel),
        "cause": cluster.cause,
        "knobs": ", ".join(knobs),
        "lift": f"{cluster.lift:.1f} times likelier with these knobs" if knobs else "",
        "note": cluster.note,
    }
    named = [(name.ljust(LABEL), text) for name, text in parts.items() if text]
    several = len(cluster.by_kernel) > 1
    for one in cluster.by_kernel:
        if one.example != cluster.cause:
            named.append(("example".ljust(LABEL), f"{one.example} ({one.label})" if several else one.example))
    return [line for name, text in named for line in text_lines(text, width, name, " " * LABEL)]


def _forbidden_lines(corner: ForbiddenCorner, width: int | None) -> list[str]:
    """What a person keeps out of the next run."""
    whom = f"kernel {corner.kernel_key}" if corner.kernel_key else f"every {corner.family}"
    knobs = " ".join(knob_word(name, value) for name, value in corner.knobs)
    return text_lines(f"{knobs} for {whom}, by {corner.author}", width, "forbidden".ljust(LABEL), " " * LABEL)
