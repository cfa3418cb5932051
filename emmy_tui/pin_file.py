"""Pins as a file that another machine reads: the format of `emmy export` and `emmy import`, reached from the tab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from emmy_tui.export import calm_json
from engine.deploy import Carried, Received, export_schedules, read_schedule_file, receive_schedules
from engine.store import Store, StoreError, read_document


def pins_text(store: Store) -> str:
    """The file's text. Raises StoreError, also where nothing is pinned."""
    exported = export_schedules(store, "", Carried.PINS, "emmy-tui")
    if not exported.schedules:
        raise StoreError("; ".join(exported.left_out) or "nothing is pinned, so there is nothing to export")
    return calm_json(exported.text)


def import_pins(path: Path, who: str) -> Callable[[Store], Received]:
    """What a desk writes: everything of the file that fits. `who` pins, and the note says who did first."""

    def act(store: Store) -> Received:
        return receive_schedules(store, read_schedule_file(read_document(path), str(path)), who)

    return act
