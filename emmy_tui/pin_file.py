"""Pins as a JSON file that another machine reads: what is pinned, for which kernel, measured where, by whom and why.

Reading judges each pin by itself. One for a kernel that this database doesn't know, for another GPU or toolchain, or
with knob values that can't be built, is left out and said; a pin that comes from elsewhere never becomes evidence here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.codegen import illegal_because
from engine.store import PinChange, PinStanding, Store, StoreError
from engine.vocabulary import Context, Schedule

FORMAT = "emmy pins"
VERSION = 1
MAX_BYTES = 16 * 2**20


class BadPinFile(StoreError):
    """The file holds no pins that can be read; the text says why."""


@dataclass(frozen=True, slots=True)
class FilePin:
    """One pin of a file. `gpu` is for people; `context_key` decides."""

    kernel_key: str
    schedule: Schedule
    context_key: str
    gpu: str
    author: str
    note: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of a file: the changes, and a sentence for each pin that was left out."""

    changes: tuple[PinChange, ...]
    left_out: tuple[str, ...]


def pins_text(standings: tuple[PinStanding, ...], contexts: tuple[Context, ...]) -> str:
    """The file's text."""
    named = {context.key: asdict(context) for context in contexts}
    pins = [
        {
            "kernel": standing.stored.pin.kernel_key,
            "label": standing.label,
            "shape": standing.shape,
            "schedule": standing.stored.pin.schedule.as_dict(),
            "us": standing.us,
            "author": standing.stored.pin.author,
            "at": standing.stored.pin.at,
            "note": standing.stored.pin.note,
            "gpu": standing.gpu,
            "context": standing.stored.context_key,
            "versions": named.get(standing.stored.context_key),
        }
        for standing in standings
    ]
    return json.dumps({"format": FORMAT, "version": VERSION, "pins": pins}, indent=1, ensure_ascii=False) + "\n"


def read_pins(path: Path) -> tuple[FilePin, ...]:
    """Raises BadPinFile with one sentence for whatever is wrong with the file."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadPinFile(f"{path} is larger than any file of pins: name the file that the export wrote")
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadPinFile(f"{path} can't be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise BadPinFile(f"{path} is no JSON: name the file that the export wrote") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("pins"), list):
        raise BadPinFile(f'{path} holds no pins: it lacks "format": "{FORMAT}" and the list "pins"')
    if data.get("version") != VERSION:
        raise BadPinFile(
            f"{path} was written by another Emmy (version {data.get('version')!r}, this one knows {VERSION})"
        )
    return tuple(_pin(path, number, item) for number, item in enumerate(data["pins"], 1))


def _pin(path: Path, number: int, item: Any) -> FilePin:
    if not isinstance(item, dict):
        raise BadPinFile(f"{path}: pin {number} is no object")
    values = {name: item.get(name, "") for name in ("kernel", "context", "gpu", "author", "note")}
    wrong = [name for name, value in values.items() if not isinstance(value, str)]
    wrong += [name for name in ("kernel", "context") if not values[name]]
    if wrong:
        raise BadPinFile(f"{path}: {wrong[0]} of pin {number} is no text")
    knobs = item.get("schedule")
    if not isinstance(knobs, dict) or not knobs or not all(isinstance(value, int | str) for value in knobs.values()):
        raise BadPinFile(f"{path}: the schedule of pin {number} is no object of knob values")
    schedule = Schedule.of(knobs)
    return FilePin(values["kernel"], schedule, values["context"], values["gpu"], values["author"], values["note"])


def import_pins(path: Path, who: str) -> Callable[[Store], Imported]:
    """What a desk writes: every pin of the file that fits. `who` pins, and the note says who did first."""

    def act(store: Store) -> Imported:
        changes: list[PinChange] = []
        left_out: list[str] = []
        contexts = {context.key for context in store.contexts()}
        for pin in read_pins(path):
            reason = _unfit(store, contexts, pin)
            if reason:
                left_out.append(reason)
                continue
            note = pin.note if pin.author in ("", who) else f"{pin.note} (from {pin.author})".strip()
            changes.append(store.record_pin(pin.kernel_key, pin.schedule, pin.context_key, author=who, note=note))
        return Imported(tuple(changes), tuple(left_out))

    return act


def _unfit(store: Store, contexts: set[str], pin: FilePin) -> str:
    try:
        kernel = store.kernel(pin.kernel_key)
    except StoreError:
        return f"kernel {pin.kernel_key} isn't in this database"
    if pin.context_key not in contexts:
        return f"{kernel.label or pin.kernel_key} was pinned on another GPU or toolchain ({pin.gpu or 'unnamed'})"
    return illegal_because(kernel, pin.schedule, store.target(pin.context_key)) or ""
