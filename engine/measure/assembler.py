"""Which ptxas a run assembles with, and whether it takes controls. Loads neither torch nor triton.

A version text doesn't identify a binary: two builds may print the same one. So a ptxas that a run chooses for itself
is known by version and sha256, and times taken with another binary are of another context.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from engine.extras import install_text
from engine.regular_file import read_regular
from engine.typed_path import BadPath, typed_path

ASK_LIMIT_S = 30.0
LARGEST_BYTES = 1 << 30
"""Of a ptxas; those of CUDA 12 and 13 have 20 to 60 MiB."""
OPTION = "--apply-controls"
EXTRA = "nvidia-cuda-nvcc"
"""The distribution that the `acf` extra installs; its wheel has a ptxas inside."""
DIGITS = 12
_VERSION = re.compile(r"release [\d.]+, V([\d.]+)")
_TOOLKITS = ("/usr/local/cuda/bin/ptxas",)


class ControlsError(ValueError):
    """Controls can't be used as they were asked for; the text is one sentence with a way out."""


@dataclass(frozen=True, slots=True)
class Assembler:
    """One ptxas binary. `takes_controls` says that it knows the option, not that it takes a certain file."""

    path: str
    version: str
    sha256: str
    takes_controls: bool

    @property
    def identity(self) -> str:
        """What a context calls it: the version, and enough of the binary's sha256 to tell equal versions apart."""
        return f"{self.version}+{self.sha256[:DIGITS]}"

    @property
    def environment(self) -> dict[str, str]:
        """What makes Triton call it. Which of the two names Triton reads for a GPU differs between its versions."""
        return {"TRITON_PTXAS_PATH": self.path, "TRITON_PTXAS_BLACKWELL_PATH": self.path}


def find_assembler(path: Path | None = None) -> Assembler:
    """The ptxas at `path`, or the first one here that takes controls. Raises ControlsError if there is none."""
    if path is not None:
        found = read_assembler(path)
        if not found.takes_controls:
            raise ControlsError(
                f"{path} is ptxas {found.version}, which has no {OPTION}: name one of CUDA 13.3 or newer with --ptxas"
            )
        return found
    seen: list[str] = []
    for candidate in candidates():
        try:
            found = read_assembler(candidate)
        except ControlsError:
            continue
        if found.takes_controls:
            return found
        seen.append(f"{candidate} is {found.version}")
    known = f" ({'; '.join(seen)})" if seen else ""
    raise ControlsError(
        f"no ptxas here takes controls{known}: {install_text('acf')} brings one, or name one with --ptxas PATH"
    )


def candidates() -> Iterator[Path]:
    """Where a ptxas may be, in the order in which they are asked."""
    named = os.environ.get("TRITON_PTXAS_PATH")
    if named:
        yield Path(named)
    try:
        files = metadata.files(EXTRA) or []
    except metadata.PackageNotFoundError:
        files = []
    yield from (Path(str(file.locate())) for file in files if file.name == "ptxas")
    if on_path := shutil.which("ptxas"):
        yield Path(on_path)
    yield from (Path(toolkit) for toolkit in _TOOLKITS if Path(toolkit).is_file())


def read_assembler(path: Path) -> Assembler:
    """What the binary says of itself. Raises ControlsError for what does not run or is no ptxas."""
    try:
        absolute = typed_path(path)
    except BadPath as error:
        raise ControlsError(str(error)) from None
    try:
        digest = hashlib.sha256(read_regular(absolute, LARGEST_BYTES)).hexdigest()
        version = _VERSION.search(_said(absolute, "--version"))
        takes = OPTION in _said(absolute, "--help")
    except OSError as error:
        raise ControlsError(f"{path} can't be run as a ptxas: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        raise ControlsError(f"{path} says nothing within {ASK_LIMIT_S:.0f} s: it is no usable ptxas") from None
    if version is None:
        raise ControlsError(f"{path} is no ptxas: it does not print a version as one does")
    return Assembler(str(absolute), version.group(1), digest, takes)


def _said(path: Path, option: str) -> str:
    done = subprocess.run(
        [path, option],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=ASK_LIMIT_S,
        check=False,
        env=dict(os.environ),
    )
    return done.stdout
