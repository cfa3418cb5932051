"""Controls files of ptxas (ACF): read from where a person keeps them, known by their bytes, nothing else.

A name says nothing: other bytes under one name are another file, and equal bytes are one file under any name. What is
inside is nobody's business; only ptxas reads it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.codegen import CONTROLS_FOLDER
from engine.measure.assembler import Assembler, ControlsError
from engine.regular_file import LargeFile, read_regular
from engine.typed_path import BadPath, typed_path
from engine.vocabulary import Context

LARGEST_BYTES = 1 << 20
LARGEST_MANIFEST_BYTES = 16 << 20
MOST_FILES = 512
SUFFIX = ".acf"
MANIFEST = "manifest.json"
NO_OPTIMIZATION = "--opt-level 0"
"""A plain ptxas option that takes the way of a controls file: code that stays as fast under it did not see it."""


@dataclass(frozen=True, slots=True)
class ControlsFile:
    """One ACF. `name` is what a person calls it; `data` is what it is."""

    name: str
    data: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class Controls:
    """What a run may assemble with: one ptxas for every candidate, and the files that are offered to it."""

    assembler: Assembler
    files: tuple[ControlsFile, ...]

    def lay_out(self, folder: Path) -> None:
        """Write the files where a compile process looks for them, each under its hash, readable by its owner alone."""
        place = folder / CONTROLS_FOLDER
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        for file in self.files:
            _lay(place / f"{file.sha256}{SUFFIX}", file.data)
        _lay(place / f"{option_sha256(NO_OPTIMIZATION)}.options", NO_OPTIMIZATION.encode())


def _lay(path: Path, data: bytes) -> None:
    """Whole or not at all, and anew where the bytes are others: another process may read it meanwhile."""
    if path.is_file() and path.read_bytes() == data:
        return
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(path)


def context_with(controls: Controls | None, context: Context) -> Context:
    """The context of times that the ptxas of `controls` made: its binary tells it apart, not its version text alone."""
    return context if controls is None else replace(context, ptxas=controls.assembler.identity)


def option_sha256(option: str) -> str:
    """The name under which a plain option stands where a controls file could."""
    return hashlib.sha256(option.encode()).hexdigest()


def read_controls(paths: Iterable[Path]) -> tuple[ControlsFile, ...]:
    """The files at `paths` and in the folders among them, by sha256, each once.

    A folder's manifest, where there is one, is believed about nothing, but bytes that differ from the sha256 that it
    names for them are refused. Raises ControlsError.
    """
    found: dict[str, ControlsFile] = {}
    for path in paths:
        try:
            is_folder = typed_path(path).is_dir()
        except BadPath as error:
            raise ControlsError(str(error)) from None
        for file in _read_folder(path) if is_folder else [_read_file(path)]:
            found.setdefault(file.sha256, file)
    if not found:
        raise ControlsError("no controls file was given; name an ACF file, or a folder that holds some, with --acf")
    if len(found) > MOST_FILES:
        raise ControlsError(f"{len(found)} controls files are too many for one search: give at most {MOST_FILES}")
    return tuple(found[key] for key in sorted(found))


def _read_folder(folder: Path) -> Iterator[ControlsFile]:
    paths = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX and path.is_file())
    if not paths:
        raise ControlsError(f"{folder} holds no {SUFFIX} file")
    named = _manifest(folder / MANIFEST)
    for path in paths:
        file = _read_file(path)
        wanted = named.get(path.name) or named.get(path.stem)
        if wanted is not None and wanted != file.sha256:
            raise ControlsError(f"{path} is not what {folder / MANIFEST} says: its sha256 is {file.sha256}")
        yield file


def _read_file(path: Path) -> ControlsFile:
    try:
        data = read_regular(path, LARGEST_BYTES)
    except LargeFile:
        raise ControlsError(f"{path} is larger than any controls file ({LARGEST_BYTES} bytes at most)") from None
    except OSError as error:
        raise ControlsError(f"{path} can't be read: {error.strerror or error}") from None
    if not data:
        raise ControlsError(f"{path} is empty: it is no controls file")
    return ControlsFile(path.stem, data)


def _manifest(path: Path) -> dict[str, str]:
    """Names to the sha256 that the manifest states for them; packs differ in shape, so any list of objects is read."""
    if not path.is_file():
        return {}
    try:
        told: Any = json.loads(read_regular(path, LARGEST_MANIFEST_BYTES))
    except (OSError, ValueError):
        raise ControlsError(f"{path} is no readable JSON: repair it, or name the files themselves") from None
    lists: Sequence[Any] = [told] if isinstance(told, list) else list(told.values()) if isinstance(told, dict) else []
    named: dict[str, str] = {}
    for entry in (entry for group in lists if isinstance(group, list) for entry in group if isinstance(entry, dict)):
        digest = entry.get("sha256")
        for key in ("file", "filename", "path", "name"):
            if isinstance(digest, str) and isinstance(entry.get(key), str):
                named[Path(entry[key]).name] = digest.lower()
    return named
