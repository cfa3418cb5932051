"""`emmy pins`: what people chose, how it stands now, and what came from elsewhere as a suggestion."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from engine.cli.database import chosen_database, opened
from engine.cli.errors import refuse_unmatched
from engine.cli.knob_text import schedule_line
from engine.cli.options import Database, Demo, Json, KernelText
from engine.cli.output import json_text, table_lines, terminal_width, text_lines
from engine.cli.pin import label_of
from engine.deploy import pin_standings, suggestions_now
from engine.store import PinStanding, Suggestion
from engine.vocabulary import Schedule

History = Annotated[bool, typer.Option("--history", help="Ended pins too.")]


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("pins")(pins)


def pins(
    kernel: KernelText = "",
    history: History = False,
    database: Database = None,
    demo: Demo = False,
    json: Json = False,
) -> None:
    """Show the pins beside what is fastest now, and the suggestions: what comes from elsewhere and decides nothing.

    A --kernel that nothing matches is bad input: exit code 2 and a sentence on stderr.
    """
    path = chosen_database(database, demo)
    with opened(path) as store:
        wanted = set(store.kernel_keys(kernel))
        if kernel and not wanted:
            raise refuse_unmatched("kernel", "--kernel", kernel, path)
        standings = [one for one in pin_standings(store) if one.stored.pin.kernel_key in wanted or not kernel]
        suggested = [one for one in suggestions_now(store) if one.kernel_key in wanted or not kernel]
        ended = [one for one in store.pins(history=True) if one.removed_at is not None] if history else []
        names = {key: label_of(store, key) for key in {one.pin.kernel_key for one in ended} | _keys(suggested)}
    if json:
        record = {
            "pins": [_pin_object(one) for one in standings],
            "suggestions": [_suggestion_object(one, names[one.kernel_key]) for one in suggested],
        }
        if history:
            record["ended"] = [
                {"kernel": one.pin.kernel_key, "schedule": one.pin.schedule.as_dict(), "author": one.pin.author}
                | {"at": one.pin.at, "note": one.pin.note, "removed_at": one.removed_at, "context": one.context_key}
                for one in ended
            ]
        typer.echo(json_text(record))
        return
    width = terminal_width(sys.stdout)
    lines = _pin_lines(standings, width)
    if suggested:
        columns = ("suggested for", "us there", "why it decides nothing here", "knobs")
        rows = [(names[s.kernel_key], s.us, s.reason, schedule_line(str(s.schedule))) for s in suggested]
        lines += ["", *table_lines(columns, rows, width)]
    if ended:
        rows_ended = [
            (
                *(names[one.pin.kernel_key], one.pin.author, _when(one.pin.at), _when(one.removed_at)),
                *(one.pin.note, _knobs(one.pin.schedule)),
            )
            for one in ended
        ]
        lines += ["", *table_lines(("ended pin of", "who", "pinned", "ended", "note", "knobs"), rows_ended, width)]
    typer.echo("\n".join(lines))


def _pin_lines(standings: list[PinStanding], width: int | None) -> list[str]:
    if not standings:
        return ["nothing is pinned"]
    columns = ("kernel", "shape", "us", "best us", "standing", "gpu", "who", "when", "note", "knobs")
    rows = [
        (
            *(one.label, one.shape, one.us, one.best_us, _standing(one), one.gpu),
            *(one.stored.pin.author, _when(one.stored.pin.at), one.stored.pin.note, _knobs(one.stored.pin.schedule)),
        )
        for one in standings
    ]
    reasons = [line for one in standings if one.illegal for line in text_lines(_illegal_text(one), width)]
    return [*table_lines(columns, rows, width), *reasons]


def _standing(one: PinStanding) -> str:
    return f"stale: {one.standing}" if one.stale else str(one.standing)


def _illegal_text(one: PinStanding) -> str:
    name = f"{one.label} ({one.stored.pin.kernel_key[:8]})"
    return f"{name}: a pin decides nothing here: {one.illegal.rstrip('.')}; pin another, or unpin it"


def _pin_object(one: PinStanding) -> dict[str, object]:
    pin = one.stored.pin
    about = {"kernel": pin.kernel_key, "label": one.label, "shape": one.shape, "gpu": one.gpu}
    said = {"author": pin.author, "at": pin.at, "note": pin.note, "context": one.stored.context_key}
    times = {"us": one.us, "best_us": one.best_us}
    stands = {"standing": str(one.standing), "stale": one.stale, "illegal": one.illegal}
    return {**about, **said, **times, **stands, "schedule": pin.schedule.as_dict()}


def _suggestion_object(one: Suggestion, label: str) -> dict[str, object]:
    about = {"kernel": one.kernel_key, "label": label, "gpu": one.origin.gpu, "context": one.origin.key}
    return {**about, "us": one.us, "regime": one.regime, "reason": one.reason, "schedule": one.schedule.as_dict()}


def _keys(suggested: list[Suggestion]) -> set[str]:
    return {one.kernel_key for one in suggested}


def _knobs(schedule: Schedule) -> str:
    return schedule_line(str(schedule))


def _when(at: float | None) -> str:
    """The day, UTC; "" for a moment that no calendar has."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M") if at else ""
    except (ValueError, OverflowError, OSError):
        return ""
