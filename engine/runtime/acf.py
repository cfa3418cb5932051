"""A kernel assembled again with controls: its PTX was frozen by one compile, and only ptxas runs anew for each file.

A compile folder that has an "acf" folder inside belongs to a run that searches controls. It holds what may be applied,
under the sha256 of its bytes: `<sha256>.acf` is a controls file, `<sha256>.options` is the text of plain ptxas options,
which reach the code the same way and prove that it is one. Triton splits options on blanks, so a path with blanks is
reached through a copy.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.codegen import CONTROLS_FOLDER, KernelSource

_BLANK_FREE = ("/dev/shm", "/tmp", "/var/tmp")


class NoControls(Exception):
    """The controls that a source names aren't here; the text is a sentence."""


class FrozenKernel:
    """One source at one set of ptxas options, whatever controls it is assembled with: where its files are."""

    def __init__(self, source: KernelSource, options: dict[str, object], folder: Path) -> None:
        told = f"{source.text}\0{source.arguments}\0{sorted((key, str(value)) for key, value in options.items())}"
        self._name = hashlib.sha256(told.encode()).hexdigest()[:24]
        self._folder = folder
        self._acf = source.acf

    @property
    def kept(self) -> bool:
        """Whether PTX is kept at all: a run without controls never needs it again."""
        return (self._folder / CONTROLS_FOLDER).is_dir()

    @property
    def ptx(self) -> Path:
        return self._folder / "ptx" / f"{self._name}.ptx"

    @property
    def cubin(self) -> Path:
        return self._folder / "ptx" / f"{self._name}.{self._acf}.cubin"

    def keep_ptx(self, text: str) -> None:
        if self.kept:
            write_whole(self.ptx, text.encode())

    def keep_cubin(self, cubin: bytes) -> None:
        write_whole(self.cubin, cubin)

    def said(self, log: str, controlled: bool) -> str:
        """What ptxas said of this binary, now or in whichever process made it; "" if nobody kept it."""
        path = self.cubin.with_suffix(".log") if controlled else self.ptx.with_suffix(".log")
        if log and self.kept:
            write_whole(path, log.encode())
        return log or (path.read_text(encoding="utf-8") if path.is_file() else "")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One process at a time compiles the source; those who wait find its binary in the cache."""
        if not self.kept:
            yield
            return
        self.ptx.parent.mkdir(exist_ok=True)
        with self.ptx.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def option(self) -> Iterator[str]:
        """What ptxas's command line needs for the controls. Raises NoControls."""
        plain = self._folder / CONTROLS_FOLDER / f"{self._acf}.options"
        path = self._folder / CONTROLS_FOLDER / f"{self._acf}.acf"
        if plain.is_file():
            yield plain.read_text(encoding="utf-8")
            return
        if not path.is_file():
            raise NoControls(f"the controls file {self._acf[:12]} is not here; give it with --acf")
        with _without_blanks(path) as reachable:
            yield f"--apply-controls={reachable}"


@contextmanager
def _without_blanks(path: Path) -> Iterator[Path]:
    """The file, or a private copy of it for the time of the block. Raises NoControls."""
    if not any(letter.isspace() for letter in str(path)):
        yield path
        return
    place = next((place for place in _BLANK_FREE if os.access(place, os.W_OK)), None)
    if place is None:
        raise NoControls(f"ptxas can't be told a path with blanks, and none of {', '.join(_BLANK_FREE)} can be written")
    with tempfile.TemporaryDirectory(prefix="emmy-acf-", dir=place) as folder:
        yield Path(shutil.copy(path, Path(folder) / path.name))


def write_whole(path: Path, data: bytes) -> None:
    """Whole or not at all: another process may read it meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)  # on a full disk it takes the room that others wait for
        raise
