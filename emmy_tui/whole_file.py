"""Files that appear whole or not at all: what is written stands beside its place first, under a hidden name.

On a disk that is full, a file that is opened in its place is there at once and stays empty.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

MOST_TRIES = 1000


def write_whole(path: Path, text: str) -> None:
    """In place of what is there; a device or a pipe is written to. Raises OSError, and nothing has changed then."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8", errors="replace")
        return
    whole = path.resolve()
    part = _beside(whole, text)
    try:
        part.replace(whole)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def write_new(folder: Path, name: str, texts: Mapping[str, str]) -> list[Path]:
    """A file of each ending, all of them or none, never over one that is there. Raises OSError."""
    parts: dict[str, Path] = {}
    placed: list[Path] = []
    try:
        for ending, text in texts.items():
            parts[ending] = _beside(folder / f"{name}.{ending}", text)
        for ending, part in parts.items():
            placed.append(_reserved(folder, name, ending))
            part.replace(placed[-1])
    except OSError:
        for path in (*parts.values(), *placed):
            with suppress(OSError):
                path.unlink(missing_ok=True)
        raise
    return placed


def _beside(path: Path, text: str) -> Path:
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        part.write_text(text, encoding="utf-8", errors="replace")
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    return part


def _reserved(folder: Path, name: str, ending: str) -> Path:
    """An empty file of our own under the first name that is free."""
    for number in range(1, MOST_TRIES):
        path = folder / f"{name}{f'-{number}' if number > 1 else ''}.{ending}"
        with suppress(FileExistsError):
            path.open("x").close()
            return path
    raise FileExistsError(f"{name} exists a thousand times")
